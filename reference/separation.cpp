// SPDX-License-Identifier: Apache-2.0
#include "reference/separation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/format.hpp"

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool judged(ElementRule rule) {
  return rule != ElementRule::hidden;
}

enum class ValueClass : std::uint8_t { finite, plus_infinity, minus_infinity, nan };

ValueClass value_class(double z) {
  if (std::isnan(z)) return ValueClass::nan;
  if (!std::isinf(z)) return ValueClass::finite;
  return z > 0 ? ValueClass::plus_infinity : ValueClass::minus_infinity;
}

// |z - z_m| from below. z = hi + lo/256 ulp64(hi), off by at most 2^-9 ulp64 each; hi - hi_m is off by half an ulp of
// the difference, the rests by less: a share of 2^-50 covers the roundings.
double distance(const ProvenStage& a, const ProvenStage& b, std::size_t i) {
  const double unit_a = ulp(Format::binary64, a.hi[i]), unit_b = ulp(Format::binary64, b.hi[i]);
  const double rest = a.lo[i] * unit_a - b.lo[i] * unit_b;
  const double difference = std::fabs((a.hi[i] - b.hi[i]) + rest / 256);
  return std::max(0.0, difference * (1 - 0x1p-50) - (unit_a + unit_b) * 0x1p-9);
}

double separation(const ProvenStage& a, const StageBudget& budget_a, const ProvenStage& b, const StageBudget& budget_b,
                  std::size_t i) {
  if (!judged(a.rule[i]) || !judged(b.rule[i])) return 0;
  if (budget_a.trust[i] == Trust::domain || budget_b.trust[i] == Trust::domain) return 0;
  const ValueClass own = value_class(a.hi[i]);
  if (own != value_class(b.hi[i])) return infinity;
  if (own != ValueClass::finite) return 0;
  const double apart = distance(a, b, i);
  if (apart == 0) return 0;
  // The sum of two binary32 numbers is exact in binary64; the quotient may be rounded up by half an ulp.
  const double room = static_cast<double>(budget_a.delta[i]) + static_cast<double>(budget_b.delta[i]);
  return room == 0 ? infinity : apart / room * (1 - 0x1p-50);
}

}  // namespace

Separation largest_separation(const SeparationTable& table, std::size_t profile) {
  Separation largest;
  for (const std::vector<Separation>& stage : table)
    if (!stage.empty() && stage[profile].value > largest.value) largest = stage[profile];
  return largest;
}

Separator::Separator(const Case& c, StageRows rows, std::vector<Profile> profiles)
    : case_(c), rows_(std::move(rows)), profiles_(std::move(profiles)), own_(evaluated(c, rows_)) {}

Separator::Evaluated Separator::evaluated(const Case& c, const StageRows& rows) const {
  Evaluated result{evaluate(c, rows), {}};
  for (const Profile& profile : profiles_)
    result.budgets.push_back(stage_budgets(c, result.values.exact, rows, profile));
  return result;
}

SeparationTable Separator::to(const Case& neighbour) const {
  const StageSet shared = stages_of(case_.contract.terms) & stages_of(neighbour.contract.terms);
  StageRows rows;
  for (const qkcts_stage stage : all_stages) {
    if ((stages_of(neighbour.contract.terms) & bit(stage)) == 0) continue;
    rows[stage] = rows_[stage].empty() ? std::vector<std::uint32_t>{0} : rows_[stage];
  }
  const Evaluated other = evaluated(neighbour, rows);
  SeparationTable table;
  for (const qkcts_stage stage : all_stages) {
    if ((shared & bit(stage)) == 0 || rows_[stage].empty()) continue;
    const ProvenStage& a = own_.values.stages[stage];
    const ProvenStage& b = other.values.stages[stage];
    const std::int64_t length = row_length(stage, case_.shape);
    table[stage].resize(profiles_.size());
    for (std::size_t profile = 0; profile < profiles_.size(); ++profile)
      for (std::size_t i = 0; i < a.hi.size(); ++i) {
        const double value = separation(a, own_.budgets[profile][stage], b, other.budgets[profile][stage], i);
        const auto element = static_cast<std::int64_t>(i);
        if (value > table[stage][profile].value)
          table[stage][profile] = {value, a.rows[static_cast<std::size_t>(element / length)], element % length};
      }
  }
  return table;
}

}  // namespace qkcts
