/* SPDX-License-Identifier: Apache-2.0
 *
 * The adapter ABI: how a runtime plugs into qkcts. C11; one exported symbol, `qkcts_adapter`.
 *
 * Rules. Every struct that crosses the border starts with its size in bytes as the writer knows it; fields are only
 * appended, in a minor version; read a field that was added later only if QKCTS_HAS() says it is there. The host owns
 * every buffer; pointers are borrowed until the call returns. All tensors are in host memory; an adapter for a device
 * copies. No exception may cross. Calls come from one thread at a time.
 */
#ifndef QKCTS_ADAPTER_H
#define QKCTS_ADAPTER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <qkcts/contract.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QKCTS_ADAPTER_ABI_MAJOR 1u
#define QKCTS_ADAPTER_ABI_MINOR 1u

#define QKCTS_HAS(args, field) ((args)->struct_size >= offsetof(__typeof__(*(args)), field) + sizeof((args)->field))

/* Type codes of DLPack 1.1. */
enum { QKCTS_DL_INT = 0, QKCTS_DL_UINT = 1, QKCTS_DL_FLOAT = 2, QKCTS_DL_BFLOAT = 4, QKCTS_DL_BOOL = 6 };
enum { QKCTS_DL_CPU = 1 };

/* Layout-identical to DLPack's DLTensor. Strides are in elements and always present. */
typedef struct qkcts_tensor {
  void* data;
  struct {
    int32_t device_type;
    int32_t device_id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} qkcts_tensor;

/* Inputs of a case; NULL where the contract has no such input. Read-only: the host checks that they do not change. An
 * input that came later is given only beside a clause that came with it. */
typedef struct qkcts_inputs {
  uint32_t struct_size;
  uint32_t format;            /* qkcts_format of q, k, v, gains, biases, scale and additive bias */
  const qkcts_tensor* q;      /* [B,Hq,Lq,D]                                   */
  const qkcts_tensor* k;      /* [B,Hkv,Lk,D]                                  */
  const qkcts_tensor* v;      /* [B,Hkv,Lk,Dv]                                 */
  const qkcts_tensor* q_gain; /* by qkcts_norm.gain_axes, e.g. [D]             */
  const qkcts_tensor* k_gain;
  const qkcts_tensor* q_bias; /* by qkcts_norm.bias_axes                       */
  const qkcts_tensor* k_bias;
  const qkcts_tensor* cos;            /* [P, R/2], binary32 (binary64 if format is)    */
  const qkcts_tensor* sin;            /* [P, R/2]                                      */
  const qkcts_tensor* q_position_ids; /* int32 [B,Lq]: row of cos and sin              */
  const qkcts_tensor* k_position_ids; /* int32 [B,Lk]                                  */
  const qkcts_tensor* scale;          /* [1] or [Hq]: QKCTS_SCALE_LEARNED_SCALAR       */
  const qkcts_tensor* mask;           /* bool [B|1,Hq|1,Lq,Lk], nonzero = visible      */
  const qkcts_tensor* bias;           /* [B|1,Hq|1,Lq,Lk], additive; -inf hides        */
  const qkcts_tensor* kv_len;         /* int32 [B]                                     */
  const qkcts_tensor* alibi_slopes;   /* [Hq], binary32 (binary64 if format is). ABI 1.1 from here on */
  const qkcts_tensor* sink;           /* [Hq]                                          */
  const qkcts_tensor* q_document_ids; /* int32 [B,Lq]                                  */
  const qkcts_tensor* k_document_ids; /* int32 [B,Lk]                                  */
  const qkcts_tensor* prefix_len;     /* int32 [B]                                     */
} qkcts_inputs;

/* Stages to write, indexed by qkcts_stage; NULL: not asked for. Every element must be written.
 * Formats: q_norm .. k_rope, probs and output in the storage format; scores, capped, masked and lse in binary32
 * (binary64 if the storage format is binary64). */
typedef struct qkcts_outputs {
  uint32_t struct_size;
  uint32_t count; /* QKCTS_STAGE_COUNT as the host knows it */
  const qkcts_tensor* stage[QKCTS_STAGE_COUNT];
} qkcts_outputs;

typedef enum qkcts_status {
  QKCTS_OK = 0,
  QKCTS_UNSUPPORTED = 1, /* this contract, format, shape or stage is declared unsupported */
  QKCTS_UNAVAILABLE = 2, /* the device or library is not there (probe)                     */
  QKCTS_OUT_OF_MEMORY = 3,
  QKCTS_INVALID = 4, /* the arguments contradict each other: a fault of the host       */
  QKCTS_INTERNAL = 5 /* the runtime failed                                             */
} qkcts_status;

/* Text the adapter writes: NUL-terminated, cut to capacity; length is what the whole text needs without NUL. */
typedef struct qkcts_text {
  uint32_t struct_size;
  uint32_t capacity; /* in  */
  uint32_t length;   /* out */
  uint32_t reserved;
  char* text; /* out, caller-owned; may be NULL if capacity is 0 */
} qkcts_text;

/* Copies `source` into `target` by the rules above; a NULL target is not asked for. */
static inline void qkcts_set_text(qkcts_text* target, const char* source) {
  uint32_t length = 0;
  if (!target) return;
  for (; source[length] != '\0'; ++length) {
    if (target->text && length + 1 < target->capacity) target->text[length] = source[length];
  }
  target->length = length;
  if (target->text && target->capacity > 0) {
    target->text[length < target->capacity ? length : target->capacity - 1] = '\0';
  }
}

/* The contract as far as its writer knew it, the rest zero, which says what the writer's version said. */
static inline qkcts_contract qkcts_known_contract(const qkcts_contract* given) {
  qkcts_contract known;
  memset(&known, 0, sizeof known);
  memcpy(&known, given, given->struct_size < sizeof known ? given->struct_size : sizeof known);
  return known;
}

typedef struct qkcts_run_args {
  uint32_t struct_size;
  uint32_t reserved;
  void* state;                    /* in   from prepare()                                        */
  const qkcts_contract* contract; /* in   longer or shorter than yours: qkcts_known_contract()   */
  const char* contract_json;      /* in   the same contract as canonical JSON                    */
  const qkcts_shape* shape;       /* in                                                          */
  const qkcts_inputs* inputs;     /* in                                                          */
  const qkcts_outputs* outputs;   /* out  data of each stage that is not NULL                    */
  qkcts_text* implementation;     /* out  kernel name, ISA, tile, split that was used            */
  qkcts_text* message;            /* out  why, if the status is not QKCTS_OK                     */
} qkcts_run_args;

typedef struct qkcts_adapter_table {
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  /* JSON of docs/adapter_abi.md: name, version, formats, stages, contract predicates, arithmetic, claims. */
  qkcts_status (*describe)(qkcts_text* json);
  /* Is the runtime usable on this machine? QKCTS_OK or QKCTS_UNAVAILABLE with the reason. */
  qkcts_status (*probe)(qkcts_text* reason);
  /* Once per process, before run. options: "key=value,key=value" or "". */
  qkcts_status (*prepare)(const char* options, void** state, qkcts_text* message);
  qkcts_status (*run)(const qkcts_run_args* args);
  void (*release)(void* state);
} qkcts_adapter_table;

#if defined(__GNUC__)
#define QKCTS_EXPORT __attribute__((visibility("default")))
#else
#define QKCTS_EXPORT
#endif

/* The one exported symbol. */
QKCTS_EXPORT const qkcts_adapter_table* qkcts_adapter(void);

#ifdef __cplusplus
#define QKCTS_STATIC_ASSERT static_assert
#else
#define QKCTS_STATIC_ASSERT _Static_assert
#endif
QKCTS_STATIC_ASSERT(sizeof(void*) == 8, "qkcts needs a 64-bit target");
QKCTS_STATIC_ASSERT(offsetof(qkcts_tensor, device) == 8, "DLTensor layout");
QKCTS_STATIC_ASSERT(offsetof(qkcts_tensor, ndim) == 16, "DLTensor layout");
QKCTS_STATIC_ASSERT(offsetof(qkcts_tensor, dtype) == 20, "DLTensor layout");
QKCTS_STATIC_ASSERT(offsetof(qkcts_tensor, shape) == 24, "DLTensor layout");
QKCTS_STATIC_ASSERT(offsetof(qkcts_tensor, strides) == 32, "DLTensor layout");
QKCTS_STATIC_ASSERT(offsetof(qkcts_tensor, byte_offset) == 40, "DLTensor layout");
QKCTS_STATIC_ASSERT(sizeof(qkcts_tensor) == 48, "DLTensor layout");
/* Version 1.0 of the border; a later minor version appends behind these and adds lines here. */
QKCTS_STATIC_ASSERT(offsetof(qkcts_inputs, q) == 8 && offsetof(qkcts_inputs, kv_len) == 120, "qkcts_inputs 1.0");
QKCTS_STATIC_ASSERT(offsetof(qkcts_outputs, stage) == 8, "qkcts_outputs 1.0");
QKCTS_STATIC_ASSERT(offsetof(qkcts_text, length) == 8 && offsetof(qkcts_text, text) == 16, "qkcts_text 1.0");
QKCTS_STATIC_ASSERT(offsetof(qkcts_run_args, state) == 8 && offsetof(qkcts_run_args, message) == 64,
                    "qkcts_run_args 1.0");
QKCTS_STATIC_ASSERT(offsetof(qkcts_adapter_table, describe) == 16 && offsetof(qkcts_adapter_table, release) == 48,
                    "qkcts_adapter_table 1.0");
QKCTS_STATIC_ASSERT(offsetof(qkcts_contract, q_norm) == 8 && offsetof(qkcts_norm, eps) == 40, "qkcts_contract 1.0");
QKCTS_STATIC_ASSERT(offsetof(qkcts_contract, q_range) == 208 && offsetof(qkcts_contract, k_range) == 232 &&
                        offsetof(qkcts_contract, rotation) == 256 && offsetof(qkcts_contract, logits) == 320 &&
                        offsetof(qkcts_contract, softmax) == 368 && offsetof(qkcts_contract, regions) == 384 &&
                        offsetof(qkcts_contract, heads) == 400,
                    "qkcts_contract 1.1");
QKCTS_STATIC_ASSERT(offsetof(qkcts_inputs, alibi_slopes) == 128 && offsetof(qkcts_inputs, prefix_len) == 160,
                    "qkcts_inputs 1.1");

#ifdef __cplusplus
}
#endif
#endif
