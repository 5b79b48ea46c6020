// SPDX-License-Identifier: Apache-2.0
#include "reference/refinement.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "reference/declared_row.hpp"
#include "reference/declared_vectors.hpp"
#include "reference/exact_cases.hpp"
#include "reference/exact_softmax.hpp"
#include "reference/fast_tier.hpp"
#include "reference/fixed_values.hpp"
#include "reference/levels.hpp"
#include "reference/recorder.hpp"
#include "reference/refusal.hpp"
#include "reference/row_places.hpp"
#include "reference/row_rules.hpp"

namespace qkcts {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

using Open = std::vector<ElementPlace>;

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

class Refinement {
 public:
  Refinement(const Case& c, const StageRows& stored, const RefinementLimits& limits)
      : limits_(limits),
        values_(c),
        rows_(all_rows(c)),
        exact_(values_),
        softmax_(values_, exact_),
        recorder_(c, stored, result_),
        fixed_(values_, softmax_, recorder_),
        levels_(values_, rows_, limits.levels),
        declared_vectors_(values_, rows_, levels_, result_.exact),
        declared_rows_(values_, rows_, levels_, exact_, softmax_, result_.exact) {}

  ReferenceResult run() {
    const std::unique_ptr<FastTier> fast = fast_tier();
    const bool declared = has_rounding_points(values_.terms.rounding);
    if (declared) {
      declared_vectors_.decide();
      declared_rows_.decide_uniform();
    }
    for (const Side side : all_sides) {
      if (group_stages(side).empty()) continue;
      for (std::int64_t group = 0; group < values_.side(side).group_count(); ++group) {
        if (is_excluded(side, group)) {
          fix_excluded(side, group);
        } else {
          std::optional<Open> open = fast ? fast->settle_group(side, group) : std::nullopt;
          if (!open) open = group_elements(side, group);
          result_.left_open += open->size();
          if (!open->empty()) settle_group<0>(side, group, std::move(*open));
        }
      }
    }
    for (std::vector<double>* statistic :
         {&result_.statistics.entropy, &result_.statistics.p_max, &result_.statistics.score_max})
      statistic->assign(rows_.size(), nan_value);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (declared) declared_rows_.decide(row);
      if (!fast || !fast->fixes_hidden_keys(row)) fixed_.fix_row(rows_[row], static_cast<std::int64_t>(row));
      std::optional<Open> open = fast ? fast->settle_row(row) : std::nullopt;
      if (!open) open = row_elements(row);
      result_.left_open += open->size();
      if (!open->empty()) settle_row<0>(row, std::move(*open));
    }
    result_.highest_precision = levels_.highest_bits();
    return std::move(result_);
  }

 private:
  std::unique_ptr<FastTier> fast_tier() {
    if (limits_.tier == Tier::mpfr) return nullptr;
    return FastTier::create(values_, rows_, result_, limits_.kernels);
  }

  // ---- vectors of q, k and v

  std::vector<qkcts_stage> group_stages(Side side) const {
    std::vector<qkcts_stage> stages;
    for (const qkcts_stage stage : {proj_stage(side), norm_stage(side), rope_stage(side)})
      if (stage != QKCTS_STAGE_COUNT && values_.exists(stage)) stages.push_back(stage);
    return stages;
  }

  bool is_excluded(Side side, std::int64_t group) const {
    if (side == Side::query) return false;
    const SideValues& x = values_.side(side);
    const std::int64_t token = x.token_of(x.row_of(group, 0));
    return values_.is_excluded(token / x.length, token % x.length);
  }

  void fix_excluded(Side side, std::int64_t group) {
    const SideValues& x = values_.side(side);
    for (const qkcts_stage stage : group_stages(side))
      for (std::int64_t member = 0; member < x.heads_in_group(); ++member)
        fixed_.fix_excluded_vector(stage, x.row_of(group, member));
  }

  Open group_elements(Side side, std::int64_t group) const {
    Open open;
    const SideValues& x = values_.side(side);
    for (const qkcts_stage stage : group_stages(side))
      for (std::int64_t member = 0; member < x.heads_in_group(); ++member)
        for (std::int64_t lane = 0; lane < x.head_dim; ++lane) open.push_back({stage, x.row_of(group, member), lane});
    return open;
  }

  template <std::size_t L>
  void settle_group(Side side, std::int64_t group, Open open) {
    using Number = Enclosure<level_digits[L]>;
    const SideValues& x = values_.side(side);
    const GroupEnclosures<level_digits[L]> found = levels_.at<L>().evaluate_group(side, group);
    const auto enclosure = [&](const ElementPlace& place) -> const Number& {
      const std::int64_t head = x.head_of(place.row) - x.first_head(group);
      const auto at = static_cast<std::size_t>(head * x.head_dim + place.column);
      if (place.stage == proj_stage(side)) return found.projected[at];
      return place.stage == norm_stage(side) ? found.normed[at] : found.roped[at];
    };
    const auto rule = [&](const ElementPlace& place, const Rational& t) {
      return exact_.group_entry(side, place.stage, place.row, place.column, t);
    };
    if (!found.usable) exact_.operand(side, open.front().row);  // throws if a root is exactly 0
    if (found.usable) settle_all<L>(open, enclosure, rule, [](const ElementPlace&) { return ElementRule::budget; });
    if (open.empty()) return;
    if constexpr (L + 1 < level_count) {
      if (L + 1 < limits_.levels) return settle_group<L + 1>(side, group, std::move(open));
    }
    refuse(values_, open.front(), precision_bits<level_digits[L]>(),
           found.usable ? bounds_text(enclosure(open.front())) : "");
  }

  // ---- rows of attention

  Open row_elements(std::size_t row) const {
    const RowPlace& place = rows_[row];
    const auto r = static_cast<std::int64_t>(row);
    Open open;
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

  KeySet keys_for(const RowPlace& place, const Open& open) const {
    for (const ElementPlace& element : open)
      if ((element.stage == QKCTS_STAGE_SCORES || element.stage == QKCTS_STAGE_CAPPED) &&
          visible_index(place, element.column) < 0)
        return KeySet::all;
    return KeySet::visible;
  }

  template <unsigned Digits>
  bool set_statistics(std::size_t row, const SoftmaxRow<Digits>& softmax, bool is_last) {
    RowStatistics& s = result_.statistics;
    return set_statistic(s.entropy[row], softmax.entropy, smallest_relative_entropy, is_last) &&
           set_statistic(s.p_max[row], softmax.p_max, 0, is_last) &&
           set_statistic(s.score_max[row], softmax.score_max, 0, is_last);
  }

  template <std::size_t L>
  void settle_row(std::size_t row, Open open) {
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
    if (found.usable) settle_all<L>(open, enclosure, rule, judged_as);
    if (open.empty()) return;
    if constexpr (L + 1 < level_count) {
      if (L + 1 < limits_.levels) return settle_row<L + 1>(row, std::move(open));
    }
    refuse(values_, open.front(), precision_bits<digits>(), found.usable ? bounds_text(enclosure(open.front())) : "");
  }

  // ---- one element

  // Removes from `open` what is decided at level L.
  template <std::size_t L, class EnclosureOf, class Rule, class JudgedAs>
  void settle_all(Open& open, const EnclosureOf& enclosure, const Rule& rule, const JudgedAs& judged_as) {
    const qkcts_stage seen = values_.exists(QKCTS_STAGE_CAPPED) ? QKCTS_STAGE_CAPPED : QKCTS_STAGE_SCORES;
    Open left;
    for (const ElementPlace& place : open) {
      if (place.stage == statistics_stage) {
        left.push_back(place);
        continue;
      }
      // At a visible key `masked` is the number before it; that was settled in this pass, unless it is still open.
      const bool is_copy = L == 0 && place.stage == QKCTS_STAGE_MASKED && left.empty() &&
                           recorder_.copy({seen, place.row, place.column}, QKCTS_STAGE_MASKED);
      if (is_copy) continue;
      const auto& x = enclosure(place);
      if (recorder_.settle(place, lower(x), upper(x), judged_as(place))) continue;
      const bool is_last = L + 1 >= limits_.levels;
      if (L > 0 && settle_by_rule(place, lower(x), upper(x), rule, judged_as(place), is_last)) continue;
      left.push_back(place);
    }
    open = std::move(left);
  }

  // Beside zero the last precision has to have shown that z is negligible: the sign is all that is missing then.
  template <class Rule>
  bool settle_by_rule(const ElementPlace& place, RealView low, RealView high, const Rule& rule, ElementRule judged_as,
                      bool is_last) {
    const std::optional<Boundary> boundary = only_boundary(low, high);
    if (!boundary) return false;
    const Standing standing = rule(place, rational_of(boundary->value.get()));
    const bool at_zero = mpfr_zero_p(boundary->value.get()) != 0;
    if (standing == Standing::unknown) return false;
    const ElementRule decided = judged_as == ElementRule::hidden ? judged_as : ElementRule::budget_exact;
    const int direction = standing == Standing::below ? -1 : 1;
    const bool is_small = is_last && is_negligible(low) && is_negligible(high);
    if (at_zero && standing != Standing::equal && !is_small) return false;
    const Real z = standing == Standing::equal ? boundary->value : beside(*boundary, direction);
    if (!recorder_.settle(place, z.get(), z.get(), decided)) return false;
    ++result_.exact_cases;
    return true;
  }

  template <class Sequence>
  struct PerLevel;
  template <std::size_t... L>
  struct PerLevel<std::index_sequence<L...>> {
    using Rows = std::tuple<RowEnclosures<level_digits[L]>...>;
  };

  RefinementLimits limits_;
  ReferenceResult result_;
  CaseValues values_;
  std::vector<RowPlace> rows_;
  ExactCases exact_;
  ExactSoftmax softmax_;
  Recorder recorder_;
  FixedValues fixed_;
  Levels levels_;
  typename PerLevel<std::make_index_sequence<level_count>>::Rows found_;
  DeclaredVectors declared_vectors_;
  DeclaredRows declared_rows_;
};

}  // namespace

ReferenceResult refine(const Case& c, const StageRows& rows, const RefinementLimits& limits) {
  if (const std::string fault = case_fault(c); !fault.empty())
    throw InputError(fmt::format("case {}: {}", c.slug, fault));
  prepare_thread();
  return Refinement(c, rows, limits).run();
}

}  // namespace qkcts
