// SPDX-License-Identifier: Apache-2.0
// The outputs of a case as numbers beside the budgets that stand for them, and the tally of what was compared.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "harness/relation_judgement.hpp"

namespace qkcts {

struct OutputElement {
  std::uint64_t bits = 0;
  double value = 0;
  bool unwritten = false;  // the poison is still there
};

// One run of a relation. `stored` counts the stored elements of a stage, row and column are those of the stage.
class RelationElements {
 public:
  explicit RelationElements(const RelationRun& run);

  OutputElement at(qkcts_stage stage, std::uint32_t row, std::uint32_t column) const;
  ElementRule rule(qkcts_stage stage, std::size_t stored) const;
  // Delta; nothing without a budget for the profile, or where the element is not trusted under it.
  std::optional<double> delta(qkcts_stage stage, std::size_t stored) const;
  bool has_budgets() const { return profile_ < run_.golden.profiles.size(); }
  const GoldenCase& golden() const { return run_.golden; }
  Format format(qkcts_stage stage) const { return stage_format(stage, run_.golden.input.inputs.format); }
  std::size_t width(qkcts_stage stage) const;
  StageSet stages() const;  // that were written

 private:
  const RelationRun& run_;
  std::size_t profile_;
};

// Counts into a result; the first breach is kept.
class RelationTally {
 public:
  explicit RelationTally(RelationResult& result) : result_(result) {}
  void compared() { ++result_.compared; }
  void mistrusted() { ++mistrusted_; }
  void violated(const RelationBreach& breach);
  void unwritten(qkcts_stage stage, ElementCoordinates place);
  // The verdict, once everything was looked at.
  void finish();

 private:
  RelationResult& result_;
  std::uint64_t mistrusted_ = 0;
};

// |difference| > allowed, when `difference` and `allowed` were rounded a few times each: never true by rounding alone.
bool surely_exceeds(double difference, double allowed);

// The parts of the judgement.
void judge_pair(const Relation& relation, RelationRule rule, const RelationElements& first,
                const RelationElements& second, RelationTally& tally);
void judge_order(const RelationElements& first, const RelationElements& second, RelationTally& tally);
void judge_bounds(const Relation& relation, const RelationElements& run, RelationTally& tally);

}  // namespace qkcts
