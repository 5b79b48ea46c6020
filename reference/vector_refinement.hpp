// SPDX-License-Identifier: Apache-2.0
// The refinement loop of q, k and v: every group on demand, once. Contracts that mean the same by them share the
// object.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "reference/declared_vectors.hpp"
#include "reference/element_loop.hpp"
#include "reference/fast_tier_vectors.hpp"
#include "reference/fixed_values.hpp"
#include "reference/levels.hpp"
#include "reference/refinement.hpp"

namespace qkcts {

class VectorRefinement {
 public:
  // Decides the rounding points of q, k and v, but for those of a side that means the same as in `beside`, of another
  // contract and the same inputs: these are taken over. `c` must outlive the object.
  VectorRefinement(const Case& c, const StageRows& stored, const RefinementLimits& limits,
                   const VectorRefinement* beside = nullptr);
  VectorRefinement(const VectorRefinement&) = delete;  // its parts refer to each other
  VectorRefinement& operator=(const VectorRefinement&) = delete;

  // Stages of q, k and v: all; of the stored rows; of some rows; all that a row of attention uses, which is its q and
  // all k and v of its key/value head.
  void settle_all();
  void settle_stored();
  void settle_rows(const StageRows& rows);
  void settle_for(const RowPlace& place, std::int64_t kv_head);  // contracts that share them may map heads otherwise

  CaseValues& values() { return values_; }
  VectorLevels& levels() { return vector_levels_; }
  const FastVectors* fast() const { return fast_.get(); }
  // Of its stages; `exact` has no rows of attention. What has not been settled is 0, and NaN in `exact`.
  const ReferenceResult& result() {
    recorder_.begin_all_vectors();
    return result_;
  }
  ReferenceResult take_result() {
    recorder_.begin_all_vectors();
    return std::move(result_);
  }
  int highest_bits() const { return levels_.highest_bits(); }

 private:
  std::vector<qkcts_stage> stages(Side side) const;
  std::vector<Side> take_points(const VectorRefinement& from);
  void begin(Side side, std::int64_t group);
  void settle(Side side, std::int64_t group);
  bool is_excluded(Side side, std::int64_t group) const;
  void fix_excluded(Side side, std::int64_t group);
  OpenElements elements(Side side, std::int64_t group) const;
  template <std::size_t L>
  void refine(Side side, std::int64_t group, OpenElements open);

  RefinementLimits limits_;
  ReferenceResult result_;
  CaseValues values_;
  RowPlaces rows_;  // none is held
  ExactCases exact_;
  ExactSoftmax softmax_;
  Recorder recorder_;
  FixedValues fixed_;
  ElementLoop loop_;
  VectorLevels vector_levels_;
  Levels levels_;
  std::unique_ptr<FastVectors> fast_;
  std::array<std::vector<bool>, 3> settled_;  // of every group of a side
  std::vector<bool> heads_settled_;           // k and v of b * Hkv + kv_head
};

}  // namespace qkcts
