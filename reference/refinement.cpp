// SPDX-License-Identifier: Apache-2.0
#include "reference/refinement.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "reference/exact_cases.hpp"
#include "reference/level.hpp"
#include "reference/recorder.hpp"

namespace qkcts {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

using Open = std::vector<ElementPlace>;

// Stand-in stage of the row statistics in a list of open elements.
constexpr qkcts_stage statistics_stage = QKCTS_STAGE_COUNT;

std::vector<RowPlace> all_rows(const Case& c) {
  const Visibility visibility(c);
  std::vector<RowPlace> rows;
  for (std::int64_t b = 0; b < c.shape.batch; ++b)
    for (std::int64_t h = 0; h < c.shape.q_heads; ++h)
      for (std::int64_t qq = 0; qq < c.shape.q_len; ++qq) {
        RowPlace& row = rows.emplace_back(RowPlace{b, h, qq, {}});
        for (std::int64_t key = 0; key < c.shape.k_len; ++key)
          if (visibility.visible(b, h, qq, key)) row.visible.push_back(static_cast<std::uint32_t>(key));
      }
  return rows;
}

// Index of a key among the visible ones, or -1.
std::int64_t visible_index(const RowPlace& place, std::int64_t key) {
  const auto at = std::lower_bound(place.visible.begin(), place.visible.end(), static_cast<std::uint32_t>(key));
  if (at == place.visible.end() || *at != static_cast<std::uint32_t>(key)) return -1;
  return at - place.visible.begin();
}

// Within 1e-6, or within an ulp64 where the value is so large that binary64 gives no more.
template <unsigned Digits>
bool set_statistic(double& target, const Enclosure<Digits>& x) {
  if (!is_finite(x)) return false;
  const double low = mpfr_get_d(lower(x), MPFR_RNDN);
  const double high = mpfr_get_d(upper(x), MPFR_RNDN);
  target = low;
  return high - low <= 5e-7 || std::nextafter(low, high) == high;
}

class Refinement {
 public:
  Refinement(const Case& c, const StageRows& stored, const RefinementLimits& limits)
      : limits_(limits), values_(c), rows_(all_rows(c)), exact_(values_), recorder_(c, stored, result_) {}

  ReferenceResult run() {
    result_.highest_precision = static_cast<int>(precision_bits<level_digits[0]>());
    for (const Side side : {Side::query, Side::key}) {
      if (group_stages(side).empty()) continue;
      for (std::int64_t group = 0; group < values_.side(side).group_count(); ++group)
        settle_group<0>(side, group, group_elements(side, group));
    }
    for (std::vector<double>* statistic :
         {&result_.statistics.entropy, &result_.statistics.p_max, &result_.statistics.score_max})
      statistic->assign(rows_.size(), nan_value);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      fix_by_contract(row);
      settle_row<0>(row, row_elements(row));
    }
    return std::move(result_);
  }

 private:
  template <std::size_t L>
  Level<level_digits[L]>& level() {
    auto& slot = std::get<L>(levels_);
    if (!slot) slot = std::make_unique<Level<level_digits[L]>>(values_, rows_);
    result_.highest_precision =
        std::max(result_.highest_precision, static_cast<int>(precision_bits<level_digits[L]>()));
    return *slot;
  }

  // ---- vectors of q and k

  std::vector<qkcts_stage> group_stages(Side side) const {
    std::vector<qkcts_stage> stages;
    for (const qkcts_stage stage : side == Side::query ? std::array{QKCTS_STAGE_Q_NORM, QKCTS_STAGE_Q_ROPE}
                                                       : std::array{QKCTS_STAGE_K_NORM, QKCTS_STAGE_K_ROPE})
      if (values_.exists(stage)) stages.push_back(stage);
    return stages;
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
    const GroupEnclosures<level_digits[L]> found = level<L>().evaluate_group(side, group);
    const auto enclosure = [&](const ElementPlace& place) -> const Number& {
      const bool is_norm = place.stage == QKCTS_STAGE_Q_NORM || place.stage == QKCTS_STAGE_K_NORM;
      const std::int64_t head = place.row / x.length % x.heads - x.first_head(group);
      return (is_norm ? found.normed : found.roped)[static_cast<std::size_t>(head * x.head_dim + place.column)];
    };
    const auto rule = [&](const ElementPlace& place, const Rational& t) {
      return exact_.group_entry(side, place.stage, place.row, place.column, t);
    };
    if (!found.usable) rule(open.front(), Rational(0));  // throws if the root is exactly 0
    if (found.usable) settle_all<L>(open, enclosure, rule, [](const ElementPlace&) { return ElementRule::budget; });
    if (open.empty()) return;
    if constexpr (L + 1 < level_count) {
      if (L + 1 < limits_.levels) return settle_group<L + 1>(side, group, std::move(open));
    }
    refuse(open.front(), precision_bits<level_digits[L]>(), found.usable ? bounds_text(enclosure(open.front())) : "");
  }

  // ---- rows of attention

  // Hidden keys and empty rows: what the contract says without any arithmetic.
  void fix_by_contract(std::size_t row) {
    const RowPlace& place = rows_[row];
    const auto r = static_cast<std::int64_t>(row);
    const bool empty = place.visible.empty();
    const std::uint32_t policy = values_.terms.mask.empty_row;
    const std::int64_t keys = values_.shape.k_len;
    for (std::int64_t key = 0; key < keys; ++key) {
      if (minus_infinite_bias(place, key) && values_.exists(QKCTS_STAGE_CAPPED))
        recorder_.fix({QKCTS_STAGE_CAPPED, r, key}, capped_at_minus_infinity(values_.terms.score), ElementRule::hidden);
      if (visible_index(place, key) >= 0) continue;
      if (values_.exists(QKCTS_STAGE_MASKED))
        recorder_.fix({QKCTS_STAGE_MASKED, r, key}, -infinity, ElementRule::hidden);
      if (empty && policy == QKCTS_EMPTY_UNIFORM) {
        settle_rational({QKCTS_STAGE_PROBS, r, key}, Rational(1) / Rational(keys));
      } else {
        const bool nan = empty && policy == QKCTS_EMPTY_NAN;
        recorder_.fix({QKCTS_STAGE_PROBS, r, key}, nan ? nan_value : 0.0, ElementRule::exact_clause);
      }
    }
    if (!empty) return;
    recorder_.fix({QKCTS_STAGE_LSE, r, 0}, policy == QKCTS_EMPTY_NAN ? nan_value : -infinity,
                  ElementRule::exact_clause);
    for (std::int64_t d = 0; d < values_.shape.v_head_dim; ++d) {
      const ElementPlace output{QKCTS_STAGE_OUTPUT, r, d};
      if (policy == QKCTS_EMPTY_UNIFORM) {
        settle_rational(output, exact_.column_mean(place.b, values_.kv_head(place.h), d));
      } else {
        recorder_.fix(output, policy == QKCTS_EMPTY_NAN ? nan_value : 0.0, ElementRule::exact_clause);
      }
    }
  }

  // A rational whose denominator is not a power of two is on no boundary and at least about 2^-2200 of its size away
  // from each; any other that can occur here is represented exactly. So the last level decides.
  void settle_rational(const ElementPlace& place, const Rational& value) {
    const Enclosure<level_digits.back()> x = enclosure_of<level_digits.back()>(value);
    if (!recorder_.settle(place, lower(x), upper(x), ElementRule::budget))
      refuse(place, precision_bits<level_digits.back()>(), bounds_text(x));
  }

  bool minus_infinite_bias(const RowPlace& place, std::int64_t key) const {
    return values_.has_bias() && std::isinf(values_.bias(place.b, place.h, place.qq, key));
  }

  Open row_elements(std::size_t row) const {
    const RowPlace& place = rows_[row];
    const auto r = static_cast<std::int64_t>(row);
    Open open;
    for (std::int64_t key = 0; key < values_.shape.k_len; ++key) {
      open.push_back({QKCTS_STAGE_SCORES, r, key});
      if (values_.exists(QKCTS_STAGE_CAPPED) && !minus_infinite_bias(place, key))
        open.push_back({QKCTS_STAGE_CAPPED, r, key});
    }
    if (place.visible.empty()) return open;
    for (const std::uint32_t key : place.visible) {
      if (values_.exists(QKCTS_STAGE_MASKED)) open.push_back({QKCTS_STAGE_MASKED, r, key});
      open.push_back({QKCTS_STAGE_PROBS, r, key});
    }
    open.push_back({QKCTS_STAGE_LSE, r, 0});
    for (std::int64_t d = 0; d < values_.shape.v_head_dim; ++d) open.push_back({QKCTS_STAGE_OUTPUT, r, d});
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
  bool set_statistics(std::size_t row, const SoftmaxRow<Digits>& softmax) {
    RowStatistics& s = result_.statistics;
    return set_statistic(s.entropy[row], softmax.entropy) && set_statistic(s.p_max[row], softmax.p_max) &&
           set_statistic(s.score_max[row], softmax.score_max);
  }

  template <std::size_t L>
  void settle_row(std::size_t row, Open open) {
    constexpr unsigned digits = level_digits[L];
    using Number = Enclosure<digits>;
    const RowPlace& place = rows_[row];
    RowEnclosures<digits>& found = std::get<L>(found_);
    level<L>().evaluate_row(row, keys_for(place, open), found);

    if (found.usable && !open.empty() && open.back().stage == statistics_stage && set_statistics(row, found.softmax))
      open.pop_back();
    const auto enclosure = [&](const ElementPlace& element) -> const Number& {
      const auto column = static_cast<std::size_t>(element.column);
      switch (element.stage) {
        case QKCTS_STAGE_SCORES:
          return found.scores[column];
        case QKCTS_STAGE_CAPPED:
          return found.capped[column];
        case QKCTS_STAGE_MASKED:
          return found.seen(column);
        case QKCTS_STAGE_PROBS:
          return found.probs[static_cast<std::size_t>(visible_index(place, element.column))];
        case QKCTS_STAGE_OUTPUT:
          return found.output[column];
        case QKCTS_STAGE_LSE:
          return found.softmax.lse;
        default:
          return found.softmax.entropy;
      }
    };
    std::vector<std::uint32_t> groups;
    const auto rule = [&](const ElementPlace& element, const Rational& t) {
      switch (element.stage) {
        case QKCTS_STAGE_SCORES:
        case QKCTS_STAGE_CAPPED:
        case QKCTS_STAGE_MASKED:
          return exact_.score(element.stage, place, element.column, t);
        case QKCTS_STAGE_LSE:
          return exact_.lse(place, place.visible[found.softmax.largest], t);
        case QKCTS_STAGE_OUTPUT:
          if (groups.empty()) {
            groups = exact_.equal_groups(place, [&](std::size_t i, std::size_t j) {
              return overlap(found.seen(place.visible[i]), found.seen(place.visible[j]));
            });
          }
          return exact_.output(place, groups, element.column, t);
        default:
          return Standing::unknown;
      }
    };
    const auto judged_as = [&](const ElementPlace& element) {
      const bool may_hide = element.stage == QKCTS_STAGE_SCORES || element.stage == QKCTS_STAGE_CAPPED;
      return may_hide && visible_index(place, element.column) < 0 ? ElementRule::hidden : ElementRule::budget;
    };
    if (found.usable) settle_all<L>(open, enclosure, rule, judged_as);
    if (open.empty()) return;
    if constexpr (L + 1 < level_count) {
      if (L + 1 < limits_.levels) return settle_row<L + 1>(row, std::move(open));
    }
    refuse(open.front(), precision_bits<digits>(), found.usable ? bounds_text(enclosure(open.front())) : "");
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
      if (L > 0 && settle_by_rule(place, lower(x), upper(x), rule, judged_as(place))) continue;
      left.push_back(place);
    }
    open = std::move(left);
  }

  template <class Rule>
  bool settle_by_rule(const ElementPlace& place, RealView low, RealView high, const Rule& rule, ElementRule judged_as) {
    const std::optional<Boundary> boundary = only_boundary(low, high);
    if (!boundary) return false;
    const Standing standing = rule(place, rational_of(boundary->value.get()));
    const bool at_zero = mpfr_zero_p(boundary->value.get()) != 0;
    if (standing == Standing::unknown || (at_zero && standing != Standing::equal)) return false;
    const ElementRule decided = judged_as == ElementRule::hidden ? judged_as : ElementRule::budget_exact;
    const int direction = standing == Standing::below ? -1 : 1;
    const Real z = standing == Standing::equal ? boundary->value : beside(*boundary, direction);
    if (!recorder_.settle(place, z.get(), z.get(), decided)) return false;
    ++result_.exact_cases;
    return true;
  }

  template <unsigned Digits>
  static std::string bounds_text(const Enclosure<Digits>& x) {
    return fmt::format(" between {} and {}", decimal_text(lower(x), 30), decimal_text(upper(x), 30));
  }

  [[noreturn]] void refuse(const ElementPlace& place, long bits, const std::string& bounds) const {
    const bool statistics = place.stage == statistics_stage;
    const qkcts_stage stage = statistics ? QKCTS_STAGE_LSE : place.stage;
    const std::vector<std::int64_t> extents = stage_shape(stage, values_.shape);
    std::string where = fmt::format("b{} h{} t{}", place.row / (extents[1] * extents[2]),
                                    place.row / extents[2] % extents[1], place.row % extents[2]);
    if (extents.size() == 4) where += fmt::format(" c{}", place.column);
    throw UndecidedError(fmt::format("case {}: {}[{}]: rounding not proven with {} bits{}; use another seed or value",
                                     values_.input.slug, statistics ? "row statistics" : stage_name(stage), where, bits,
                                     bounds));
  }

  template <class Sequence>
  struct PerLevel;
  template <std::size_t... L>
  struct PerLevel<std::index_sequence<L...>> {
    using Levels = std::tuple<std::unique_ptr<Level<level_digits[L]>>...>;
    using Rows = std::tuple<RowEnclosures<level_digits[L]>...>;
  };
  using Types = PerLevel<std::make_index_sequence<level_count>>;

  RefinementLimits limits_;
  ReferenceResult result_;
  CaseValues values_;
  std::vector<RowPlace> rows_;
  ExactCases exact_;
  Recorder recorder_;
  typename Types::Levels levels_;
  typename Types::Rows found_;
};

}  // namespace

ReferenceResult refine(const Case& c, const StageRows& rows, const RefinementLimits& limits) {
  if (const std::string fault = case_fault(c); !fault.empty())
    throw InputError(fmt::format("case {}: {}", c.slug, fault));
  prepare_thread();
  return Refinement(c, rows, limits).run();
}

}  // namespace qkcts
