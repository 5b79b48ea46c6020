// SPDX-License-Identifier: Apache-2.0
// How well another contract explains what an adapter wrote. An element is explained if it lies within the Delta that
// the budget gives an implementation of the other contract: the same theorem as for a verdict, with the other contract
// in the place of the one that was asked for.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "conformance/mutant_catalogue.hpp"
#include "harness/diagnose_observation.hpp"
#include "reference/evaluation.hpp"

namespace qkcts {

struct Explanation {
  std::array<std::uint64_t, QKCTS_STAGE_COUNT> judged{};  // elements that it fixes, and how many it explains
  std::array<std::uint64_t, QKCTS_STAGE_COUNT> explained{};
  std::uint64_t uncovered = 0;  // elements that fail and that it leaves open: domain, free, hidden
  double worst = 0;             // largest error/Delta among the judged
  std::uint64_t valueless = 0;  // explained since it has no value there (0/0), and no number was written
  std::uint64_t failing = 0;    // elements that fail by the contract asked for, and are judged
  std::uint64_t nearer = 0;     // of these, at most half as far from its value as from the one that was asked for
  std::uint64_t values = 0;     // a digest of its values, as the format of the stage holds them
  double off = 0;               // sum over the elements that fail of error / Delta of the contract asked for
  double distance = 0;          // sum over the elements of log2 max(1, error / Delta of the contract asked for)

  void add(const Explanation& further);  // of other rows
  std::uint64_t all_judged() const;
  std::uint64_t all_explained() const;
  // Nothing that was looked at contradicts it, and it covers every failure.
  bool fits() const { return uncovered == 0 && all_explained() == all_judged() && all_explained() > valueless; }
  // A claim: most of what fails lies nearer to it, too. What has the same values and a larger budget (QK-VAR, angles
  // that are computed) fits whatever falls short of the smaller one, and says nothing.
  bool is_whole() const { return fits() && failing > 0 && 2 * nearer >= failing; }
};

class Explainer {
 public:
  // `observation` must outlive the object. To be used in one thread.
  explicit Explainer(const Observation& observation);
  ~Explainer();

  // By the contract of `other`, the same case or one with other inputs of the same shapes, on these of the stored rows;
  // with `fault`, as that wrong kernel computes it. Nothing if a value cannot be proven, or the kernel refuses it
  // or makes no difference.
  std::optional<Explanation> on(const Case& other, const StageRows& rows, const CatalogueMutant* fault = nullptr) const;

 private:
  std::array<GoldenStage, QKCTS_STAGE_COUNT> evaluated(const Case& other, const StageRows& rows) const;
  void explain(Explanation& explanation, const Case& other, const StageRows& rows) const;
  std::optional<Explanation> by_fault(const Case& other, const StageRows& rows, const CatalogueMutant& fault) const;
  // Of what a wrong kernel makes, beside what the contract asked for has.
  struct Contrast {
    bool differs = false;            // by more than a part of the budget, or in class
    std::uint64_t numbers_gone = 0;  // elements that have a number by the contract alone, and none was got
  };
  Contrast contrast(const std::array<GoldenStage, QKCTS_STAGE_COUNT>& made) const;
  void judge_all(Explanation& explanation, const Case& other, const StageRows& rows,
                 const std::array<GoldenStage, QKCTS_STAGE_COUNT>& made) const;
  void explain_row_by_row(Explanation& explanation, const Case& other, const StageRows& rows) const;
  void judge(Explanation& explanation, const Case& other, qkcts_stage stage, const GoldenStage& values) const;
  void judge_valueless(Explanation& explanation, const Case& other, const StageRows& rows) const;

  const Observation& observation_;
  Profile profile_;
  // q, k and v of the case and their errors, for the contracts that have the same.
  std::unique_ptr<Evaluation> vectors_;
  std::unique_ptr<CaseBudgets> budgets_;
};

}  // namespace qkcts
