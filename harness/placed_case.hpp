// SPDX-License-Identifier: Apache-2.0
// The memory of one call of run(): inputs and descriptors in read-only guarded buffers, outputs full of poison.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/execution.hpp"

namespace qkcts {

class PlacedCase {
 public:
  PlacedCase(const ExecutionRequest& request, Placement placement);

  // Valid while the object lives; everything reachable from it that is not an output or a text is read-only.
  const qkcts_run_args* args(void* state);

  struct Harm {
    Verdict verdict;
    std::string detail;
  };
  // Inputs that changed, canaries that were overwritten.
  std::optional<Harm> harm() const;
  StageBytes outputs() const;
  std::string implementation() const { return text_of(*implementation_); }
  std::string message() const { return text_of(*message_); }

 private:
  GuardedBuffer& add(std::string name, std::size_t size, std::size_t alignment);
  const qkcts_tensor* describe(GuardedBuffer& data, ElementType type, const std::vector<std::int64_t>& shape);
  void place_inputs();
  void place_outputs();
  static std::string text_of(const GuardedBuffer& buffer);
  template <class T>
  T* carve(std::size_t count = 1);

  const ExecutionRequest& request_;
  Placement placement_;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers_;  // all but the descriptors
  GuardedBuffer descriptors_;
  std::size_t carved_ = 0;
  std::array<const GuardedBuffer*, input_count> inputs_{};
  std::array<const GuardedBuffer*, QKCTS_STAGE_COUNT> outputs_{};
  qkcts_inputs* input_table_ = nullptr;
  qkcts_outputs* output_table_ = nullptr;
  GuardedBuffer* implementation_ = nullptr;
  GuardedBuffer* message_ = nullptr;
  qkcts_text implementation_text_{};
  qkcts_text message_text_{};
};

}  // namespace qkcts
