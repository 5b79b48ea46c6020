// SPDX-License-Identifier: Apache-2.0
// Stages of q, k and v in double words, a group at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reference/fast_tier_operand.hpp"
#include "reference/fast_tier_record.hpp"

namespace qkcts {

class FastVectors {
 public:
  // With the first of `kernels`. Nothing if there is none, or if the contract has a clause of q, k and v, or their
  // inputs a magnitude, that this tier does not cover. `result` is where a Recorder records the stages of q, k and v;
  // what is passed must outlive the object.
  static std::unique_ptr<FastVectors> create(const CaseValues& values, ReferenceResult& result,
                                             std::span<const Kernels> kernels);
  FastVectors(const CaseValues& values, ReferenceResult& result, const Kernels& kernels);

  // Makes the vectors of a group and records its stages; gives the elements that are still open, in the order of the
  // stages, or nothing where it declines and records nothing.
  std::optional<std::vector<ElementPlace>> settle_group(Side side, std::int64_t group);

  const FastOperands& q() const { return q_; }
  const FastOperands& k() const { return k_; }
  const FastOperands* v() const { return v_.get(); }  // null: v is an input
  const Kernels& kernels() const { return kernels_; }

 private:
  void record(qkcts_stage stage, const SideValues& side, std::int64_t group, const WordArray& words,
              std::vector<ElementPlace>& open);

  const CaseValues& values_;
  const Kernels& kernels_;
  RowRecorder recorder_;
  FastOperands q_, k_;
  std::unique_ptr<FastOperands> v_;
  GroupWords stages_;
  WordArray head_;
};

}  // namespace qkcts
