// SPDX-License-Identifier: Apache-2.0
// P1, P4 and P6: one case against bounds, each widened by Delta.
#include <cmath>

#include "harness/relation_elements.hpp"
#include "vectors/relation_bounds.hpp"
#include "vectors/relation_couple.hpp"

namespace qkcts {
namespace {

// A sum that is exact but for 2^-100 of itself: what each addition loses is added up as well.
class CompensatedSum {
 public:
  void add(double x) {
    const double sum = sum_ + x, part = sum - sum_;
    lost_ += (sum_ - (sum - part)) + (x - part);
    sum_ = sum;
  }
  double minus(double y) const { return (sum_ - y) + lost_; }
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0, lost_ = 0;
};

// Positive: outside.
double beyond(double value, const ElementBounds& bounds) {
  if (value > bounds.high) return value - bounds.high;
  return value < bounds.low ? bounds.low - value : 0;
}

class BoundJudgement {
 public:
  BoundJudgement(const Relation& relation, const RelationElements& run, RelationTally& tally)
      : bounds_(relation, run.golden().input), run_(run), tally_(tally) {}

  void look_at_row(qkcts_stage stage, std::size_t stored_row, std::uint32_t row) {
    const std::size_t width = run_.width(stage);
    CompensatedSum sum, allowed;
    bool trusted = true;
    for (std::size_t column = 0; column < width; ++column) {
      const std::size_t stored = stored_row * width + column;
      const ElementCoordinates place{row, static_cast<std::uint32_t>(column)};
      if (!is_compared(run_.rule(stage, stored))) {
        trusted = false;
        continue;
      }
      const OutputElement got = run_.at(stage, row, place.column);
      if (got.unwritten) return tally_.unwritten(stage, place);
      const std::optional<double> delta = run_.delta(stage, stored);
      if (!delta) {
        trusted = false;
        tally_.mistrusted();
        continue;
      }
      sum.add(got.value);
      allowed.add(*delta);
      look_at(stage, place, got, *delta);
    }
    if (stage == QKCTS_STAGE_PROBS && trusted) look_at_sum(row, sum, allowed.value());
  }

 private:
  void look_at(qkcts_stage stage, ElementCoordinates place, const OutputElement& got, double delta) {
    const std::optional<ElementBounds> bounds = bounds_.of(stage, place.row, place.column);
    if (!bounds) return;
    tally_.compared();
    const double outside = beyond(got.value, *bounds);
    if (std::isfinite(got.value) && !surely_exceeds(outside, delta)) return;
    tally_.violated(breach(stage, place, got.bits, got.value, *bounds, delta));
  }

  void look_at_sum(std::uint32_t row, const CompensatedSum& sum, double allowed) {
    const std::optional<ElementBounds> bounds = bounds_.of_sum(row);
    if (!bounds) return;
    tally_.compared();
    const double outside = std::fmax(sum.minus(bounds->high), -sum.minus(bounds->low));
    if (std::isfinite(sum.value()) && !(outside > 0 && surely_exceeds(outside, allowed))) return;
    RelationBreach found = breach(QKCTS_STAGE_PROBS, {row, 0}, 0, sum.value(), *bounds, allowed);
    found.what = "the sum of the row";
    tally_.violated(found);
  }

  static RelationBreach breach(qkcts_stage stage, ElementCoordinates place, std::uint64_t bits, double value,
                               const ElementBounds& bounds, double allowed) {
    return {stage, place, place, bits, bits, value, value, value < bounds.low ? bounds.low : bounds.high, allowed, {}};
  }

  const RelationBounds bounds_;
  const RelationElements& run_;
  RelationTally& tally_;
};

}  // namespace

void judge_bounds(const Relation& relation, const RelationElements& run, RelationTally& tally) {
  BoundJudgement judgement(relation, run, tally);
  for (const qkcts_stage stage : all_stages) {
    if ((relation.stages & run.stages() & bit(stage)) == 0) continue;
    const std::vector<std::uint32_t>& rows = run.golden().stages[stage].values.rows;
    for (std::size_t i = 0; i < rows.size(); ++i) judgement.look_at_row(stage, i, rows[i]);
  }
}

}  // namespace qkcts
