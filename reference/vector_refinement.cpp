// SPDX-License-Identifier: Apache-2.0
#include "reference/vector_refinement.hpp"

#include <optional>
#include <utility>

#include "reference/same_vectors.hpp"

namespace qkcts {
namespace {

constexpr StageSet all_but_attention = ~attention_stages;

}  // namespace

VectorRefinement::VectorRefinement(const Case& c, const StageRows& stored, const RefinementLimits& limits,
                                   const VectorRefinement* beside)
    : limits_(limits),
      values_(c),
      rows_(c),
      exact_(values_),
      softmax_(values_, exact_),
      recorder_(c, all_but_attention, stored, result_),
      fixed_(values_, softmax_, recorder_),
      loop_(values_, recorder_, limits.levels, result_.exact_cases),
      vector_levels_(values_),
      levels_(values_, rows_, vector_levels_, limits.levels),
      heads_settled_(static_cast<std::size_t>(c.shape.batch * c.shape.kv_heads), false) {
  if (limits.tier != Tier::mpfr) fast_ = FastVectors::create(values_, result_, limits.kernels);
  for (const Side side : all_sides)
    settled_[static_cast<std::size_t>(side)].assign(static_cast<std::size_t>(values_.side(side).group_count()), false);
  if (!has_rounding_points(values_.terms.rounding)) return;
  const std::vector<Side> taken = beside == nullptr ? std::vector<Side>{} : take_points(*beside);
  DeclaredVectors(values_, rows_, levels_, result_.exact).decide(taken);
}

// The sides whose rounding points are those of another contract, after they have been taken over.
std::vector<Side> VectorRefinement::take_points(const VectorRefinement& from) {
  std::vector<Side> taken;
  for (const Side side : all_sides) {
    if (!have_same_side(values_.input, from.values_.input, side)) continue;
    taken.push_back(side);
    values_.side(side).given = from.values_.side(side).given;
    if (Projection* projection = values_.projection(side))
      projection->source.given = from.values_.projection(side)->source.given;
    for (const qkcts_stage stage : stages(side)) result_.exact.before[stage] = from.result_.exact.before[stage];
  }
  return taken;
}

std::vector<qkcts_stage> VectorRefinement::stages(Side side) const {
  std::vector<qkcts_stage> stages;
  for (const qkcts_stage stage : {proj_stage(side), norm_stage(side), rope_stage(side)})
    if (stage != QKCTS_STAGE_COUNT && values_.exists(stage)) stages.push_back(stage);
  return stages;
}

void VectorRefinement::settle_all() {
  for (const Side side : all_sides)
    for (std::int64_t group = 0; group < values_.side(side).group_count(); ++group) settle(side, group);
}

void VectorRefinement::settle_stored() {
  StageRows rows;
  for (const qkcts_stage stage : all_stages) rows[stage] = result_.stages[stage].rows;
  settle_rows(rows);
}

void VectorRefinement::settle_rows(const StageRows& rows) {
  for (const Side side : all_sides)
    for (const qkcts_stage stage : stages(side))
      for (const std::uint32_t row : rows[stage])
        settle(side, values_.side(side).group_of(static_cast<std::int64_t>(row)));
}

void VectorRefinement::settle_for(const RowPlace& place, std::int64_t kv_head) {
  const qkcts_shape& shape = values_.shape;
  settle(Side::query, values_.q.group_of((place.b * shape.q_heads + place.h) * shape.q_len + place.qq));
  const auto head = static_cast<std::size_t>(place.b * shape.kv_heads + kv_head);
  if (heads_settled_[head]) return;
  heads_settled_[head] = true;
  for (const Side side : {Side::key, Side::value})
    for (std::int64_t key = 0; key < shape.k_len; ++key)
      settle(side, values_.side(side).group_of((place.b * shape.kv_heads + kv_head) * shape.k_len + key));
}

// Where the contract has no stage of the side, the fast tier still makes its vectors.
void VectorRefinement::settle(Side side, std::int64_t group) {
  std::vector<bool>::reference settled = settled_[static_cast<std::size_t>(side)][static_cast<std::size_t>(group)];
  if (settled) return;
  settled = true;
  begin(side, group);
  const bool excluded = is_excluded(side, group);
  std::optional<OpenElements> open = fast_ ? fast_->settle_group(side, group) : std::nullopt;
  if (excluded) return fix_excluded(side, group);
  if (!open) open = elements(side, group);
  result_.left_open += open->size();
  if (!open->empty()) refine<0>(side, group, std::move(*open));
}

void VectorRefinement::begin(Side side, std::int64_t group) {
  const SideValues& x = values_.side(side);
  for (const qkcts_stage stage : {proj_stage(side), norm_stage(side), rope_stage(side)}) {
    if (stage == QKCTS_STAGE_COUNT || !values_.exists(stage)) continue;
    for (std::int64_t member = 0; member < x.heads_in_group(); ++member)
      recorder_.begin_vector(stage, x.row_of(group, member));
  }
}

bool VectorRefinement::is_excluded(Side side, std::int64_t group) const {
  if (side == Side::query) return false;
  const SideValues& x = values_.side(side);
  const std::int64_t token = x.token_of(x.row_of(group, 0));
  return values_.is_excluded(token / x.length, token % x.length);
}

void VectorRefinement::fix_excluded(Side side, std::int64_t group) {
  const SideValues& x = values_.side(side);
  for (const qkcts_stage stage : stages(side))
    for (std::int64_t member = 0; member < x.heads_in_group(); ++member)
      fixed_.fix_excluded_vector(stage, x.row_of(group, member));
}

OpenElements VectorRefinement::elements(Side side, std::int64_t group) const {
  OpenElements open;
  const SideValues& x = values_.side(side);
  for (const qkcts_stage stage : stages(side))
    for (std::int64_t member = 0; member < x.heads_in_group(); ++member)
      for (std::int64_t lane = 0; lane < x.head_dim; ++lane) open.push_back({stage, x.row_of(group, member), lane});
  return open;
}

template <std::size_t L>
void VectorRefinement::refine(Side side, std::int64_t group, OpenElements open) {
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
  if (found.usable) loop_.settle<L>(open, enclosure, rule, [](const ElementPlace&) { return ElementRule::budget; });
  if (open.empty()) return;
  if constexpr (L + 1 < level_count) {
    if (L + 1 < limits_.levels) return refine<L + 1>(side, group, std::move(open));
  }
  refuse(values_, open.front(), precision_bits<level_digits[L]>(),
         found.usable ? bounds_text(enclosure(open.front())) : "");
}

}  // namespace qkcts
