/* SPDX-License-Identifier: Apache-2.0
 *
 * adapters/template/adapter.c with plain attention filled in: o = softmax(q k^T / sqrt(D)) v in binary32, no norm, no
 * rotation, no mask. Everything else is declared unsupported.
 */
#include <qkcts/adapter.h>

#include <math.h>
#include <stdlib.h>

/* (1) What you are and what you can do. */
static const char description[] =
    "{\"name\": \"my_kernel\", \"version\": \"1.0\", \"formats\": [\"binary32\"], \"stages\": [\"output\"],"
    " \"profile\": {\"binary32\": \"f32\"},"
    " \"supports\": {\"q_norm.kind\": [\"none\"], \"k_norm.kind\": [\"none\"], \"rope.order\": [\"none\"],"
    "  \"score.scale_form\": [\"inv_sqrt_head_dim\"], \"score.temperature\": [1], \"score.softcap\": [null],"
    "  \"score.bias_order\": [\"none\"], \"mask.causal\": [false], \"mask.kv_lengths\": [false],"
    "  \"mask.boolean\": [false], \"mask.window\": [null]}}";

static qkcts_status describe(qkcts_text* json) {
  qkcts_set_text(json, description);
  return QKCTS_OK;
}

/* (2) Is the device there? */
static qkcts_status probe(qkcts_text* reason) {
  qkcts_set_text(reason, "");
  return QKCTS_OK;
}

/* (3) Once per process. */
static qkcts_status prepare(const char* options, void** state, qkcts_text* message) {
  (void)options;
  (void)message;
  *state = NULL;
  return QKCTS_OK;
}

/* Element (b, h, t, d) of a binary32 tensor. */
static float* at(const qkcts_tensor* x, int64_t b, int64_t h, int64_t t, int64_t d) {
  const int64_t* s = x->strides;
  return (float*)((char*)x->data + x->byte_offset) + b * s[0] + h * s[1] + t * s[2] + d * s[3];
}

/* (4) The kernel: one query row, weights in p. */
static void attend(const qkcts_run_args* args, int64_t b, int64_t h, int64_t t, float* p) {
  const qkcts_shape* n = args->shape;
  const qkcts_inputs* in = args->inputs;
  const int64_t kv = h / (n->q_heads / n->kv_heads);
  float largest = -INFINITY, sum = 0;
  for (int64_t k = 0; k < n->k_len; ++k) {
    float s = 0;
    for (int64_t d = 0; d < n->head_dim; ++d) s += *at(in->q, b, h, t, d) * *at(in->k, b, kv, k, d);
    p[k] = s / sqrtf((float)n->head_dim);
    if (p[k] > largest) largest = p[k];
  }
  for (int64_t k = 0; k < n->k_len; ++k) sum += p[k] = expf(p[k] - largest);
  for (int64_t d = 0; d < n->v_head_dim; ++d) {
    float o = 0;
    for (int64_t k = 0; k < n->k_len; ++k) o += p[k] * *at(in->v, b, kv, k, d);
    *at(args->outputs->stage[QKCTS_STAGE_OUTPUT], b, h, t, d) = o / sum;
  }
}

static qkcts_status run(const qkcts_run_args* args) {
  float* p = malloc((size_t)args->shape->k_len * sizeof *p);
  if (p == NULL) return QKCTS_OUT_OF_MEMORY;
  for (int64_t b = 0; b < args->shape->batch; ++b)
    for (int64_t h = 0; h < args->shape->q_heads; ++h)
      for (int64_t t = 0; t < args->shape->q_len; ++t) attend(args, b, h, t, p);
  free(p);
  qkcts_set_text(args->implementation, "plain C, one row at a time");
  return QKCTS_OK;
}

static void release(void* state) {
  (void)state;
}

static const qkcts_adapter_table table = {sizeof(qkcts_adapter_table),
                                          QKCTS_ADAPTER_ABI_MAJOR,
                                          QKCTS_ADAPTER_ABI_MINOR,
                                          0,
                                          describe,
                                          probe,
                                          prepare,
                                          run,
                                          release};

const qkcts_adapter_table* qkcts_adapter(void) {
  return &table;
}
