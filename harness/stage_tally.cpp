// SPDX-License-Identifier: Apache-2.0
#include "harness/stage_tally.hpp"

#include <algorithm>
#include <cmath>

namespace qkcts {
namespace {

bool over_limit(const JudgedElement& element, const Limit& limit) {
  if (limit.max_ulp && !(element.ulps <= *limit.max_ulp)) return true;
  if (limit.max_ratio && !(element.ratio <= *limit.max_ratio)) return true;
  if (!limit.atol && !limit.rtol) return false;
  if (!std::isfinite(element.got_value) || !std::isfinite(element.exact.hi)) return element.breach != Breach::none;
  const double error = std::fabs(distance(element.got_value, element.exact, 0).error);
  return !(error <= limit.atol.value_or(0) + limit.rtol.value_or(0) * std::fabs(element.exact.hi));
}

void keep_worst(const JudgedElement& element, std::optional<JudgedElement>& worst) {
  if (!worst || element.ratio > worst->ratio || (element.ratio == worst->ratio && element.ulps > worst->ulps)) {
    worst = element;
  }
}

}  // namespace

StageTally::StageTally(StageJudgement& result, const std::optional<Limit>& limit, std::size_t rows, std::size_t length)
    : result_(result), heat_(result.heat, rows, length), ulps_(rows * length / 100 + 1) {
  if (limit) result_.limit = LimitResult{*limit, 0, std::nullopt};
  result_.heat = HeatMap(rows, length);
}

void StageTally::add(const JudgedElement& element, std::size_t row) {
  count(element);
  const bool failed = element.breach != Breach::none;
  if (failed) {
    ++result_.counts.failed;
    if (result_.failures.size() < failures_kept) result_.failures.push_back(element);
  }
  const bool by_budget = element.rule == ElementRule::budget || element.rule == ElementRule::budget_exact;
  const bool measured = by_budget && element.trust != Trust::domain;
  if (measured)
    measure(element.ulps, element.ratio, element.got_value < element.exact.hi ? -element.ulps : element.ulps,
            std::fabs(element.got_value) < std::fabs(element.exact.hi) ? -element.ulps : element.ulps);
  if (!measured && !failed) return;
  result_.heat.add(row, element.place.column, element.ratio);
  keep_worst(element, result_.worst);
  if (result_.limit && measured && over_limit(element, result_.limit->limit)) {
    ++result_.limit->violations;
    keep_worst(element, result_.limit->worst);
  }
}

void StageTally::measure(double ulps, double ratio, double signed_ulps, double outward_ulps) {
  result_.max_ratio = std::fmax(result_.max_ratio, ratio);
  ulps_.add(ulps);
  sums_.ulps += ulps;
  sums_.signed_ulps += signed_ulps;
  sums_.outward_ulps += outward_ulps;
}

std::optional<std::size_t> StageTally::add_within(std::size_t row, std::size_t column, const QuickDistances& distances,
                                                  std::size_t from, std::size_t to) {
  double largest = 0;
  for (std::size_t i = from; i < to; ++i) {  // in the order of the elements, as measure() adds them
    sums_.ulps += distances.ulps[i];
    sums_.signed_ulps += distances.signed_and_outward[2 * i];
    sums_.outward_ulps += distances.signed_and_outward[2 * i + 1];
    largest = largest < distances.ratio[i] ? distances.ratio[i] : largest;
  }
  return add_figures(row, column, distances, from, to, largest);
}

std::optional<std::size_t> StageTally::add_block(std::size_t row, std::size_t column, const QuickDistances& distances,
                                                 std::size_t count, const UlpSums& sums) {
  sums_ = sums;
  return add_figures(row, column, distances, 0, count, distances.largest_ratio);
}

std::optional<std::size_t> StageTally::add_figures(std::size_t row, std::size_t column, const QuickDistances& distances,
                                                   std::size_t from, std::size_t to, double largest_ratio) {
  result_.counts.judged += to - from;
  result_.max_ratio = std::max(result_.max_ratio, largest_ratio);
  ulps_.add(distances.ulps.data() + from, to - from);
  heat_.add(row, column + from, distances.ratio.data() + from, to - from);
  if (result_.worst && largest_ratio < result_.worst->ratio) return std::nullopt;
  std::size_t worst = to;  // the first of those that keep_worst() prefers
  for (std::size_t i = from; i < to; ++i)
    if (distances.ratio[i] == largest_ratio && (worst == to || distances.ulps[i] > distances.ulps[worst])) worst = i;
  return worst;
}

void StageTally::offer_worst(const JudgedElement& element) {
  keep_worst(element, result_.worst);
}

void StageTally::finish() {
  heat_.finish();
  const std::uint64_t n = ulps_.count();
  if (n == 0) return;
  result_.histogram = ulps_.histogram();
  result_.max_ulp = ulps_.in_place(0);
  result_.p99_ulp = ulps_.in_place(n - (n * 99 + 99) / 100);
  result_.mean_ulp = sums_.ulps / static_cast<double>(n);
  result_.signed_mean_ulp = sums_.signed_ulps / static_cast<double>(n);
  result_.outward_mean_ulp = sums_.outward_ulps / static_cast<double>(n);
}

void StageTally::count(const JudgedElement& element) {
  ElementCounts& c = result_.counts;
  if (element.rule == ElementRule::hidden) {
    ++c.hidden;
  } else if (element.rule == ElementRule::free) {
    ++c.domain;
  } else if (element.rule == ElementRule::exact_clause || is_by_class(element.rule)) {
    ++c.exact;
  } else {
    ++(element.trust == Trust::domain ? c.domain : element.trust == Trust::mistrusted ? c.mistrusted : c.judged);
  }
}

}  // namespace qkcts
