// SPDX-License-Identifier: Apache-2.0
// The bundled fast kernel. This file is built without AVX2: it decides whether the rest may run at all.
#include <qkcts/adapter.h>

#include <cpuid.h>

#include <exception>
#include <new>

#include "adapters/avx2/kernel.hpp"
#include "adapters/avx2/plan.hpp"

namespace {

constexpr const char* description = R"({
  "name": "avx2", "version": "0.1.0", "build": ")" __VERSION__ R"(, -mavx2 -mfma -mf16c, -ffp-contract=off",
  "device": "cpu",
  "formats": ["binary32", "binary16", "bfloat16"],
  "stages": ["q_proj", "k_proj", "q_norm", "k_norm", "v_norm", "q_rope", "k_rope", "scores", "capped", "masked",
    "probs", "lse", "output"],
  "profile": {"binary32": "f32", "binary16": "f16_f32acc", "bfloat16": "bf16_f32acc"},
  "supports": {
    "q_norm.clip_before": ["*"], "q_norm.multiplier": ["*"], "q_norm.clip_after": ["*"],
    "k_norm.clip_before": ["*"], "k_norm.multiplier": ["*"], "k_norm.clip_after": ["*"],
    "rope.sense": ["positive", "negative"], "rope.layout": ["kept"], "rope.angles": ["table"],
    "rope.scaling": ["none", "linear", "ntk", "yarn", "llama3", "proportional"], "rope.untruncated": [false, true],
    "rope.attention_factor": ["*"], "rope.tables": ["shared", "per_head"],
    "score.scale_axes": ["one", "per_head"], "score.scale_exp_cap": ["*"], "score.alibi": ["none"],
    "score.query_temperature": ["none", "log", "log_ratio"],
    "softmax.sink": ["none"], "softmax.base": ["e"], "softmax.lse_base": ["e"], "softmax.hidden_values": ["finite"],
    "mask.chunk": ["*"], "mask.documents": [false, true], "mask.prefix": [false, true],
    "heads.mapping": ["block", "tile"],
    "v_norm.kind": ["none", "rms", "layer_norm", "l2", "centered_l2"],
    "v_norm.clip_before": ["*"], "v_norm.multiplier": ["*"], "v_norm.clip_after": ["*"],
    "projection.form": ["none", "linear"],
    "q_input_norm.kind": ["none", "rms", "layer_norm", "l2", "centered_l2"],
    "k_input_norm.kind": ["none", "rms", "layer_norm", "l2", "centered_l2"]},
  "limits": {"k_len": {"max": 1073741824}},
  "arithmetic": {"accumulator": "binary32", "dot_chain": "one FMA chain in ascending order",
    "projection_chain": "one FMA chain in ascending order",
    "statistic": "16 partial sums, root in binary64", "softmax": "online, natural base, shift = running row maximum",
    "online_block": 64, "scale": "after the dot", "division": "true division",
    "exp_ulp": 1.1, "tanh_ulp": 1.5, "log_ulp": 0.5, "sqrt_ulp": 0.5, "gradual_underflow": true},
  "layouts": ["bshd", "padded", "strided", "byte_offset"],
  "claims": {"bitwise_repeatable": true, "batch_invariant": true}
})";

constexpr const char* implementation = "avx2 fma, 6x16 score tile, block of 64 keys, online softmax";

// cpuid says what the processor has, XGETBV whether the operating system keeps the upper register halves.
bool usable() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned fma = 1u << 12, os_saves = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
  if ((c & (fma | os_saves | avx | f16c)) != (fma | os_saves | avx | f16c)) return false;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 6u) != 6u) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 5)) != 0;
}

qkcts_status describe(qkcts_text* json) {
  qkcts_set_text(json, description);
  return QKCTS_OK;
}

qkcts_status probe(qkcts_text* reason) {
  qkcts_set_text(reason, usable() ? "" : "this processor or operating system lacks AVX2, FMA or F16C");
  return usable() ? QKCTS_OK : QKCTS_UNAVAILABLE;
}

qkcts_status prepare(const char* options, void** state, qkcts_text* message) {
  *state = nullptr;
  if (options != nullptr && options[0] != '\0') {
    qkcts_set_text(message, "avx2 takes no options");
    return QKCTS_INVALID;
  }
  return probe(message);
}

qkcts_status run(const qkcts_run_args* args) {
  if (!usable()) return QKCTS_UNAVAILABLE;
  if (args->inputs->format == QKCTS_BINARY64) {
    qkcts_set_text(args->message, "avx2 computes in binary32: binary64 cases are not declared");
    return QKCTS_UNSUPPORTED;
  }
  try {
    qkcts_set_text(args->implementation, implementation);
    qkcts::avx2::attend(qkcts::avx2::Plan(*args));
    return QKCTS_OK;
  } catch (const std::bad_alloc&) {
    qkcts_set_text(args->message, "out of memory");
    return QKCTS_OUT_OF_MEMORY;
  } catch (const qkcts::avx2::InvalidArguments& invalid) {
    qkcts_set_text(args->message, invalid.what());
    return QKCTS_INVALID;
  } catch (const std::exception& failure) {
    qkcts_set_text(args->message, failure.what());
    return QKCTS_INTERNAL;
  }
}

void release(void* /*state*/) {}

constexpr qkcts_adapter_table table = {sizeof(qkcts_adapter_table),
                                       QKCTS_ADAPTER_ABI_MAJOR,
                                       QKCTS_ADAPTER_ABI_MINOR,
                                       0,
                                       describe,
                                       probe,
                                       prepare,
                                       run,
                                       release};

}  // namespace

const qkcts_adapter_table* qkcts_adapter(void) {
  return &table;
}
