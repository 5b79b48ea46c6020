// SPDX-License-Identifier: Apache-2.0
#include "harness/batch_arrangement.hpp"

#include <algorithm>

namespace qkcts {
namespace {

// Does the first axis run over the entries of the batch? Masks and biases may have one entry that serves all.
bool per_entry(Input input, const Tensor& tensor, std::int64_t batch) {
  switch (input) {
    case Input::q:
    case Input::k:
    case Input::v:
    case Input::q_position_ids:
    case Input::k_position_ids:
    case Input::kv_len:
    case Input::q_document_ids:
    case Input::k_document_ids:
    case Input::prefix_len:
    case Input::q_x:
    case Input::k_x:
      return true;
    case Input::mask:
    case Input::bias:
      return batch > 1 && tensor.shape.front() == batch;
    default:
      return false;
  }
}

Tensor entries_of(const Tensor& tensor, std::span<const std::uint32_t> entries) {
  const std::size_t size = tensor.bytes.size() / static_cast<std::size_t>(tensor.shape.front());
  Tensor chosen = {tensor.type, tensor.shape, {}};
  chosen.shape.front() = static_cast<std::int64_t>(entries.size());
  chosen.bytes.reserve(size * entries.size());
  for (const std::uint32_t entry : entries) {
    const auto first = tensor.bytes.begin() + static_cast<std::ptrdiff_t>(entry * size);
    chosen.bytes.insert(chosen.bytes.end(), first, first + static_cast<std::ptrdiff_t>(size));
  }
  return chosen;
}

}  // namespace

ExecutionRequest with_entries(const ExecutionRequest& request, std::span<const std::uint32_t> entries) {
  ExecutionRequest arranged = request;
  arranged.shape.batch = static_cast<std::int64_t>(entries.size());
  for (std::size_t i = 0; i < input_count; ++i) {
    std::optional<Tensor>& tensor = arranged.inputs.tensors[i];
    if (tensor && per_entry(static_cast<Input>(i), *tensor, request.shape.batch)) tensor = entries_of(*tensor, entries);
  }
  return arranged;
}

ExecutionRequest request_of_call(const ExecutionRequest& request, const Call& call) {
  ExecutionRequest arranged = call.entries.empty() ? request : with_entries(request, call.entries);
  arranged.stages = stages_of_call(call, request.stages);
  return arranged;
}

void put_back(StageBytes& into, const StageBytes& from, std::span<const std::uint32_t> entries, std::size_t round,
              std::int64_t case_batch) {
  std::vector<std::size_t> copies(static_cast<std::size_t>(case_batch), 0);
  for (const std::uint32_t entry : entries) ++copies[entry];
  for (std::size_t stage = 0; stage < from.size(); ++stage) {
    if (from[stage].empty()) continue;
    const std::size_t size = from[stage].size() / entries.size();
    into[stage].resize(size * static_cast<std::size_t>(case_batch));
    std::vector<std::size_t> seen(static_cast<std::size_t>(case_batch), 0);
    for (std::size_t place = 0; place < entries.size(); ++place) {
      const std::size_t entry = entries[place];
      if (seen[entry]++ != std::min(round, copies[entry] - 1)) continue;
      std::copy_n(from[stage].begin() + static_cast<std::ptrdiff_t>(place * size), size,
                  into[stage].begin() + static_cast<std::ptrdiff_t>(entry * size));
    }
  }
}

}  // namespace qkcts
