// SPDX-License-Identifier: Apache-2.0
#include "reference/special_stages.hpp"

#include <limits>

#include "conformance/format.hpp"

namespace qkcts {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void put_special_values(const SpecialValues& special, ReferenceResult& result) {
  const Case& c = special.stand_in();
  for (const qkcts_stage stage : all_stages) {
    ProvenStage& proven = result.stages[stage];
    const Format format = stage_format(stage, c.inputs.format);
    const std::int64_t length = row_length(stage, c.shape);
    std::size_t i = 0;
    for (const std::uint32_t row : proven.rows)
      for (std::int64_t column = 0; column < length; ++column, ++i) {
        const Outcomes outcomes = special.at(stage, row, column);
        if (is_number(outcomes)) continue;
        const bool hidden = special.is_hidden(stage, row, column);
        const SpecialJudgement due =
            hidden ? SpecialJudgement{ElementRule::hidden, nan_value} : special_judgement(outcomes);
        proven.expected[i] = encode(format, due.value);
        proven.hi[i] = due.value;
        proven.lo[i] = 0;
        proven.rule[i] = due.rule;
      }
  }
  RowStatistics& statistics = result.statistics;
  for (std::vector<double>* statistic : {&statistics.entropy, &statistics.p_max, &statistics.score_max})
    for (std::size_t row = 0; row < statistic->size(); ++row)
      if (special.is_special_row(static_cast<std::int64_t>(row))) (*statistic)[row] = nan_value;
}

}  // namespace qkcts
