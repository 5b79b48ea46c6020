// SPDX-License-Identifier: Apache-2.0
#include "harness/stage_tally.hpp"

#include <cmath>
#include <span>

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

// The element of that rank in rising order, of numbers >= 0. Their bit patterns rise as they do: the leading bits are
// counted, and only what shares them with the element that is sought is sorted out.
double of_rank(std::vector<double>& values, std::size_t rank) {
  constexpr std::size_t classes = 4096;
  constexpr std::uint64_t lowest = std::uint64_t{1023 - 40} << 6U;  // 2^-40, of 64 classes to a binade
  const auto class_of = [](double value) {
    const std::uint64_t leading = std::bit_cast<std::uint64_t>(value) >> 46U;
    return leading < lowest ? 0 : std::min<std::uint64_t>(leading - lowest, classes - 1);
  };
  std::array<std::uint32_t, classes> counts{};
  for (const double value : values) ++counts[class_of(value)];
  std::size_t sought = 0;
  for (; rank >= counts[sought]; ++sought) rank -= counts[sought];
  std::erase_if(values, [&](double value) { return class_of(value) != sought; });
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank), values.end());
  return values[rank];
}

void keep_worst(const JudgedElement& element, std::optional<JudgedElement>& worst) {
  if (!worst || element.ratio > worst->ratio || (element.ratio == worst->ratio && element.ulps > worst->ulps)) {
    worst = element;
  }
}

}  // namespace

StageTally::StageTally(StageJudgement& result, const std::optional<Limit>& limit, std::size_t rows, std::size_t length)
    : result_(result), rows_(rows) {
  if (limit) result_.limit = LimitResult{*limit, 0, std::nullopt};
  result_.heat = HeatMap(rows, length);
  for (std::size_t column = 0; column < length; ++column)
    heat_column_.push_back(static_cast<std::uint16_t>(column * result_.heat.columns() / length));
  ulps_.reserve(rows * length);
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
  result_.heat.add_to(heat_row(row), heat_column_[element.place.column], element.ratio);
  keep_worst(element, result_.worst);
  if (result_.limit && measured && over_limit(element, result_.limit->limit)) {
    ++result_.limit->violations;
    keep_worst(element, result_.limit->worst);
  }
}

void StageTally::measure(double ulps, double ratio, double signed_ulps, double outward_ulps) {
  result_.max_ulp = std::fmax(result_.max_ulp, ulps);
  result_.max_ratio = std::fmax(result_.max_ratio, ratio);
  ++result_.histogram[histogram_class(ulps)];
  ulps_.push_back(ulps);
  sum_ += ulps;
  signed_sum_ += signed_ulps;
  outward_sum_ += outward_ulps;
}

bool StageTally::add_within(std::size_t row, std::size_t column, const QuickDistances& distances, std::size_t from,
                            std::size_t to) {
  double largest_ratio = 0, largest = 0;
  for (std::size_t i = from; i < to; ++i) {
    largest_ratio = largest_ratio < distances.ratio[i] ? distances.ratio[i] : largest_ratio;
    largest = largest < distances.ulps[i] ? distances.ulps[i] : largest;
  }
  if (!result_.worst || !(largest_ratio < result_.worst->ratio)) return false;
  result_.counts.judged += to - from;
  result_.max_ulp = std::fmax(result_.max_ulp, largest);
  result_.max_ratio = std::fmax(result_.max_ratio, largest_ratio);
  // In the order of the elements, as measure() adds them.
  double sum = sum_, signed_sum = signed_sum_, outward_sum = outward_sum_;
  for (std::size_t i = from; i < to; ++i) {
    sum += distances.ulps[i];
    signed_sum += distances.signed_ulps[i];
    outward_sum += distances.outward_ulps[i];
  }
  sum_ = sum;
  signed_sum_ = signed_sum;
  outward_sum_ = outward_sum;
  for (std::size_t i = from; i < to; ++i) ++result_.histogram[histogram_class(distances.ulps[i])];
  ulps_.insert(ulps_.end(), distances.ulps.data() + from, distances.ulps.data() + to);
  const std::size_t heat = heat_row(row);
  const std::span<const std::uint16_t> cells = std::span(heat_column_).subspan(column);
  for (std::size_t i = from; i < to;) {
    const std::uint16_t cell = cells[i - from];
    double hottest = 0;
    for (; i < to && cells[i - from] == cell; ++i)
      hottest = hottest < distances.ratio[i] ? distances.ratio[i] : hottest;
    result_.heat.add_to(heat, cell, hottest);
  }
  return true;
}

void StageTally::finish() {
  if (ulps_.empty()) return;
  const auto n = static_cast<double>(ulps_.size());
  result_.mean_ulp = sum_ / n;
  result_.signed_mean_ulp = signed_sum_ / n;
  result_.outward_mean_ulp = outward_sum_ / n;
  const std::size_t rank = (ulps_.size() * 99 + 99) / 100 - 1;
  result_.p99_ulp = of_rank(ulps_, rank);
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
