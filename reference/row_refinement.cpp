// SPDX-License-Identifier: Apache-2.0
#include "reference/row_refinement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "reference/row_rules.hpp"

namespace qkcts {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

// RN64(x) as soon as a precision shows it, so that every tier stores the same bits. Within 1e-6 (or an ulp64, where
// binary64 gives no more) is enough where x stands within 2^-100 of a rounding boundary, perhaps on it; below `floor`;
// and at the last precision.
template <unsigned Digits>
bool set_statistic(double& target, const Enclosure<Digits>& x, double floor, bool is_last) {
  if (!is_finite(x)) return false;
  const double low = mpfr_get_d(lower(x), MPFR_RNDN);
  const double high = mpfr_get_d(upper(x), MPFR_RNDN);
  target = low;
  if (low == high) return true;
  if (high - low > 5e-7 && std::nextafter(low, high) != high) return false;
  if (is_last || high < floor || mpfr_zero_p(lower(x)) != 0) return true;
  Real width(64);
  mpfr_sub(width.get(), upper(x), lower(x), MPFR_RNDU);
  return mpfr_get_exp(width.get()) < mpfr_get_exp(lower(x)) - 100;
}

// Of an entropy near 0 only the absolute size is known: it is a difference of numbers near 1.
constexpr double smallest_relative_entropy = 0x1p-30;

// The same vectors under another contract: what their rounding points made of them is that of the first.
std::optional<CaseValues> values_of_its_own(const Case& c, const CaseValues& first) {
  if (&c == &first.input) return std::nullopt;
  std::optional<CaseValues> values(std::in_place, c);
  for (const Side side : all_sides) values->side(side).given = first.side(side).given;
  return values;
}

}  // namespace

RowRefinement::RowRefinement(const Case& c, const StageRows& stored, const RefinementLimits& limits,
                             VectorRefinement& vectors)
    : limits_(limits),
      vectors_(vectors),
      own_values_(values_of_its_own(c, vectors.values())),
      values_(own_values_ ? *own_values_ : vectors.values()),
      rows_(c),
      exact_(values_),
      softmax_(values_, exact_),
      recorder_(c, attention_stages, stored, result_),
      fixed_(values_, softmax_, recorder_),
      loop_(values_, recorder_, limits.levels, result_.exact_cases),
      levels_(values_, rows_, vectors.levels(), limits.levels) {
  if (vectors.fast() != nullptr) fast_ = FastTier::create(values_, rows_, *vectors.fast(), result_);
  if (has_rounding_points(values_.terms.rounding)) {
    declared_.emplace(values_, rows_, levels_, exact_, softmax_, recorder_);
    declared_->decide_uniform();
  }
  for (std::vector<double>* statistic :
       {&result_.statistics.entropy, &result_.statistics.p_max, &result_.statistics.score_max})
    statistic->assign(rows_.count(), nan_value);
}

void RowRefinement::evaluate(std::span<const std::uint32_t> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] >= rows_.count() || (i > 0 && rows[i] <= rows[i - 1]))
      throw InputError(
          fmt::format("case {}: rows of attention must ascend and stay below {}", values_.input.slug, rows_.count()));
  rows_.hold(rows);
  recorder_.hold(rows);
  for (const std::uint32_t row : rows) vectors_.settle_for(rows_[row], values_.kv_head(rows_[row].h));
  if (fast_) fast_->begin_block();
  for (const std::uint32_t row : rows) settle(row);
}

void RowRefinement::settle(std::size_t row) {
  recorder_.begin(static_cast<std::int64_t>(row));
  if (declared_) declared_->decide(row);
  if (!fast_ || !fast_->fixes_hidden_keys(row)) fixed_.fix_row(rows_[row], static_cast<std::int64_t>(row));
  std::optional<OpenElements> open = fast_ ? fast_->settle_row(row) : std::nullopt;
  if (!open) open = elements(row);
  result_.left_open += open->size();
  if (!open->empty()) refine<0>(row, std::move(*open));
}

OpenElements RowRefinement::elements(std::size_t row) const {
  const RowPlace& place = rows_[row];
  const auto r = static_cast<std::int64_t>(row);
  OpenElements open;
  for (std::int64_t key = 0; key < values_.shape.k_len; ++key) {
    if (values_.is_excluded(place.b, key)) continue;
    open.push_back({QKCTS_STAGE_SCORES, r, key});
    if (values_.exists(QKCTS_STAGE_CAPPED) && !has_minus_infinite_bias(values_, place, key))
      open.push_back({QKCTS_STAGE_CAPPED, r, key});
  }
  const auto open_output = [&] {
    for (std::int64_t d = 0; d < values_.shape.v_head_dim; ++d) open.push_back({QKCTS_STAGE_OUTPUT, r, d});
  };
  if (place.visible.empty()) {
    if (values_.means_normed_values()) open_output();
    return open;
  }
  for (const std::uint32_t key : place.visible) {
    if (values_.exists(QKCTS_STAGE_MASKED)) open.push_back({QKCTS_STAGE_MASKED, r, key});
    open.push_back({QKCTS_STAGE_PROBS, r, key});
  }
  open.push_back({QKCTS_STAGE_LSE, r, 0});
  open_output();
  open.push_back({statistics_stage, r, 0});
  return open;
}

KeySet RowRefinement::keys_for(const RowPlace& place, const OpenElements& open) {
  for (const ElementPlace& element : open)
    if ((element.stage == QKCTS_STAGE_SCORES || element.stage == QKCTS_STAGE_CAPPED) &&
        visible_index(place, element.column) < 0)
      return KeySet::all;
  return KeySet::visible;
}

template <unsigned Digits>
bool RowRefinement::set_statistics(std::size_t row, const SoftmaxRow<Digits>& softmax, bool is_last) {
  RowStatistics& s = result_.statistics;
  return set_statistic(s.entropy[row], softmax.entropy, smallest_relative_entropy, is_last) &&
         set_statistic(s.p_max[row], softmax.p_max, 0, is_last) &&
         set_statistic(s.score_max[row], softmax.score_max, 0, is_last);
}

template <std::size_t L>
void RowRefinement::refine(std::size_t row, OpenElements open) {
  constexpr unsigned digits = level_digits[L];
  using Number = Enclosure<digits>;
  const RowPlace& place = rows_[row];
  RowEnclosures<digits>& found = std::get<L>(found_);
  levels_.at<L>().evaluate_row(row, keys_for(place, open), found);

  if (found.usable && !open.empty() && open.back().stage == statistics_stage &&
      set_statistics(row, found.softmax, L + 1 >= limits_.levels))
    open.pop_back();
  RowRules<digits> rules(values_, exact_, softmax_, place, found);
  const auto enclosure = [&](const ElementPlace& element) -> const Number& { return rules.enclosure(element); };
  const auto rule = [&](const ElementPlace& element, const Rational& t) { return rules.standing(element, t); };
  const auto judged_as = [&](const ElementPlace& element) {
    const bool may_hide = element.stage == QKCTS_STAGE_SCORES || element.stage == QKCTS_STAGE_CAPPED;
    return may_hide && visible_index(place, element.column) < 0 ? ElementRule::hidden : ElementRule::budget;
  };
  if (!found.usable && place.visible.empty()) rules.standing(open.back(), Rational(0));  // throws as for a group
  if (found.usable) loop_.settle<L>(open, enclosure, rule, judged_as);
  if (open.empty()) return;
  if constexpr (L + 1 < level_count) {
    if (L + 1 < limits_.levels) return refine<L + 1>(row, std::move(open));
  }
  refuse(values_, open.front(), precision_bits<digits>(), found.usable ? bounds_text(enclosure(open.front())) : "");
}

}  // namespace qkcts
