// SPDX-License-Identifier: Apache-2.0
#include "conformance/special_values.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace qkcts {
namespace {

using outcome::minus_infinity;
using outcome::nan;
using outcome::number;
using outcome::plus_infinity;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

Outcomes outcome_of(double x) {
  if (std::isnan(x)) return nan;
  if (std::isinf(x)) return x > 0 ? plus_infinity : minus_infinity;
  return x == 0 ? outcome::zero : x > 0 ? outcome::positive : outcome::negative;
}

// The algebra of sets against the arithmetic of this machine, every pair.
TEST(Outcomes, AreThoseOfIeeeArithmetic) {
  const double values[] = {-infinity, -2, -0.0, 0.0, 3, infinity, not_a_number};
  for (const double a : values)
    for (const double b : values) {
      const Outcomes x = outcome_of(a), y = outcome_of(b);
      EXPECT_NE(sum(x, y) & outcome_of(a + b), 0) << a << " + " << b;
      EXPECT_NE(product(x, y) & outcome_of(a * b), 0) << a << " * " << b;
      if (!std::isfinite(a) || !std::isfinite(b)) {
        EXPECT_EQ(sum(x, y), outcome_of(a + b)) << a << " + " << b;
        EXPECT_EQ(product(x, y), outcome_of(a * b)) << a << " * " << b;
      }
      EXPECT_EQ(negated(x), outcome_of(-a));
    }
  EXPECT_EQ(summed(plus_infinity), plus_infinity | nan);
  EXPECT_EQ(summed(number), number);
}

// q [1,2,2,4], k and v [1,1,3,4]; all ones.
Case ones(const char* contract_name) {
  Case c;
  c.contract = shipped_contract(contract_name);
  c.shape = {1, 2, 1, 2, 3, 4, 4};
  for (const InputRequirement& need : required_inputs(c.contract.terms, c.shape, Format::binary32)) {
    std::vector<std::int64_t> shape = need.shape;
    for (std::int64_t& extent : shape) extent = extent == -2 ? 3 : extent == -1 ? 1 : extent;
    Tensor tensor = Tensor::zeros(need.type, shape);
    for (std::size_t i = 0; i < tensor.count() && need.type == ElementType::binary32; ++i)
      tensor.set_pattern(i, encode(Format::binary32, 1));
    c.inputs.set(need.input, tensor);
  }
  return c;
}

void put(Case& c, Input input, std::size_t i, double value) {
  c.inputs.tensors[static_cast<std::size_t>(input)]->set_pattern(i, encode(Format::binary32, value));
}

SpecialValues special(const Case& c) {
  EXPECT_EQ(case_fault(c), "");
  EXPECT_TRUE(has_special_values(c));
  return SpecialValues(c);
}

TEST(SpecialValues, NumbersAlone) {
  EXPECT_FALSE(has_special_values(ones("plain_sdpa")));
}

TEST(SpecialValues, NanInQReachesItsRowAlone) {
  Case c = ones("qwen3_rmsnorm");
  put(c, Input::q, 5, not_a_number);  // head 0, query 1
  const SpecialValues found = special(c);
  for (std::int64_t row = 0; row < 4; ++row) {
    const Outcomes due = row == 1 ? nan : number;
    EXPECT_EQ(found.is_special_row(row), row == 1);
    for (std::int64_t d = 0; d < 4; ++d) {
      EXPECT_EQ(is_number(found.at(QKCTS_STAGE_Q_NORM, row, d)), row != 1);
      EXPECT_EQ(found.at(QKCTS_STAGE_OUTPUT, row, d), due) << row;
    }
    EXPECT_EQ(found.at(QKCTS_STAGE_LSE, row, 0), due);
  }
  // Causal, bottom right: query 1 of 2 sees all three keys.
  EXPECT_EQ(found.at(QKCTS_STAGE_PROBS, 1, 0), nan);
}

// Without a norm: one infinity times numbers of known sign.
TEST(SpecialValues, InfinityInPlainScores) {
  Case c = ones("plain_sdpa");
  put(c, Input::q, 0, infinity);
  put(c, Input::k, 4, -1);  // key 1, the same lane
  put(c, Input::k, 8, 0);   // key 2
  const SpecialValues found = special(c);
  EXPECT_EQ(found.at(QKCTS_STAGE_SCORES, 0, 0), plus_infinity | nan);
  EXPECT_EQ(found.at(QKCTS_STAGE_SCORES, 0, 1), minus_infinity | nan);
  EXPECT_EQ(found.at(QKCTS_STAGE_SCORES, 0, 2), nan);
  EXPECT_EQ(found.at(QKCTS_STAGE_OUTPUT, 0, 0), nan);
  EXPECT_EQ(found.at(QKCTS_STAGE_OUTPUT, 1, 0), number);
}

TEST(SpecialValues, MinusInfinityAloneLeavesTheRowOpen) {
  Case c = ones("plain_sdpa");
  put(c, Input::k, 4, -infinity);
  const SpecialValues found = special(c);
  EXPECT_EQ(found.at(QKCTS_STAGE_SCORES, 2, 1), minus_infinity | nan);
  EXPECT_EQ(special_judgement(found.at(QKCTS_STAGE_OUTPUT, 2, 0)).rule, ElementRule::free);
}

TEST(SpecialValues, InfinitiesInV) {
  Case c = ones("plain_sdpa");
  put(c, Input::v, 0, infinity);
  put(c, Input::v, 1, -infinity);
  put(c, Input::v, 5, infinity);
  const SpecialValues found = special(c);
  EXPECT_EQ(found.at(QKCTS_STAGE_OUTPUT, 3, 0), plus_infinity | nan);
  EXPECT_EQ(found.at(QKCTS_STAGE_OUTPUT, 3, 1), nan) << "both signs";
  EXPECT_EQ(found.at(QKCTS_STAGE_OUTPUT, 3, 2), number);
  EXPECT_FALSE(found.is_special_row(3));
  EXPECT_EQ(special_judgement(plus_infinity | nan).value, infinity);
  EXPECT_EQ(special_judgement(plus_infinity | minus_infinity | nan).rule, ElementRule::not_finite);
}

// The infinity becomes NaN, the other lanes are 0 or NaN, and the scores NaN in any case.
TEST(SpecialValues, InfinityUnderANorm) {
  Case c = ones("clause_eps_outside_root");
  put(c, Input::q, 0, infinity);
  const SpecialValues found = special(c);
  EXPECT_EQ(found.at(QKCTS_STAGE_Q_NORM, 0, 0), nan);
  EXPECT_EQ(special_judgement(found.at(QKCTS_STAGE_Q_NORM, 0, 1)).rule, ElementRule::free);
  EXPECT_EQ(found.at(QKCTS_STAGE_SCORES, 0, 0), nan);
}

TEST(SpecialValues, AClampMakesANumberOfInfinity) {
  Case c = ones("plain_sdpa");
  c.contract.terms.q_range.clip_before = 2;
  put(c, Input::q, 0, -infinity);
  const SpecialValues found = special(c);
  EXPECT_EQ(found.at(QKCTS_STAGE_Q_NORM, 0, 0), outcome::negative);
  EXPECT_TRUE(is_number(found.at(QKCTS_STAGE_SCORES, 0, 0)));
  EXPECT_LT(found.stand_in().inputs.at(Input::q).value(0), -2) << "what is clamped to the same number";
  put(c, Input::q, 0, not_a_number);
  EXPECT_EQ(special_judgement(special(c).at(QKCTS_STAGE_SCORES, 0, 0)).rule, ElementRule::free);
}

TEST(SpecialValues, ACapLeavesInfinityOpenAndKeepsNan) {
  Case c = ones("plain_sdpa");
  c.contract.terms.score.softcap = 5;
  put(c, Input::k, 0, infinity);
  put(c, Input::k, 4, not_a_number);
  const SpecialValues found = special(c);
  EXPECT_EQ(special_judgement(found.at(QKCTS_STAGE_CAPPED, 0, 0)).rule, ElementRule::free);
  EXPECT_EQ(found.at(QKCTS_STAGE_CAPPED, 0, 1), nan);
}

// Key 2 is hidden from query 0 (causal, bottom right, 2 queries of 3 keys); its v is NaN in lane 1.
TEST(SpecialValues, HiddenValuesAsTheContractSays) {
  Case c = ones("qwen3_rmsnorm");
  put(c, Input::v, 9, not_a_number);
  put(c, Input::k, 8, not_a_number);
  const auto output_of = [&](std::uint32_t policy, std::int64_t lane) {
    c.contract.terms.softmax.hidden_values = policy;
    return special(c).at(QKCTS_STAGE_OUTPUT, 0, lane);
  };
  EXPECT_EQ(special_judgement(output_of(QKCTS_HIDDEN_FINITE, 0)).rule, ElementRule::free);
  EXPECT_TRUE(is_number(output_of(QKCTS_HIDDEN_EXCLUDED, 1)));
  EXPECT_EQ(output_of(QKCTS_HIDDEN_PROPAGATED, 1), nan);
  EXPECT_TRUE(is_number(output_of(QKCTS_HIDDEN_PROPAGATED, 0))) << "k does not get past a mask";
}

TEST(SpecialValues, AnAddedMaskLetsKThrough) {
  Case c = ones("plain_sdpa");
  c.contract.terms.softmax.hidden_values = QKCTS_HIDDEN_PROPAGATED;
  c.contract.terms.score.bias_order = QKCTS_BIAS_AFTER_SOFTCAP;
  Tensor bias = Tensor::zeros(ElementType::binary32, {1, 1, 2, 3});
  bias.set_pattern(2, encode(Format::binary32, -infinity));  // key 2, hidden from query 0
  c.inputs.set(Input::bias, bias);
  put(c, Input::k, 8, not_a_number);
  EXPECT_EQ(special(c).at(QKCTS_STAGE_OUTPUT, 0, 0), nan);
  c.contract.terms.softmax.hidden_values = QKCTS_HIDDEN_EXCLUDED;
  EXPECT_TRUE(is_number(special(c).at(QKCTS_STAGE_OUTPUT, 0, 0)));
}

TEST(SpecialValues, StandWhereTheyMean) {
  Case c = ones("clause_hidden_propagated");
  Tensor& lengths = *c.inputs.tensors[static_cast<std::size_t>(Input::kv_len)];
  lengths.set_pattern(0, 2);
  Tensor& mask = *c.inputs.tensors[static_cast<std::size_t>(Input::mask)];
  for (std::size_t i = 0; i < mask.count(); ++i) mask.set_pattern(i, 1);
  put(c, Input::v, 8, not_a_number);  // key 2, which nobody sees
  EXPECT_EQ(special(c).at(QKCTS_STAGE_OUTPUT, 3, 0), nan);
  c.contract.terms.softmax.hidden_values = QKCTS_HIDDEN_FINITE;
  EXPECT_NE(case_fault(c).find("input v[8]: nan stands at key 2 of batch entry 0, which no query sees"),
            std::string::npos)
      << case_fault(c);
  put(c, Input::v, 8, 1);
  put(c, Input::v, 4, not_a_number);
  EXPECT_EQ(case_fault(c), "");
}

}  // namespace
}  // namespace qkcts
