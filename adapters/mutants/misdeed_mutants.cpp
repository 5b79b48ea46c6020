// SPDX-License-Identifier: Apache-2.0
// Kernels that compute rightly and behave wrongly: what the host has to survive and to name.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

struct Bytes {
  unsigned char* first;
  std::int64_t size;
};

// The memory of a tensor from its lowest to its highest element.
Bytes bytes_of(const qkcts_tensor& tensor) {
  std::int64_t span = 1;
  for (std::int32_t axis = 0; axis < tensor.ndim; ++axis) span += (tensor.shape[axis] - 1) * tensor.strides[axis];
  return {static_cast<unsigned char*>(tensor.data) + tensor.byte_offset, span * tensor.dtype.bits / 8};
}

// A byte changes its value whatever it was; volatile, since nothing here reads it again.
void flip(unsigned char* byte) {
  volatile unsigned char* target = byte;
  *target = static_cast<unsigned char>(*target ^ 0x55);
}

qkcts_status writes_past_end(const qkcts_run_args& args) {
  const Bytes output = bytes_of(*args.outputs->stage[QKCTS_STAGE_OUTPUT]);
  flip(output.first + output.size);
  return QKCTS_OK;
}

qkcts_status writes_before_start(const qkcts_run_args& args) {
  flip(bytes_of(*args.outputs->stage[QKCTS_STAGE_OUTPUT]).first - 1);
  return QKCTS_OK;
}

qkcts_status modifies_input(const qkcts_run_args& args) {
  flip(bytes_of(*args.inputs->v).first);
  return QKCTS_OK;
}

qkcts_status crashes(const qkcts_run_args&) {
  std::abort();
}

qkcts_status hangs(const qkcts_run_args&) {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

qkcts_status says_unsupported(const qkcts_run_args& args) {
  qkcts_set_text(args.message, "declared, and refused all the same");
  return QKCTS_UNSUPPORTED;
}

// Queries behind the last whole tile of 16 are never stored.
template <class Real>
struct RowsUnwritten : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  void store_row(const scalar::QueryRow<Real>& row) override {
    if (row.t < this->shape_.q_len / 16 * 16) scalar::Attention<Real>::store_row(row);
  }
};

// A tensor whose elements are taken to lie one behind the other.
struct DenseTensor {
  explicit DenseTensor(const qkcts_tensor* given) {
    if (given == nullptr) return;
    tensor = *given;
    std::int64_t stride = 1;
    for (std::int32_t axis = tensor.ndim; axis-- > 0;) {
      strides[axis] = stride;
      stride *= tensor.shape[axis];
    }
    tensor.strides = strides;
    seen = &tensor;
  }
  DenseTensor(const DenseTensor&) = delete;
  DenseTensor& operator=(const DenseTensor&) = delete;

  std::int64_t strides[8] = {};
  qkcts_tensor tensor{};
  const qkcts_tensor* seen = nullptr;
};

// q, k and v are read as if they were [B,H,L,D] without gaps, however they lie.
template <class Real>
void ignore_strides(const qkcts_contract& terms, const qkcts_run_args& args) {
  qkcts_inputs inputs = *args.inputs;
  const DenseTensor q(inputs.q), k(inputs.k), v(inputs.v);
  inputs.q = q.seen;
  inputs.k = k.seen;
  inputs.v = v.seen;
  scalar::Attention<Real>(terms, *args.shape, inputs, *args.outputs).run();
}

constexpr Kernel control = kernel<scalar::Attention>;
constexpr Kernel dense_reader = {ignore_strides<float>, ignore_strides<double>};

constexpr Mutant table[] = {
    {"rows_unwritten", "QK-STAGE-01", QKCTS_STAGE_OUTPUT, "rows behind the last whole 16 are never written", nullptr,
     kernel<RowsUnwritten>, nullptr, Expectation::unwritten},
    {"strides_ignored", "QK-STAGE-01", QKCTS_STAGE_SCORES, "q, k and v are read without their strides", nullptr,
     dense_reader, nullptr, Expectation::fail, "huggingface/candle#3703", "dense inputs"},
    {"writes_past_end", "QK-STAGE-01", QKCTS_STAGE_OUTPUT, "one byte behind the output", nullptr, control,
     writes_past_end, Expectation::overrun},
    {"writes_before_start", "QK-STAGE-01", QKCTS_STAGE_OUTPUT, "one byte before the output", nullptr, control,
     writes_before_start, Expectation::underrun},
    {"modifies_input", "QK-STAGE-01", QKCTS_STAGE_OUTPUT, "the first byte of v is changed", nullptr, control,
     modifies_input, Expectation::input_modified},
    {"crash", "QK-STAGE-01", QKCTS_STAGE_OUTPUT, "the process aborts", nullptr, control, crashes, Expectation::crash},
    {"hang", "QK-STAGE-01", QKCTS_STAGE_OUTPUT, "run() never returns", nullptr, control, hangs, Expectation::timeout},
    {"says_unsupported", "QK-STAGE-01", QKCTS_STAGE_OUTPUT, "a case inside the declaration is refused", nullptr,
     control, says_unsupported, Expectation::protocol},
};

}  // namespace

std::span<const Mutant> misdeed_mutants() {
  return table;
}

}  // namespace qkcts::mutants
