// SPDX-License-Identifier: Apache-2.0
// Rows in blocks, few rows, shared vectors: the same bits as the whole case at once.
#include "reference/evaluation.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "conformance/neighbour.hpp"
#include "reference/fast_tier_operand.hpp"
#include "reference/refinement.hpp"
#include "reference/row_places.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

using Budgets = std::array<StageBudget, QKCTS_STAGE_COUNT>;

bool same_bits(const std::vector<double>& x, const std::vector<double>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  });
}

// The first stage in which they differ; empty if none.
std::string difference(const ReferenceResult& x, const ReferenceResult& y, StageSet stages = ~StageSet{0}) {
  for (const qkcts_stage stage : all_stages) {
    if ((stages & bit(stage)) == 0) continue;
    const ProvenStage &a = x.stages[stage], &b = y.stages[stage];
    if (a.rows != b.rows || a.expected != b.expected || !same_bits(a.hi, b.hi) || a.lo != b.lo || a.rule != b.rule)
      return std::string(stage_name(stage));
  }
  return {};
}

std::string difference(const Budgets& x, const Budgets& y, StageSet stages = ~StageSet{0}) {
  for (const qkcts_stage stage : all_stages)
    if ((stages & bit(stage)) != 0 && (x[stage].delta != y[stage].delta || x[stage].trust != y[stage].trust))
      return std::string(stage_name(stage));
  return {};
}

// 60 rows of attention: more than one block.
Case case_of(const std::string& contract, Format format = Format::binary32) {
  return sample_case(shipped_contract(contract), {format, SampleValues::full, 7, {1, 4, 2, 15, 17, 8, 6}});
}

// Rows of every stage, none of them the first.
StageRows few_rows(const Case& c) {
  StageRows rows;
  for (const qkcts_stage stage : all_stages)
    if ((stages_of(c.contract.terms) & bit(stage)) != 0) rows[stage] = {5, 17, 18, 29};
  return rows;
}

Budgets selected(const Case& c, const Budgets& whole, const StageRows& rows) {
  Budgets result;
  for (const qkcts_stage stage : all_stages) {
    const auto length = static_cast<std::size_t>(row_length(stage, c.shape));
    for (const std::uint32_t row : rows[stage])
      for (std::size_t i = row * length; i < (row + 1) * length; ++i) {
        result[stage].delta.push_back(whole[stage].delta[i]);
        result[stage].trust.push_back(whole[stage].trust[i]);
      }
  }
  return result;
}

class EvaluationOf : public testing::TestWithParam<std::string> {};

TEST_P(EvaluationOf, BlocksAndFewRowsHaveTheBitsOfTheWhole) {
  for (const Format format : {Format::binary32, Format::bfloat16}) {
    const Case c = case_of(GetParam(), format);
    ASSERT_EQ(case_fault(c), "");
    const StageRows all = every_row(c);
    const ReferenceResult whole = evaluate(c, all);
    const Profile profile = shipped_profile(format == Format::binary32 ? "f32" : "bf16_f32acc");
    const Budgets budgets = stage_budgets(c, whole.exact, all, profile);

    const BudgetedResult in_blocks = evaluate_with_budgets(c, all, {profile});
    EXPECT_EQ(difference(in_blocks.values, whole), "");
    EXPECT_EQ(difference(in_blocks.budgets.at(0), budgets), "");
    EXPECT_TRUE(same_bits(in_blocks.values.statistics.entropy, whole.statistics.entropy));
    EXPECT_TRUE(same_bits(in_blocks.values.statistics.p_max, whole.statistics.p_max));
    EXPECT_TRUE(same_bits(in_blocks.values.statistics.score_max, whole.statistics.score_max));
    EXPECT_EQ(in_blocks.values.left_open, whole.left_open);
    EXPECT_EQ(in_blocks.values.highest_precision, whole.highest_precision);

    const StageRows few = few_rows(c);
    Evaluation evaluation(c, few);
    evaluation.evaluate_stored_vectors();
    evaluation.evaluate_rows(attention_rows_of(c, few));
    EXPECT_EQ(difference(evaluation.result(), evaluate(c, few)), "");
    EXPECT_EQ(
        difference(CaseBudgets(c, evaluation.vectors(), profile).of(evaluation.rows(), few), selected(c, budgets, few)),
        "");
  }
}

INSTANTIATE_TEST_SUITE_P(Contracts, EvaluationOf,
                         testing::Values("qwen3_rmsnorm", "olmo2_full_width", "rmsnorm_softcap", "flax_qk_layernorm",
                                         "clause_v_full_width", "clause_projection_input_norm", "clause_rope_then_norm",
                                         "clause_sink_column", "clause_base_two", "clause_round_eager",
                                         "clause_round_product", "clause_v_norm_hidden"),
                         [](const auto& each) { return each.param; });

// What a row does not use is not evaluated: 4 of 60 queries, and one of two key/value heads.
TEST(Evaluation, EvaluatesNoMoreThanRowsUse) {
  const Case c = case_of("qwen3_rmsnorm");
  RefinementLimits limits;
  limits.tier = Tier::mpfr;  // counts every element
  const std::uint64_t whole = refine(c, every_row(c), limits).left_open;
  Evaluation evaluation(c, StageRows{}, limits);
  EXPECT_EQ(evaluation.result().left_open, 0U);
  const std::vector<std::uint32_t> rows = {3, 9};
  evaluation.evaluate_rows(rows);
  const std::uint64_t few = evaluation.result().left_open;
  // Per row: scores, masked and probs of its keys, lse, output, statistics; two stages of q, and of 17 keys.
  EXPECT_LE(few, 2U * (3 * 17 + 1 + 6 + 1) + 2 * 8 * (2 + 17));
  EXPECT_LT(few, whole / 5);
  const std::vector<double>& k = evaluation.vectors().values[QKCTS_STAGE_K_NORM];
  EXPECT_FALSE(std::isnan(k[16 * 8]));
  EXPECT_TRUE(std::isnan(k[17 * 8]));  // of the other head
  evaluation.evaluate_rows(rows);      // its vectors are there already
  EXPECT_EQ(evaluation.result().left_open - few, few - 2 * 8 * (2 + 17));
}

TEST(Evaluation, HoldsTheRowsItWasAskedForLast) {
  const Case c = case_of("plain_sdpa");
  Evaluation evaluation(c, every_row(c));
  evaluation.evaluate_rows(std::vector<std::uint32_t>{4, 6});
  EXPECT_EQ(evaluation.rows().values[QKCTS_STAGE_SCORES].size(), 2U * 17);
  evaluation.evaluate_rows(std::vector<std::uint32_t>{6, 7, 59});
  EXPECT_EQ(evaluation.rows().values[QKCTS_STAGE_SCORES].size(), 3U * 17);
  EXPECT_EQ(evaluation.rows().place(QKCTS_STAGE_OUTPUT, 59), 2U);
  EXPECT_THROW(static_cast<void>(evaluation.rows().row(QKCTS_STAGE_OUTPUT, 4, 6)), std::out_of_range);
  CaseBudgets budgets(c, evaluation.vectors(), shipped_profile("f32"));
  StageRows wanted;
  wanted[QKCTS_STAGE_OUTPUT] = {4};
  EXPECT_THROW(budgets.of(evaluation.rows(), wanted), std::out_of_range);
  EXPECT_THROW(evaluation.evaluate_rows(std::vector<std::uint32_t>{7, 6}), InputError);
  EXPECT_THROW(evaluation.evaluate_rows(std::vector<std::uint32_t>{60}), InputError);
}

// Contracts with another soft-cap, or whose queries read the other head, take q and k of the first, and their errors.
TEST(Evaluation, SharesVectorsOfAnotherContract) {
  const Case c = case_of("rmsnorm_softcap");
  Case capped = c, tiled = c;
  capped.contract.terms.score.softcap = 30;
  tiled.contract.terms.heads.mapping = QKCTS_HEADS_TILE;
  const StageRows few = few_rows(c);
  StageRows of_rows;
  for (const qkcts_stage stage : all_stages)
    if ((attention_stages & bit(stage)) != 0) of_rows[stage] = few[stage];
  const std::vector<std::uint32_t> rows = attention_rows_of(c, few);
  const Profile profile = shipped_profile("f32");
  for (const Case& other : {capped, tiled}) {
    ASSERT_TRUE(have_same_vectors(c, other));
    Evaluation own(c, few);
    own.evaluate_rows(rows);
    CaseBudgets own_budgets(c, own.vectors(), profile);
    own_budgets.of(own.rows(), of_rows);
    Evaluation shared(other, few, own);
    shared.evaluate_rows(rows);
    Evaluation apart(other, few);
    apart.evaluate_rows(rows);
    EXPECT_EQ(&shared.vectors(), &own.vectors());
    EXPECT_EQ(difference(shared.result(), apart.result(), attention_stages), "");
    EXPECT_NE(difference(shared.result(), own.result(), attention_stages), "");
    CaseBudgets apart_budgets(other, apart.vectors(), profile), shared_budgets(other, own_budgets);
    EXPECT_EQ(difference(shared_budgets.of(shared.rows(), of_rows), apart_budgets.of(apart.rows(), of_rows)), "");
  }
}

// Nothing is proven of a vector before it is made.
TEST(Evaluation, KnowsNothingOfVectorsThatAreNotMade) {
  const Case c = case_of("qwen3_rmsnorm");
  const CaseValues values(c);
  if (all_kernels().empty()) GTEST_SKIP() << "no kernels run here";
  FastOperands k(values, Side::key, all_kernels()[0]);
  GroupWords stages;
  k.make(3, stages);
  EXPECT_TRUE(std::isfinite(k.row(3).delta));
  EXPECT_TRUE(std::isinf(k.row(4).delta));
}

TEST(Evaluation, KnowsWhichContractsHaveTheSameVectors) {
  const Case c = case_of("qwen3_rmsnorm");
  const auto same = [&](const auto& change) {
    Case other = c;
    change(other);
    return have_same_vectors(c, other);
  };
  EXPECT_TRUE(same([](Case&) {}));
  EXPECT_TRUE(same([](Case& x) { x.contract.terms.score.softcap = 50; }));
  EXPECT_TRUE(same([](Case& x) { x.contract.terms.mask.causal ^= 1; }));
  EXPECT_TRUE(same([](Case& x) { x.contract.terms.heads.mapping = QKCTS_HEADS_TILE; }));
  EXPECT_FALSE(same([](Case& x) { x.contract.terms.q_norm.eps *= 2; }));
  EXPECT_FALSE(same([](Case& x) { x.contract.terms.rope.pairing ^= 1; }));
  EXPECT_FALSE(same([](Case& x) { x.contract.terms.rounding.q.norm = QKCTS_BINARY16; }));
  EXPECT_FALSE(same([](Case& x) { x.inputs.tensors[static_cast<std::size_t>(Input::q)]->bytes[0] ^= std::byte{1}; }));
  // The point of q times the scale reads the scale; which keys are excluded is said by the mask.
  Case rounded = c, scaled = c;
  rounded.contract.terms.rounding.scaled_q = scaled.contract.terms.rounding.scaled_q = QKCTS_BINARY16;
  EXPECT_TRUE(have_same_vectors(rounded, scaled));
  scaled.contract.terms.score.temperature = 2;
  EXPECT_FALSE(have_same_vectors(rounded, scaled));
  Case excluded = c, causal = c;
  excluded.contract.terms.softmax.hidden_values = causal.contract.terms.softmax.hidden_values = QKCTS_HIDDEN_EXCLUDED;
  EXPECT_TRUE(have_same_vectors(excluded, causal));
  causal.contract.terms.mask.causal ^= 1;
  EXPECT_FALSE(have_same_vectors(excluded, causal));
}

}  // namespace
}  // namespace qkcts
