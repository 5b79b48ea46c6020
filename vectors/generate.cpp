// SPDX-License-Identifier: Apache-2.0
#include "vectors/generate.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "reference/evaluation.hpp"
#include "reference/row_jacobian.hpp"
#include "vectors/case_separation.hpp"
#include "vectors/input_family.hpp"
#include "vectors/row_selection.hpp"

namespace qkcts {
namespace {

constexpr double mistrusted_limit = 0.01;

Range range_of(const std::vector<double>& per_row) {
  std::vector<double> values;
  for (const double x : per_row)
    if (!std::isnan(x)) values.push_back(x);
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values.front(), values[(values.size() - 1) / 2], values.back()};
}

// Share of the judged elements that say nothing under this budget: mistrusted, or all of them domain.
double useless_share(const ProvenStage& values, const StageBudget& budget) {
  double judged = 0, mistrusted = 0, domain = 0;
  for (std::size_t i = 0; i < values.rule.size(); ++i) {
    if (values.rule[i] != ElementRule::budget && values.rule[i] != ElementRule::budget_exact) continue;
    ++judged;
    if (budget.trust[i] == Trust::mistrusted) ++mistrusted;
    if (budget.trust[i] == Trust::domain) ++domain;
  }
  if (judged == 0) return 0;
  return domain == judged ? 1 : mistrusted / judged;
}

void drop_useless_profiles(GoldenCase& golden, std::vector<DroppedProfile>& dropped) {
  for (std::size_t profile = golden.profiles.size(); profile-- > 0;) {
    DroppedProfile worst{golden.input.slug, golden.profiles[profile], "", 0};
    for (const qkcts_stage stage : all_stages) {
      const GoldenStage& g = golden.stages[stage];
      if (!g.present) continue;
      const double share = useless_share(g.values, g.budgets[profile]);
      if (share > worst.share) worst = {worst.slug, worst.profile, std::string(stage_name(stage)), share};
    }
    if (worst.share <= mistrusted_limit) continue;
    dropped.insert(dropped.begin(), worst);
    golden.profiles.erase(golden.profiles.begin() + static_cast<std::ptrdiff_t>(profile));
    for (GoldenStage& g : golden.stages)
      if (g.present) g.budgets.erase(g.budgets.begin() + static_cast<std::ptrdiff_t>(profile));
  }
}

// [P, H * pairs] as [H, P, pairs].
Tensor cut_into_heads(const Tensor& wide, std::int64_t heads) {
  const std::int64_t rows = wide.shape[0], pairs = wide.shape[1] / heads;
  Tensor cut = Tensor::zeros(wide.type, {heads, rows, pairs});
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t p = 0; p < rows; ++p)
      for (std::int64_t i = 0; i < pairs; ++i)
        cut.set_pattern(static_cast<std::size_t>((h * rows + p) * pairs + i),
                        wide.pattern(static_cast<std::size_t>((p * heads + h) * pairs + i)));
  return cut;
}

// Tables per head are one rotation of the full width, cut into heads (QK-ROPE-12).
RopeTables case_tables(const PlannedCase& planned, const DrawnCase& drawn) {
  qkcts_rope rope = planned.contract.terms.rope;
  qkcts_rotation rotation = planned.contract.terms.rotation;
  const auto tables_of = [&](std::int64_t width) {
    return rope_tables(rope, rotation, width, drawn.first_position, drawn.table_rows,
                       accumulator_format(planned.format));
  };
  if (rotation.tables != QKCTS_TABLES_PER_HEAD) return tables_of(planned.shape.head_dim);
  const std::int64_t heads = planned.shape.q_heads;
  const std::int64_t rotated = rope.rotated == 0 ? planned.shape.head_dim : rope.rotated;
  rope.rotated = 0;
  rotation.tables = QKCTS_TABLES_SHARED;
  const RopeTables wide = tables_of(heads * rotated);
  return {cut_into_heads(wide.cos, heads), cut_into_heads(wide.sin, heads)};
}

}  // namespace

Case make_case(const PlannedCase& planned) {
  std::int64_t first_position = 0;
  return make_case(planned, first_position);
}

Case make_case(const PlannedCase& planned, std::int64_t& first_position) {
  if (planned.member) {
    Case made = member_case(*planned.member, planned, make_case(*planned.member->drawn, first_position));
    if (!made.inputs.has(Input::cos)) first_position = 0;
    return made;
  }
  DrawnCase drawn = draw_case(planned.family, planned.contract, planned.shape, planned.format, planned.seed);
  drawn.c.slug = planned.slug;
  first_position = drawn.first_position;
  if (drawn.table_rows > 0) {
    RopeTables tables = case_tables(planned, drawn);
    drawn.c.inputs.set(Input::cos, std::move(tables.cos));
    drawn.c.inputs.set(Input::sin, std::move(tables.sin));
  }
  return std::move(drawn.c);
}

Evidence make_evidence(const Case& c, const StageRows& rows, const std::vector<Profile>& profiles, Tier tier) {
  BudgetedResult budgeted = evaluate_with_budgets(c, rows, profiles, tier);
  ReferenceResult& result = budgeted.values;
  Evidence evidence;
  for (std::array<StageBudget, QKCTS_STAGE_COUNT>& budgets : budgeted.budgets)
    for (const qkcts_stage stage : all_stages) evidence.stages[stage].budgets.push_back(std::move(budgets[stage]));
  for (const qkcts_stage stage : all_stages) {
    GoldenStage& golden = evidence.stages[stage];
    golden.present = (stages_of(c.contract.terms) & bit(stage)) != 0;
    if (!golden.present) golden.budgets.clear();
    golden.values = std::move(result.stages[stage]);
  }
  evidence.entropy = range_of(result.statistics.entropy);
  evidence.p_max = range_of(result.statistics.p_max);
  evidence.score_max = range_of(result.statistics.score_max);
  evidence.jacobian = range_of(row_jacobians(result.statistics));
  return evidence;
}

void seal(GoldenCase& golden, const StageRows& rows, std::vector<DroppedProfile>& dropped, Tier tier) {
  Evidence evidence = make_evidence(golden.input, rows, profiles_named(golden.profiles, golden.own_profiles), tier);
  golden.stages = std::move(evidence.stages);
  golden.entropy = evidence.entropy;
  golden.p_max = evidence.p_max;
  golden.score_max = evidence.score_max;
  golden.jacobian = evidence.jacobian;
  drop_useless_profiles(golden, dropped);
}

GoldenCase make_golden(const PlannedCase& planned, std::vector<DroppedProfile>& dropped, Tier tier) {
  GoldenCase golden;
  golden.input = make_case(planned, golden.first_position);
  golden.family = planned.family;
  golden.description =
      planned.member ? member_description(*planned.member) : std::string(input_family(planned.family).reason);
  golden.seed = planned.seed;
  golden.profiles = planned.profiles;
  golden.own_profiles = planned.own_profiles;
  if (golden.profiles.empty())
    for (const Profile& profile : profiles_for(planned.format)) golden.profiles.push_back(profile.name);
  seal(golden, select_rows(planned.contract.terms, planned.shape, planned.rows, planned.seed), dropped, tier);
  if (!golden.profiles.empty()) golden.separation = make_separations(golden);
  return golden;
}

}  // namespace qkcts
