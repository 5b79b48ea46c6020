// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/call.hpp"

#include <algorithm>
#include <cstring>

#include "adapters/cuda/launches.hpp"

namespace qkcts::cuda {

Call::Call(Device& device, const qkcts_run_args& args)
    : args_(args), terms_(qkcts_known_contract(args.contract)), in_(*args.inputs), arena_(device) {
  problem_.shape = *args.shape;
  problem_.storage = in_.format;
  problem_.rope = terms_.rope;
  if (problem_.rope.rotated == 0) problem_.rope.rotated = static_cast<std::uint32_t>(problem_.shape.head_dim);
  problem_.rotation = terms_.rotation;
  problem_.mask = terms_.mask;
  problem_.softmax = terms_.softmax;
  problem_.regions = terms_.regions;
  problem_.heads = terms_.heads;
  problem_.rounding = terms_.rounding;
  bind_sides();
  bind_rotation();
  bind_scores();
  bind_mask();
  choose_path();
  choose_split();
  bind_stages();
}

const void* Call::input(const qkcts_tensor* tensor, const char* name) {
  return arena_.take(packed(tensor, element_type(in_.format), name));
}

const std::int32_t* Call::integers(const qkcts_tensor* tensor, const char* name) {
  return static_cast<const std::int32_t*>(arena_.take(packed(tensor, int32_type, name)));
}

const void* Call::reals(const qkcts_tensor* tensor, const char* name) {
  const bool wide = problem_.storage == QKCTS_BINARY64;
  return arena_.take(packed(tensor, element_type(wide ? QKCTS_BINARY64 : QKCTS_BINARY32), name));
}

const void* Call::upload_reals(const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * real_bytes());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto narrow = static_cast<float>(values[i]);
    const bool wide = real_bytes() == sizeof(double);
    std::memcpy(bytes.data() + i * real_bytes(), wide ? static_cast<const void*>(&values[i]) : &narrow, real_bytes());
  }
  return arena_.take(bytes);
}

// The device begins with what the host's buffer holds, so that an element that no kernel writes stays as it was.
void* Call::stage(qkcts_stage which) {
  if (static_cast<std::uint32_t>(which) >= args_.outputs->count) return nullptr;
  const qkcts_tensor* tensor = args_.outputs->stage[which];
  if (tensor == nullptr) return nullptr;
  const std::vector<std::byte> before = packed(tensor, {tensor->dtype.code, tensor->dtype.bits}, "a stage");
  stages_.push_back({tensor, arena_.take(before), before.size()});
  return stages_.back().memory;
}

void Call::bind_stages() {
  problem_.scores = stage(QKCTS_STAGE_SCORES);
  problem_.capped = stage(QKCTS_STAGE_CAPPED);
  problem_.masked = stage(QKCTS_STAGE_MASKED);
  problem_.probs = stage(QKCTS_STAGE_PROBS);
  problem_.lse = stage(QKCTS_STAGE_LSE);
  problem_.output = stage(QKCTS_STAGE_OUTPUT);

  const std::int64_t rows = rows_of(problem_), parts = problem_.splits * rows;
  problem_.part_largest = room(parts, real_bytes());
  problem_.part_sum = room(parts, real_bytes());
  problem_.part_seen = static_cast<std::int32_t*>(room(parts, sizeof(std::int32_t)));
  problem_.part_output = room(parts * problem_.shape.v_head_dim, real_bytes());
  const bool rounds_weights = problem_.rounding.probs != 0;
  if (problem_.probs == nullptr && !rounds_weights) return;
  problem_.row_largest = room(rows, real_bytes());
  problem_.row_sum = room(rows, real_bytes());
  problem_.row_seen = static_cast<std::int32_t*>(room(rows, sizeof(std::int32_t)));
  const std::int64_t scores = rows * problem_.shape.k_len;
  if (rounds_weights) problem_.weights = room(scores, real_bytes());
  if (problem_.masked == nullptr) problem_.masked = room(scores, real_bytes());
}

void Call::launch() {
  Device& device = arena_.device();
  launch_vectors(device, problem_, query_side);
  launch_vectors(device, problem_, key_side);
  if (problem_.side[value_side].vectors != nullptr) launch_vectors(device, problem_, value_side);
  if (on_unit_) {
    launch_operands(device, problem_, query_side);
    launch_operands(device, problem_, key_side);
    launch_operands(device, problem_, value_side);
  }
  launch_attention(device, problem_, on_unit_);
  launch_rows(device, problem_);
}

void Call::finish() {
  arena_.device().finish();
  for (const Stage& stage : stages_) {
    std::vector<std::byte> after(stage.bytes);
    arena_.device().download(after.data(), stage.memory, stage.bytes);
    unpack(after, *stage.tensor);
  }
}

void Call::run() {
  launch();
  finish();
}

std::string Call::implementation() const {
  const int parts = problem_.side[query_side].parts;
  std::string text = "cuda ";
  if (on_unit_) {
    text += "tensor mma.m16n8k16, tile 64x32, q and k in " + std::to_string(parts) + (parts == 1 ? " part" : " parts");
  } else {
    text += problem_.storage == QKCTS_BINARY64 ? "plain binary64" : "plain binary32";
    text += ", tile 16x32";
  }
  return text + ", " + std::to_string(problem_.splits) + (problem_.splits == 1 ? " split" : " splits") + ", on " +
         arena_.device().name();
}

}  // namespace qkcts::cuda
