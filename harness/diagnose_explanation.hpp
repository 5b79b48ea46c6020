// SPDX-License-Identifier: Apache-2.0
// How well another contract explains what an adapter wrote. An element is explained if it lies within the Delta that
// the budget gives an implementation of the other contract: the same theorem as for a verdict, with the other contract
// in the place of the one that was asked for.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "harness/diagnose_observation.hpp"
#include "reference/evaluation.hpp"

namespace qkcts {

struct Explanation {
  std::array<std::uint64_t, QKCTS_STAGE_COUNT> judged{};     // elements that it fixes, and how many it explains
  std::array<std::uint64_t, QKCTS_STAGE_COUNT> explained{};
  std::uint64_t uncovered = 0;  // elements that fail and that it leaves open: mistrusted, domain, free
  double worst = 0;             // largest error/Delta among the judged
  double distance = 0;          // sum over the elements of log2 max(1, error / Delta of the contract asked for)

  std::uint64_t all_judged() const;
  std::uint64_t all_explained() const;
  // A claim: nothing that was looked at contradicts it, and it covers every failure.
  bool is_whole() const { return uncovered == 0 && all_judged() > 0 && all_explained() == all_judged(); }
};

class Explainer {
 public:
  // `observation` must outlive the object. To be used in one thread.
  explicit Explainer(const Observation& observation);
  ~Explainer();

  // By the contract of `other`, the same case or one with other inputs of the same shapes, on these of the stored rows.
  // Nothing if it has no value there, or none that can be proven.
  std::optional<Explanation> on(const Case& other, const StageRows& rows) const;

 private:
  GoldenStage stage_of(const Case& other, qkcts_stage stage, std::array<GoldenStage, QKCTS_STAGE_COUNT>& made) const;
  std::array<GoldenStage, QKCTS_STAGE_COUNT> evaluated(const Case& other, const StageRows& rows) const;
  void judge(Explanation& explanation, const Case& other, qkcts_stage stage, const GoldenStage& values) const;

  const Observation& observation_;
  Profile profile_;
  // q, k and v of the case and their errors, for the contracts that have the same.
  std::unique_ptr<Evaluation> vectors_;
  std::unique_ptr<CaseBudgets> budgets_;
};

}  // namespace qkcts
