// SPDX-License-Identifier: Apache-2.0
#include "harness/stage_tally.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace qkcts {
namespace {

constexpr double put_aside_ratio = -1;  // as heat_unjudged

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

void put_aside(EachDistance& each, std::size_t i) {
  each.ulps[i] = no_ulps;
  each.ratio[i] = put_aside_ratio;
  each.signed_ulps[i] = each.outward_ulps[i] = 0;
}

StageTally::StageTally(StageJudgement& result, const std::optional<Limit>& limit, std::size_t rows, std::size_t length)
    : result_(result), heat_(result.heat, rows, length), ulps_(rows * length / 100 + 1) {
  if (limit) result_.limit = LimitResult{*limit, 0, std::nullopt};
  result_.heat = HeatMap(rows, length);
}

void StageTally::add(const JudgedElement& element, std::size_t row) {
  count(element.rule, element.trust);
  const bool failed = element.breach != Breach::none;
  if (failed) {
    fail();
    if (keeps_more_failures()) keep_failure(element);
  }
  const bool by_budget = element.rule == ElementRule::budget || element.rule == ElementRule::budget_exact;
  const bool measured = by_budget && element.trust != Trust::domain;
  if (measured) measure(element);
  if (!measured && !failed) return;
  result_.heat.add(row, element.place.column, element.ratio);
  offer({element.ratio, element.ulps, row, element.place.column});
  if (result_.limit && measured && over_limit(element, result_.limit->limit)) {
    ++result_.limit->violations;
    keep_worst(element, result_.limit->worst);
  }
}

void StageTally::measure(const JudgedElement& element) {
  const double got = element.got_value, due = element.exact.hi;
  const std::size_t lane = element.place.column % UlpSums::lanes;
  result_.max_ratio = std::fmax(result_.max_ratio, element.ratio);
  ulps_.add(element.ulps);
  sums_.ulps[lane] += element.ulps;
  sums_.signed_ulps[lane] += got < due ? -element.ulps : element.ulps;
  sums_.outward_ulps[lane] += std::fabs(got) < std::fabs(due) ? -element.ulps : element.ulps;
}

void StageTally::offer(const Worst& other) {
  const auto earlier = [](const Worst& a, const Worst& b) {
    return std::tie(a.row, a.column) < std::tie(b.row, b.column);
  };
  if (!worst_ || other.ratio > worst_->ratio ||
      (other.ratio == worst_->ratio &&
       (other.ulps > worst_->ulps || (other.ulps == worst_->ulps && earlier(other, *worst_)))))
    worst_ = other;
}

bool StageTally::add_within(std::size_t row, std::size_t column, const WithinDelta& within, std::size_t count) {
  result_.counts.judged += count;
  const bool above_zero = ulps_.add(within.ulps.data(), blocks_of(count), count);
  heat_.add(row, column, within.ratio.data(), count);
  return !worst_ || above_zero;
}

void StageTally::offer_worst(std::size_t row, std::size_t column, const EachDistance& each, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double ratio = each.ratio[i];
    if (ratio < result_.max_ratio) continue;  // put aside, too
    result_.max_ratio = ratio;
    offer({ratio, each.ulps[i], row, column + i});
  }
}

void StageTally::add_each(std::size_t row, std::size_t column, const EachDistance& each, std::size_t count) {
  alignas(64) std::array<float, quick_elements> ratios;
  std::size_t measured = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ratios[i] = static_cast<float>(each.ratio[i]);
    measured += each.ratio[i] == put_aside_ratio ? 0 : 1;
    const std::size_t lane = i % UlpSums::lanes;
    sums_.ulps[lane] += each.ulps[i];
    sums_.signed_ulps[lane] += each.signed_ulps[i];
    sums_.outward_ulps[lane] += each.outward_ulps[i];
  }
  if (measured == 0) return;
  result_.counts.judged += measured;
  ulps_.add(each.ulps.data(), 1, measured);
  heat_.add(row, column, ratios.data(), count);
  offer_worst(row, column, each, count);
}

void StageTally::finish() {
  heat_.finish();
  const std::uint64_t n = ulps_.count();
  if (n == 0) return;
  result_.histogram = ulps_.histogram();
  result_.max_ulp = ulps_.in_place(0);
  result_.p99_ulp = ulps_.in_place(n - (n * 99 + 99) / 100);
  result_.mean_ulp = sum_of(sums_.ulps) / static_cast<double>(n);
  result_.signed_mean_ulp = sum_of(sums_.signed_ulps) / static_cast<double>(n);
  result_.outward_mean_ulp = sum_of(sums_.outward_ulps) / static_cast<double>(n);
}

void StageTally::count(ElementRule rule, Trust trust) {
  ElementCounts& c = result_.counts;
  if (rule == ElementRule::hidden) {
    ++c.hidden;
  } else if (rule == ElementRule::free) {
    ++c.domain;
  } else if (rule == ElementRule::exact_clause || is_by_class(rule)) {
    ++c.exact;
  } else {
    ++(trust == Trust::domain ? c.domain : trust == Trust::mistrusted ? c.mistrusted : c.judged);
  }
}

}  // namespace qkcts
