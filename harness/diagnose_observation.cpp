// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_observation.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

namespace qkcts {

Observation::Observation(const GoldenCase& golden, std::size_t profile, StageBytes outputs)
    : golden_(golden), profile_(profile), outputs_(std::move(outputs)) {
  const qkcts_softmax& softmax = golden.input.contract.terms.softmax;
  for (const qkcts_stage stage : all_stages) {
    const GoldenStage& stored = golden.stages[stage];
    if (!stored.present || outputs_[stage].empty()) continue;
    stages_ |= bit(stage);
    const auto length = static_cast<std::size_t>(row_length(stage, golden.input.shape));
    for (std::size_t r = 0; r < stored.values.rows.size(); ++r) {
      const RowContext context = row_context(stored.values, r * length, length, softmax);
      double& largest = row_ratios_[stage].emplace_back(0);
      for (std::size_t column = 0; column < length; ++column) {
        const JudgedElement element =
            judge_element(stage, golden.input.inputs.format, got(stage, stored.values.rows[r], column), stored,
                          r * length + column, stored.budgets[profile], context);
        const bool failed = element.breach != Breach::none;
        const double ratio = failed ? std::min(element.ratio, std::numeric_limits<double>::max()) : 0;
        ratios_[stage].push_back(ratio);
        largest = std::max(largest, ratio);
        failing_ += failed ? 1 : 0;
        if (element.rule != ElementRule::free && element.rule != ElementRule::hidden && element.trust != Trust::domain)
          ++judged_;
      }
    }
  }
}

std::uint64_t Observation::got(qkcts_stage stage, std::size_t row, std::size_t column) const {
  const auto size = static_cast<std::size_t>(parameters(stage_format(stage, golden_.input.inputs.format)).bits / 8);
  const auto length = static_cast<std::size_t>(row_length(stage, golden_.input.shape));
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, outputs_[stage].data() + (row * length + column) * size, size);
  return pattern;
}

double Observation::coarseness() const {
  double largest = 0;
  for (const qkcts_stage stage : all_stages) {
    const ProvenStage& values = golden_.stages[stage].values;
    const Format format = stage_format(stage, golden_.input.inputs.format);
    const auto length = static_cast<std::size_t>(row_length(stage, golden_.input.shape));
    for (std::size_t r = 0; r < row_ratios_[stage].size(); ++r) {
      if (!(row_ratios_[stage][r] > 0)) continue;
      double size = 0, off = 0;
      for (std::size_t column = 0; column < length; ++column) {
        const double exact = values.hi[r * length + column];
        if (std::isfinite(exact)) size = std::max(size, std::fabs(exact));
        if (!fails(stage, r * length + column)) continue;
        const double error = std::fabs(decode(format, got(stage, values.rows[r], column)) - exact);
        off = std::isfinite(error) ? std::max(off, error) : std::numeric_limits<double>::infinity();
        if (std::isinf(off)) return off;
      }
      largest = std::max(largest, size > 0 ? off / size : std::numeric_limits<double>::infinity());
    }
  }
  return largest;
}

qkcts_stage Observation::first_failing() const {
  for (const qkcts_stage stage : all_stages)
    if (std::any_of(row_ratios_[stage].begin(), row_ratios_[stage].end(), [](double ratio) { return ratio > 0; }))
      return stage;
  return QKCTS_STAGE_COUNT;
}

StageRows Observation::every_stored_row() const {
  StageRows rows;
  for (const qkcts_stage stage : all_stages)
    if ((stages_ & bit(stage)) != 0) rows[stage] = golden_.stages[stage].values.rows;
  return rows;
}

// The worst one, the first and the last that fail, one from their middle; likewise of those that do not fail, since
// another contract may change too much as well as too little.
std::set<std::uint32_t> Observation::telling_rows_of(qkcts_stage stage) const {
  const std::vector<std::uint32_t>& rows = golden_.stages[stage].values.rows;
  const std::vector<double>& ratios = row_ratios_[stage];
  std::vector<std::uint32_t> failing, passing;
  for (std::size_t r = 0; r < rows.size(); ++r) (ratios[r] > 0 ? failing : passing).push_back(rows[r]);
  std::set<std::uint32_t> chosen;
  for (const std::vector<std::uint32_t>& list : {failing, passing})
    if (!list.empty()) chosen.insert({list.front(), list[list.size() / 2], list.back()});
  if (!failing.empty())
    chosen.insert(rows[static_cast<std::size_t>(std::max_element(ratios.begin(), ratios.end()) - ratios.begin())]);
  return chosen;
}

StageRows Observation::telling_rows() const {
  StageRows rows;
  std::set<std::uint32_t> attention;
  for (const qkcts_stage stage : all_stages) {
    if ((stages_ & bit(stage)) == 0) continue;
    const std::set<std::uint32_t> chosen = telling_rows_of(stage);
    // One row of attention costs what all of its stages cost: those of the first failing stage and of the output do.
    if ((attention_stages & bit(stage)) == 0) {
      rows[stage].assign(chosen.begin(), chosen.end());
    } else if (stage == QKCTS_STAGE_OUTPUT || stage == first_failing()) {
      attention.insert(chosen.begin(), chosen.end());
    }
  }
  for (const qkcts_stage stage : all_stages) {
    if ((stages_ & attention_stages & bit(stage)) == 0) continue;
    const std::vector<std::uint32_t>& stored = golden_.stages[stage].values.rows;
    std::set_intersection(stored.begin(), stored.end(), attention.begin(), attention.end(),
                          std::back_inserter(rows[stage]));
  }
  return rows;
}

}  // namespace qkcts
