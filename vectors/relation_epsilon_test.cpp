// SPDX-License-Identifier: Apache-2.0
// P2 on proven values: what a kernel with an epsilon of its own makes of the two cases, beside a right one.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "conformance/budget.hpp"
#include "vectors/relation_recipe.hpp"
#include "vectors/row_selection.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

// The epsilon of the contract is 1e-6, and 64e-6 beside the vectors that are 8 times as long.
struct EpsilonReading {
  const char* name;
  double (*read)(double eps);
  bool keeps;
};

void PrintTo(const EpsilonReading& reading, std::ostream* out) {
  *out << reading.name;
}

constexpr EpsilonReading readings[] = {
    {"right", [](double eps) { return eps; }, true},
    {"hard_coded", [](double) { return 1e-5; }, false},
    {"floored", [](double eps) { return std::max(eps, 1e-5); }, false},
    {"capped", [](double eps) { return std::min(eps, 1e-5); }, false},
    {"floored_far_below", [](double eps) { return std::max(eps, 1e-12); }, true},  // no fault of these cases
    {"twice", [](double eps) { return 2 * eps; }, true},                           // nor one that P2 can see
};

class Epsilon : public testing::TestWithParam<EpsilonReading> {};

std::vector<std::uint64_t> norms_of(Case c, const EpsilonReading& reading) {
  for (qkcts_norm* norm : {&c.contract.terms.q_norm, &c.contract.terms.k_norm}) norm->eps = reading.read(norm->eps);
  const StageRows rows = select_rows(c.contract.terms, c.shape, 0, 1);
  const Evidence evidence = make_evidence(c, rows, profiles_for(c.inputs.format));
  std::vector<std::uint64_t> bits;
  for (const qkcts_stage stage : {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_NORM}) {
    const auto& expected = evidence.stages[stage].values.expected;
    bits.insert(bits.end(), expected.begin(), expected.end());
  }
  return bits;
}

TEST_P(Epsilon, IsRescaledOrTheBitsDiffer) {
  const RelationRecipe& recipe = relation_recipe(RelationKind::eps_rescaling);
  for (const Format format : {Format::binary32, Format::bfloat16}) {
    const PlannedCase planned = sample_plan("qwen3_rmsnorm", "eps_edge", format, "1,4,2,7,9,16,12");
    const Case first = make_case(planned);
    Contract rescaled = planned.contract;
    recipe.terms(rescaled.terms, Part::second);
    const Case second = relation_part(recipe, Part::second, rescaled, first);
    EXPECT_EQ(norms_of(first, GetParam()) == norms_of(second, GetParam()), GetParam().keeps) << parameters(format).name;
  }
}

INSTANTIATE_TEST_SUITE_P(Reading, Epsilon, testing::ValuesIn(readings),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

}  // namespace
}  // namespace qkcts
