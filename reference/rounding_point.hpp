// SPDX-License-Identifier: Apache-2.0
// The places where a contract rounds a value before it is used (QK-ROUND), and the decision at one of them, proven like
// every other rounding: both ends of an enclosure agree, or the value is compared exactly with the only boundary left.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/case_values.hpp"
#include "reference/exact_cases.hpp"
#include "reference/recorder.hpp"

namespace qkcts {

struct DeclaredPoint {
  Format format = Format::binary64;
  bool saturate = false;
  std::string_view name;  // as in JSON
};

// Of one side; points of stages that do not exist are left out.
struct VectorPoints {
  std::optional<DeclaredPoint> projection, root, reciprocal, unit, norm, product, rope;
};
VectorPoints vector_points(const CaseValues& values, Side side);
// Of the norm before the projection of a side: its unit and its end.
VectorPoints input_norm_points(const CaseValues& values, Side side);

// Of the rows of attention.
struct RowPoints {
  std::optional<DeclaredPoint> scaled_q, product, scores, capped, probs, output;
};
RowPoints row_points(const CaseValues& values);
std::optional<DeclaredPoint> row_point(const CaseValues& values, qkcts_stage stage);  // of scores ... output

// What a point makes of a value: a number of its format, without a sign if it is 0, or an infinity where it overflows;
// and the value before as binary64, which says what the rounding did.
struct AtPoint {
  double after = 0;
  double before = 0;
};

// Nothing if the ends of the enclosure disagree.
std::optional<AtPoint> round_at(const DeclaredPoint& point, RealView lower, RealView upper);

// The values at one point of one group or row, decided in any order and by any precision.
class PointDecision {
 public:
  using Where = std::function<std::string(std::size_t)>;               // of a value, for messages
  using Rule = std::function<Standing(std::size_t, const Rational&)>;  // exact comparison of a value with t
  enum class Ask : bool { enclosure_only, rule_too };

  PointDecision(const CaseValues& values, const DeclaredPoint& point, std::size_t count, Where where, Rule rule)
      : values_(values), point_(point), where_(std::move(where)), rule_(std::move(rule)), decided_(count) {}

  // Decides value i by its enclosure, or by the rule. Throws InputError if it overflows a point without `saturate`.
  bool decide(std::size_t i, RealView lower, RealView upper, Ask ask);

  // Likewise all of x, and puts the rounded numbers in their places; false if some stay open.
  template <unsigned Digits>
  bool apply(std::span<Enclosure<Digits>> x, Ask ask) {
    bool complete = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      complete = decide(i, lower(x[i]), upper(x[i]), ask) && complete;
      if (decided_[i]) x[i] = Enclosure<Digits>(decided_[i]->after);
    }
    return complete;
  }

  bool is_complete() const;
  const AtPoint& at(std::size_t i) const { return *decided_[i]; }

  // Throws UndecidedError with the point and the first place that is open.
  [[noreturn]] void refuse(long bits) const;

 private:
  const CaseValues& values_;
  DeclaredPoint point_;
  Where where_;
  Rule rule_;
  std::vector<std::optional<AtPoint>> decided_;
};

}  // namespace qkcts
