// SPDX-License-Identifier: Apache-2.0
// The memory of one call of run(): inputs and descriptors in read-only guarded buffers, outputs full of poison.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/execution.hpp"
#include "harness/tensor_layout.hpp"

namespace qkcts {

class PlacedCase {
 public:
  PlacedCase(const ExecutionRequest& request, Placement placement, TensorLayout layout = TensorLayout::dense);

  // Valid while the object lives; everything reachable from it that is not an output or a text is read-only.
  const qkcts_run_args* args(void* state);

  struct Harm {
    Verdict verdict;
    std::string detail;
  };
  // Inputs that changed, canaries that were overwritten, also between the elements of an output.
  std::optional<Harm> harm() const;
  StageBytes outputs() const;
  // Are the outputs these, bit for bit? With `entries`: is each entry of the batch that one of `due`, which has
  // `batch`?
  bool holds(const StageBytes& due, std::span<const std::uint32_t> entries, std::int64_t batch) const;
  std::string implementation() const { return text_of(*implementation_); }
  std::string message() const { return text_of(*message_); }

 private:
  // A tensor's memory, and where in it the elements lie.
  struct Placed {
    GuardedBuffer* buffer = nullptr;
    std::optional<ElementPlaces> places;
  };

  GuardedBuffer& add(std::string name, std::size_t size, std::size_t alignment);
  Placed place(std::string name, ElementType type, const std::vector<std::int64_t>& shape, TensorAxes axes);
  const qkcts_tensor* describe(const Placed& placed, ElementType type, const std::vector<std::int64_t>& shape);
  std::optional<Harm> harm_between_elements() const;
  std::optional<Harm> harm_to_texts() const;
  void place_inputs();
  void place_outputs();
  static std::string text_of(const GuardedBuffer& buffer);
  template <class T>
  T* carve(std::size_t count = 1);

  const ExecutionRequest& request_;
  Placement placement_;
  TensorLayout layout_;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers_;  // all but the descriptors
  GuardedBuffer descriptors_;
  std::size_t carved_ = 0;
  std::array<Placed, input_count> inputs_{};
  std::array<Placed, QKCTS_STAGE_COUNT> outputs_{};
  qkcts_inputs* input_table_ = nullptr;
  qkcts_outputs* output_table_ = nullptr;
  GuardedBuffer* implementation_ = nullptr;
  GuardedBuffer* message_ = nullptr;
  // The two texts as the adapter gets them, and as it has to leave them but for `length`.
  GuardedBuffer* text_table_ = nullptr;
  std::array<qkcts_text, 2> given_texts_{};
};

// Makes the call. Of its outputs nothing is read.
Execution run_placed(const AdapterLibrary& adapter, PlacedCase& placed);

}  // namespace qkcts
