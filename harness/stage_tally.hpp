// SPDX-License-Identifier: Apache-2.0
// What a stage's report says of all its elements, collected while they pass by.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/judgement.hpp"
#include "harness/quick_distance.hpp"

namespace qkcts {

// Its place among histogram_edges: the first edge that is not below it. All but the first are powers of two, so that
// the exponent, rounded up, tells.
inline std::size_t histogram_class(double ulps) {
  constexpr std::uint64_t mantissa = (std::uint64_t{1} << 52) - 1;
  constexpr int first = 1023 - 3;  // 2^-3
  constexpr auto classes = [] {
    std::array<std::uint8_t, 29> table{};  // from 2^-3 to beyond 2^24
    for (std::size_t i = 0; i < table.size(); ++i)
      while (table[i] < histogram_edges.size() && !(histogram_edges[table[i]] >= 0.125 * static_cast<double>(1 << i)))
        ++table[i];
    return table;
  }();
  const auto exponent = static_cast<int>((std::bit_cast<std::uint64_t>(ulps) + mantissa) >> 52);
  if (exponent < first) return exponent == 0 ? 0 : 1;
  return classes[std::min<std::size_t>(static_cast<std::size_t>(exponent - first), classes.size() - 1)];
}

class StageTally {
 public:
  // `result` outlives the object; `rows` and `length` are those of the stored elements.
  StageTally(StageJudgement& result, const std::optional<Limit>& limit, std::size_t rows, std::size_t length);

  // Elements come in order; `row` counts the stored rows.
  void add(const JudgedElement& element, std::size_t row);

  // The same for the elements from..to of `distances`, the first of which stands in column `column`: all judged by
  // Delta and within it, where no limit of the user's asks for more. False, and nothing is added: one of them may be
  // the worst so far, so that add() has to see them.
  bool add_within(std::size_t row, std::size_t column, const QuickDistances& distances, std::size_t from,
                  std::size_t to);

  // Means and quantiles, when all have passed.
  void finish();

 private:
  void count(const JudgedElement& element);
  std::size_t heat_row(std::size_t row) const { return row * result_.heat.rows() / rows_; }
  void measure(double ulps, double ratio, double signed_ulps, double outward_ulps);

  StageJudgement& result_;
  std::size_t rows_ = 0;
  std::vector<std::uint16_t> heat_column_;  // of each column
  std::vector<double> ulps_;
  double sum_ = 0, signed_sum_ = 0, outward_sum_ = 0;
};

}  // namespace qkcts
