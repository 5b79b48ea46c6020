/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest valid adapter: it declares everything unsupported. Copy it and fill in the four marked places.
 * adapters/README.md goes through them; adapters/consumer_test/my_kernel.c is this file with plain attention filled in.
 */
#include <qkcts/adapter.h>

/* (1) What you are and what you can do. A case outside of this is never sent: its verdict is `unsupported`.
 *     "formats": storage formats. "stages": what run() can write, "output" at least. "profile": the machine model that
 *     your arithmetic is judged by, per format. "supports": a contract field -> the values you implement; a field that
 *     is left out means every value. "limits": a shape field -> min, max, multiple_of. docs/adapter_abi.md has it all.
 */
static const char description[] =
    "{\"name\": \"template\", \"version\": \"0.1.0\", \"build\": \"C11\", \"device\": \"cpu\","
    " \"formats\": [], \"stages\": [], \"profile\": {}, \"supports\": {}, \"limits\": {}, \"arithmetic\": {},"
    " \"claims\": {\"bitwise_repeatable\": false, \"batch_invariant\": false}}";

static qkcts_status describe(qkcts_text* json) {
  qkcts_set_text(json, description);
  return QKCTS_OK;
}

/* (2) Is the device there? If not: a reason, and QKCTS_UNAVAILABLE. */
static qkcts_status probe(qkcts_text* reason) {
  qkcts_set_text(reason, "");
  return QKCTS_OK;
}

/* (3) Once per process: load weights, open the device. Whatever you put into *state comes back in run(). */
static qkcts_status prepare(const char* options, void** state, qkcts_text* message) {
  (void)options;
  (void)message;
  *state = NULL;
  return QKCTS_OK;
}

/* (4) The kernel. args->inputs and args->outputs are host memory with strides in elements; write every element of each
 *     stage that is not NULL. Name what really ran in args->implementation. */
static qkcts_status run(const qkcts_run_args* args) {
  qkcts_set_text(args->message, "the template has no kernel");
  return QKCTS_UNSUPPORTED;
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
