// SPDX-License-Identifier: Apache-2.0
// What flows from stage to stage of one side: a projection into a norm, tables of heads. Hand-made exact stages.
#include "conformance/budget_operand.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "conformance/plain_profile.hpp"

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;

void set(Case& c, Input input, std::vector<std::int64_t> shape, const std::vector<double>& values) {
  Tensor tensor = Tensor::zeros(element_type(Format::binary32), std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_pattern(i, encode(Format::binary32, values[i]));
  c.inputs.set(input, tensor);
}

// q = (cancelling, 1): the norm of the first lane carries the error of a difference of products.
TEST(BudgetOperand, ANormCarriesTheErrorsOfTheProjectionBefore) {
  const float a = 1.1f, b = 1.3f, c1 = 1.3f, c2 = -1.1000001f;
  Case c;
  c.contract.terms.projection.form = QKCTS_PROJECTION_LINEAR;
  c.contract.terms.q_norm.applied = 1;
  c.contract.terms.q_norm.eps = 1e-6;
  c.shape = {1, 1, 1, 1, 1, 2, 1};
  c.inputs.format = Format::binary32;
  set(c, Input::q_x, {1, 1, 2}, {static_cast<double>(a), static_cast<double>(b)});
  set(c, Input::q_weight, {2, 2}, {static_cast<double>(c1), 0.5, static_cast<double>(c2), 0.25});
  const long double q0 = static_cast<long double>(a) * static_cast<long double>(c1) +
                         static_cast<long double>(b) * static_cast<long double>(c2);
  const long double q1 = static_cast<long double>(a) * 0.5L + static_cast<long double>(b) * 0.25L;
  const long double d = std::sqrt((q0 * q0 + q1 * q1) / 2 + 1e-6L);
  ExactStages exact;
  exact.values[QKCTS_STAGE_Q_PROJ] = {static_cast<double>(q0), static_cast<double>(q1)};
  exact.values[QKCTS_STAGE_Q_NORM] = {static_cast<double>(q0 / d), static_cast<double>(q1 / d)};
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  OperandBudget side(c, exact, OperandSide::q, arithmetic);
  const OperandRow row = side.row(0, 0, 0);
  ASSERT_TRUE(row.projection && row.norm && !row.rope);
  const float got0 = a * c1 + b * c2;
  const float got1 = a * 0.5f + b * 0.25f;
  const float root = std::sqrt((got0 * got0 + got1 * got1) / 2 + 1e-6f);
  const double wrong = std::fabs(static_cast<double>(got0 / root) - static_cast<double>(q0 / d));
  EXPECT_LE(wrong, row.norm->total(0));
  EXPECT_GT(wrong, 0.2 * row.norm->total(0));
  EXPECT_GT(wrong, 12 * u * static_cast<double>(std::fabs(q0 / d)));  // a norm of two numbers that are read exactly
}

// Head 0 does not turn, head 1 does: the products of a rotation are those of its own table.
TEST(BudgetOperand, HeadsTurnByTheirOwnTable) {
  Case c;
  c.contract.terms.rope.order = QKCTS_NORM_THEN_ROPE;
  c.contract.terms.rope.theta = 100;
  c.contract.terms.rotation.tables = QKCTS_TABLES_PER_HEAD;
  c.shape = {1, 2, 2, 1, 1, 2, 1};
  c.inputs.format = Format::binary32;
  set(c, Input::q, {1, 2, 1, 2}, {1, 3, 1, 3});
  set(c, Input::cos, {2, 2, 1}, {0, 1, 0, 0.5});  // rows 0 are not used
  set(c, Input::sin, {2, 2, 1}, {0, 0, 0, 0.75});
  Tensor positions = Tensor::zeros(ElementType::int32, {1, 1});
  positions.set_pattern(0, 1);
  c.inputs.set(Input::q_position_ids, positions);
  ExactStages exact;
  exact.values[QKCTS_STAGE_Q_ROPE] = {1, 3, 0.5 - 2.25, 1.5 + 0.75};
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  OperandBudget side(c, exact, OperandSide::q, arithmetic);
  EXPECT_NEAR(side.row(0, 0, 0).rope->error[0], 2 * u, 0.01 * u);
  EXPECT_NEAR(side.row(0, 1, 0).rope->error[0], 2 * u * (0.5 + 2.25), 0.01 * u);
}

}  // namespace
}  // namespace qkcts
