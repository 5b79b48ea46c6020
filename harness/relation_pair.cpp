// SPDX-License-Identifier: Apache-2.0
// Two cases, element by element: the same bits after the transformation, or a distance that both budgets admit.
#include <cmath>

#include "harness/relation_elements.hpp"
#include "vectors/relation_couple.hpp"

namespace qkcts {
namespace {

double transformed(double value, const ElementImage& image) {
  const double scaled = std::ldexp(value, image.exponent);
  return (image.negated ? -scaled : scaled) + image.shift;
}

// The bits of a number, zeros of either sign and NaNs of any payload alike.
bool same_bits(Format format, double due, const OutputElement& got) {
  if (std::isnan(due) || std::isnan(got.value)) return std::isnan(due) && std::isnan(got.value);
  if (due == 0 && got.value == 0) return true;
  return encode(format, due) == got.bits;
}

// Among subnormal numbers a factor of 2^k meets another grid: there the budgets judge.
bool leaves_the_grid(Format format, const ElementImage& image, double first, double second) {
  const double least = smallest_normal(format);
  return image.exponent != 0 &&
         (std::fabs(first) < least || std::fabs(second) < least || std::fabs(second) >= parameters(format).largest);
}

bool same_class(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::isinf(a) || std::isinf(b) ? a == b : true;
}

class PairJudgement {
 public:
  PairJudgement(RelationRule rule, const RelationElements& first, const RelationElements& second, RelationTally& tally)
      : rule_(rule), first_(first), second_(second), tally_(tally) {}

  void look_at(const Couple& c) {
    const OutputElement a = first_.at(c.stage, c.row, c.column);
    const OutputElement b = second_.at(c.stage, c.image.row, c.image.column);
    if (a.unwritten || b.unwritten) return tally_.unwritten(c.stage, {c.row, c.column});
    const double due = transformed(a.value, c.image);
    RelationBreach breach{
        c.stage, {c.row, c.column}, {c.image.row, c.image.column}, a.bits, b.bits, a.value, b.value, due, 0, {}};
    const Format format = first_.format(c.stage);
    const bool fixed = first_.rule(c.stage, c.first) == ElementRule::exact_clause ||
                       second_.rule(c.stage, c.second) == ElementRule::exact_clause;
    const bool bits = rule_ == RelationRule::bitwise && !leaves_the_grid(format, c.image, a.value, b.value);
    if (rule_ == RelationRule::differ || rule_ == RelationRule::apart) return look_for_difference(c, breach);
    if (bits || fixed) {
      tally_.compared();
      if (!same_bits(format, due, b)) tally_.violated(breach);
      return;
    }
    const std::optional<double> delta = allowed(c);
    if (!delta) return tally_.mistrusted();
    tally_.compared();
    breach.allowed = *delta;
    const bool finite = std::isfinite(due) && std::isfinite(b.value);
    if (!same_class(due, b.value) || (finite && surely_exceeds(due - b.value, *delta))) tally_.violated(breach);
  }

  // Something had to differ.
  void finish(qkcts_stage stage) {
    if (rule_ != RelationRule::differ && rule_ != RelationRule::apart) return;
    if (looked_ == 0) return tally_.mistrusted();
    tally_.compared();
    if (differing_ > 0) return;
    nearest_.stage = stage;
    nearest_.what = rule_ == RelationRule::differ ? "every element has the bits of the first case"
                                                  : "no element differs by more than the budgets admit";
    tally_.violated(nearest_);
  }

 private:
  std::optional<double> allowed(const Couple& c) const {
    const std::optional<double> a = first_.delta(c.stage, c.first), b = second_.delta(c.stage, c.second);
    if (!a || !b) return std::nullopt;
    return std::ldexp(*a, c.image.exponent) + *b;
  }

  void look_for_difference(const Couple& c, const RelationBreach& pair) {
    std::optional<double> delta = 0.0;
    if (rule_ == RelationRule::apart) delta = allowed(c);
    if (!delta) return;
    if (looked_++ == 0) {
      nearest_ = pair;
      nearest_.allowed = *delta;
    }
    const bool apart =
        !same_class(pair.first_value, pair.second_value) || std::fabs(pair.first_value - pair.second_value) > *delta;
    if (rule_ == RelationRule::apart ? apart : pair.first_bits != pair.second_bits) ++differing_;
  }

  const RelationRule rule_;
  const RelationElements &first_, &second_;
  RelationTally& tally_;
  std::uint64_t looked_ = 0, differing_ = 0;
  RelationBreach nearest_;
};

}  // namespace

void judge_pair(const Relation& relation, RelationRule rule, const RelationElements& first,
                const RelationElements& second, RelationTally& tally) {
  PairJudgement judgement(rule, first, second, tally);
  const StageSet stages = first.stages() & second.stages();
  qkcts_stage last = QKCTS_STAGE_OUTPUT;
  each_couple(relation, first.golden(), second.golden(), stages, [&](const Couple& c) {
    last = c.stage;
    judgement.look_at(c);
  });
  judgement.finish(last);
}

}  // namespace qkcts
