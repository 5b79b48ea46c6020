// SPDX-License-Identifier: Apache-2.0
// One row of attention at one precision: the enclosure of an element, and how its exact value stands to a rational.
#pragma once

#include <cstdint>
#include <optional>

#include "reference/exact_softmax.hpp"
#include "reference/fixed_values.hpp"
#include "reference/level.hpp"
#include "reference/recorder.hpp"

namespace qkcts {

template <unsigned Digits>
class RowRules {
 public:
  using Number = Enclosure<Digits>;

  // All of them must outlive the object.
  RowRules(const CaseValues& values, ExactCases& exact, ExactSoftmax& softmax, const RowPlace& place,
           const RowEnclosures<Digits>& found)
      : values_(values),
        exact_(exact),
        softmax_(softmax),
        place_(place),
        found_(found),
        base_two_(values.terms.softmax.base == QKCTS_BASE_TWO),
        sink_(values.sink(place.h)) {
    distances_.between = [this](std::size_t i, std::size_t j) -> std::optional<std::int64_t> {
      const Number difference = term(i) - term(j);
      if (base_two_) return only_integer(lower(difference), upper(difference));
      return overlap(term(i), term(j)) ? std::optional<std::int64_t>(0) : std::nullopt;
    };
    distances_.from = [this](std::size_t i, const Rational& t) {
      const Number difference = term(i) - enclosure_of<Digits>(t);
      return only_integer(lower(difference), upper(difference));
    };
  }
  RowRules(const RowRules&) = delete;  // the distances refer to it
  RowRules& operator=(const RowRules&) = delete;

  const Number& enclosure(const ElementPlace& element) const;
  Standing standing(const ElementPlace& element, const Rational& t);

 private:
  const Number& term(std::size_t i) const { return i < place_.visible.size() ? found_.seen(place_.visible[i]) : sink_; }
  const TermGroups& groups() {
    if (!groups_) groups_ = softmax_.groups(place_, distances_);
    return *groups_;
  }

  const CaseValues& values_;
  ExactCases& exact_;
  ExactSoftmax& softmax_;
  const RowPlace& place_;
  const RowEnclosures<Digits>& found_;
  bool base_two_;
  Number sink_;
  TermDistances distances_;
  std::optional<TermGroups> groups_;
};

template <unsigned Digits>
const Enclosure<Digits>& RowRules<Digits>::enclosure(const ElementPlace& element) const {
  const auto column = static_cast<std::size_t>(element.column);
  switch (element.stage) {
    case QKCTS_STAGE_SCORES:
      return found_.scores[column];
    case QKCTS_STAGE_CAPPED:
      return found_.capped[column];
    case QKCTS_STAGE_MASKED:
      return found_.seen(column);
    case QKCTS_STAGE_PROBS:
      return found_.probs[static_cast<std::size_t>(visible_index(place_, element.column))];
    case QKCTS_STAGE_OUTPUT:
      return found_.output[column];
    case QKCTS_STAGE_LSE:
      return found_.softmax.lse;
    default:
      return found_.softmax.entropy;
  }
}

template <unsigned Digits>
Standing RowRules<Digits>::standing(const ElementPlace& element, const Rational& t) {
  switch (element.stage) {
    case QKCTS_STAGE_SCORES:
    case QKCTS_STAGE_CAPPED:
    case QKCTS_STAGE_MASKED:
      return exact_.score(element.stage, place_, element.column, t);
    case QKCTS_STAGE_LSE:
      return softmax_.lse(place_, place_.visible[found_.softmax.largest], base_two_ ? groups() : TermGroups{},
                          distances_, t);
    case QKCTS_STAGE_PROBS: {
      // In base e it is rational only as 1/n: a midpoint of no format that stores a stage, but of those of a point.
      if (!base_two_ && values_.terms.rounding.probs == 0) return Standing::unknown;
      const auto at = static_cast<std::size_t>(visible_index(place_, element.column));
      return softmax_.probability(place_, groups(), at, t);
    }
    case QKCTS_STAGE_OUTPUT:
      if (place_.visible.empty()) return softmax_.mean(place_, element.column, t);
      return softmax_.output(place_, groups(), element.column, t);
    default:
      return Standing::unknown;
  }
}

}  // namespace qkcts
