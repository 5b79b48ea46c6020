// SPDX-License-Identifier: Apache-2.0
// The control: every clause, every storage format, every stage, in code that can be read beside the contract.
#include <qkcts/adapter.h>

#include <exception>
#include <new>
#include <string>

#include "adapters/scalar/attention.hpp"
#include "adapters/scalar/claims.hpp"

namespace {

using qkcts::scalar::Attention;

std::string description() {
  return R"({
  "name": "scalar", "version": "0.1.0", "build": ")" __VERSION__ R"(, -ffp-contract=off", "device": "cpu",
  "formats": ["binary64", "binary32", "binary16", "bfloat16"],
  "stages": )" +
         std::string(qkcts::scalar::stages) + R"(,
  "profile": {"binary64": "f64", "binary32": "f32", "binary16": "f16_f32acc", "bfloat16": "bf16_f32acc"},
  "supports": )" +
         std::string(qkcts::scalar::supports) + R"(, "limits": {},
  "arithmetic": {"accumulator": "binary64 for binary64 cases, else binary32", "chain": "8 partial sums",
    "softmax": "row maximum, whole row, the base of the contract", "angles": "binary64", "division": "true division",
    "exp_ulp": 1, "tanh_ulp": 2, "log_ulp": 1, "sqrt_ulp": 0.5, "gradual_underflow": true},
  "layouts": ["bshd", "padded", "strided", "byte_offset"],
  "claims": {"bitwise_repeatable": true, "batch_invariant": true}
})";
}

qkcts_status describe(qkcts_text* json) {
  try {
    qkcts_set_text(json, description().c_str());
    return QKCTS_OK;
  } catch (const std::bad_alloc&) {
    return QKCTS_OUT_OF_MEMORY;
  }
}

qkcts_status probe(qkcts_text* reason) {
  qkcts_set_text(reason, "");
  return QKCTS_OK;
}

qkcts_status prepare(const char* options, void** state, qkcts_text* message) {
  *state = nullptr;
  if (options == nullptr || options[0] == '\0') return QKCTS_OK;
  qkcts_set_text(message, "scalar takes no options");
  return QKCTS_INVALID;
}

qkcts_status run(const qkcts_run_args* args) {
  try {
    const qkcts_contract terms = qkcts_known_contract(args->contract);
    if (args->inputs->format == QKCTS_BINARY64) {
      qkcts_set_text(args->implementation, "scalar binary64");
      Attention<double>(terms, *args->shape, *args->inputs, *args->outputs).run();
    } else {
      qkcts_set_text(args->implementation, "scalar binary32");
      Attention<float>(terms, *args->shape, *args->inputs, *args->outputs).run();
    }
    return QKCTS_OK;
  } catch (const std::bad_alloc&) {
    qkcts_set_text(args->message, "out of memory");
    return QKCTS_OUT_OF_MEMORY;
  } catch (const qkcts::scalar::InvalidArguments& invalid) {
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
