// SPDX-License-Identifier: Apache-2.0
#include "vectors/relation_proof.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "vectors/relation_bounds.hpp"
#include "vectors/relation_couple.hpp"

namespace qkcts {
namespace {

std::size_t width_of(qkcts_stage stage, const GoldenCase& golden) {
  return static_cast<std::size_t>(row_length(stage, golden.input.shape));
}

// hi carries z to half an ulp of binary64; a shift is rounded once more.
bool keeps(const Couple& c, const ProvenStage& a, const ProvenStage& b) {
  const double hi = a.hi[c.first], other = b.hi[c.second];
  const double image = (c.image.negated ? -1 : 1) * std::ldexp(hi, c.image.exponent);
  if (c.image.shift != 0)
    return std::fabs(image + c.image.shift - other) <= 0x1p-50 * (std::fabs(image) + std::fabs(c.image.shift)) ||
           image == other;
  const int lo = c.image.negated ? -a.lo[c.first] : a.lo[c.first];
  return (std::isnan(image) && std::isnan(other)) || (image == other && lo == b.lo[c.second]);
}

std::string pair_contradiction(const Relation& relation, const GoldenCase& first, const GoldenCase& second) {
  std::string found;
  each_couple(relation, first, second, ~StageSet{0}, [&](const Couple& c) {
    const ProvenStage &a = first.stages[c.stage].values, &b = second.stages[c.stage].values;
    if (found.empty() && !keeps(c, a, b))
      found = fmt::format("{} row {} column {}: {} became {}", stage_name(c.stage), c.row, c.column, a.hi[c.first],
                          b.hi[c.second]);
  });
  return found;
}

// Within an ulp or so: the bounds are those of the exact values.
std::string bound_contradiction(const Relation& relation, const GoldenCase& golden) {
  const RelationBounds bounds(relation, golden.input);
  for (const qkcts_stage stage : all_stages) {
    if ((relation.stages & bit(stage)) == 0) continue;
    const ProvenStage& values = golden.stages[stage].values;
    const std::size_t width = width_of(stage, golden);
    for (std::size_t i = 0; i < values.hi.size(); ++i) {
      if (!is_compared(values.rule[i])) continue;
      const auto bound = bounds.of(stage, values.rows[i / width], static_cast<std::uint32_t>(i % width));
      const double slack = 0x1p-50 * std::fabs(values.hi[i]);
      if (bound && !(values.hi[i] >= bound->low - slack && values.hi[i] <= bound->high + slack))
        return fmt::format("{} row {} column {}: {} lies outside of {} ... {}", stage_name(stage),
                           values.rows[i / width], i % width, values.hi[i], bound->low, bound->high);
    }
  }
  return {};
}

// Weights of the second sorted by those of the first do not rise again, and no sum of the largest is larger.
std::string order_contradiction(const GoldenCase& first, const GoldenCase& second) {
  const ProvenStage &a = first.stages[QKCTS_STAGE_PROBS].values, &b = second.stages[QKCTS_STAGE_PROBS].values;
  const std::size_t width = width_of(QKCTS_STAGE_PROBS, first);
  if (a.rows != b.rows) return "the cases store other rows";
  std::vector<std::size_t> order(width);
  for (std::size_t row = 0; row < a.rows.size(); ++row) {
    std::iota(order.begin(), order.end(), row * width);
    std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return a.hi[i] > a.hi[j]; });
    double sum_a = 0, sum_b = 0;
    for (std::size_t m = 0; m < width; ++m) {
      sum_a += a.hi[order[m]];
      sum_b += b.hi[order[m]];
      const bool rises = m > 0 && b.hi[order[m]] > b.hi[order[m - 1]] * (1 + 0x1p-48);
      if (rises || sum_b > sum_a * (1 + 0x1p-40))
        return fmt::format("row {}: the weights are reordered or less even", a.rows[row]);
    }
  }
  return {};
}

std::size_t index_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

double distance(double a, double b) {
  if (std::isfinite(a) && std::isfinite(b)) return std::fabs(a - b);
  return a == b || (std::isnan(a) && std::isnan(b)) ? 0 : std::numeric_limits<double>::infinity();
}

}  // namespace

double least_separation(const Relation& relation, const GoldenCase& first, const GoldenCase& second) {
  double least = std::numeric_limits<double>::infinity();
  bool any = false;
  for (const std::string& profile : first.profiles) {
    const std::size_t p = index_of(first.profiles, profile), q = index_of(second.profiles, profile);
    if (q == second.profiles.size()) continue;
    double largest = 0;
    each_couple(relation, first, second, ~StageSet{0}, [&](const Couple& c) {
      const GoldenStage &a = first.stages[c.stage], &b = second.stages[c.stage];
      if (a.budgets[p].trust[c.first] != Trust::judged || b.budgets[q].trust[c.second] != Trust::judged) return;
      const double apart = distance(a.values.hi[c.first], b.values.hi[c.second]);
      const double delta =
          static_cast<double>(a.budgets[p].delta[c.first]) + static_cast<double>(b.budgets[q].delta[c.second]);
      if (apart > 0) largest = std::max(largest, apart / delta);
    });
    least = std::min(least, largest);
    any = true;
  }
  return any ? least : 0;
}

double needed_separation(RelationRule rule) {
  return (rule == RelationRule::apart ? 2 : 1) * (1 + 0x1p-20);
}

std::string relation_contradiction(const Relation& relation, const GoldenCase& first, const GoldenCase* second) {
  switch (row(relation.kind).rule) {
    case RelationRule::bound:
      return bound_contradiction(relation, first);
    case RelationRule::order:
      return order_contradiction(first, *second);
    case RelationRule::differ:
    case RelationRule::apart: {
      const double found = least_separation(relation, first, *second);
      return found > needed_separation(row(relation.kind).rule) ? std::string()
                                                                : fmt::format("the separation is only {:.3g}", found);
    }
    case RelationRule::reference: {
      const double found = least_separation(relation, first, *second);
      return found <= 1 ? std::string() : fmt::format("they are distinguishable: the separation is {:.3g}", found);
    }
    default:
      return pair_contradiction(relation, first, *second);
  }
}

}  // namespace qkcts
