// SPDX-License-Identifier: Apache-2.0
#include "reference/separation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/format.hpp"
#include "conformance/neighbour.hpp"
#include "reference/row_jacobian.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Case sample(const char* contract, SampleValues values) {
  SampleSpec spec;
  spec.values = values;
  return sample_case(shipped_contract(contract), spec);
}

double best(const Case& c, qkcts_stage stage, void (*change)(qkcts_contract&)) {
  const Separator separator(c, every_row(c), {shipped_profile("f32")});
  qkcts_contract terms = c.contract.terms;
  change(terms);
  const std::optional<Case> neighbour = case_under(c, terms);
  if (!neighbour) throw std::logic_error("the neighbour does not fit the case");
  return separator.to(*neighbour)[stage].at(0).value;
}

TEST(Separation, OfAContractFromItselfIsNothing) {
  const Case c = sample("qwen3_rmsnorm", SampleValues::full);
  const Separator separator(c, every_row(c), profiles_for(Format::binary32));
  const SeparationTable table = separator.to(c);
  for (std::size_t profile = 0; profile < profiles_for(Format::binary32).size(); ++profile)
    EXPECT_EQ(largest_separation(table, profile).value, 0);
}

// The reason of the family eps_edge: at unit scale the place of a small epsilon cannot be seen, near its root it can.
TEST(Separation, TheRootShowsWhereEpsilonDecides) {
  const auto outside = [](qkcts_contract& t) { t.q_norm.root = t.k_norm.root = QKCTS_OUTSIDE_ROOT; };
  EXPECT_GT(best(sample("qwen3_rmsnorm", SampleValues::tiny), QKCTS_STAGE_Q_NORM, outside), 1000);
  // 2^-24 is too coarse for eps / t; the separation says how far from it.
  const auto tiny_eps = [](qkcts_contract& t) { t.q_norm.eps = 1.1e-6; };
  EXPECT_LT(best(sample("qwen3_rmsnorm", SampleValues::full), QKCTS_STAGE_Q_NORM, tiny_eps), 1);
}

TEST(Separation, ClassesThatDifferAreInfinitelyApart) {
  Case c = sample("clause_empty_nan", SampleValues::full);
  set_values(c, Input::kv_len, std::vector<double>{0});
  const auto zero = [](qkcts_contract& t) { t.mask.empty_row = QKCTS_EMPTY_ZERO; };
  for (const qkcts_stage stage : {QKCTS_STAGE_PROBS, QKCTS_STAGE_LSE, QKCTS_STAGE_OUTPUT})
    EXPECT_EQ(best(c, stage, zero), infinity) << stage_name(stage);
  EXPECT_EQ(best(c, QKCTS_STAGE_Q_NORM, zero), 0);
}

TEST(Separation, HiddenPositionsSayNothingButTheirWeightsDo) {
  const Case c = sample("clause_causal_bottom_right", SampleValues::full);
  const auto top_left = [](qkcts_contract& t) { t.mask.alignment = QKCTS_TOP_LEFT; };
  EXPECT_EQ(best(c, QKCTS_STAGE_SCORES, top_left), 0) << "what either contract hides is not judged, the rest is equal";
  EXPECT_GT(best(c, QKCTS_STAGE_PROBS, top_left), 1);
}

// P7: RMS without gain commutes with a rotation; with exact angles the two orders are one contract.
TEST(Separation, IdentitiesAreNotSeparated) {
  Contract contract = shipped_contract("llama4_rms_unweighted");
  contract.terms.rotation.angles = QKCTS_ANGLES_COMPUTED;
  const Case c = sample_case(contract, SampleSpec{});
  const auto other_order = [](qkcts_contract& t) { t.rope.order = QKCTS_NORM_THEN_ROPE; };
  EXPECT_EQ(best(c, QKCTS_STAGE_SCORES, other_order), 0);
  EXPECT_EQ(best(c, QKCTS_STAGE_OUTPUT, other_order), 0);
  EXPECT_GT(best(c, QKCTS_STAGE_Q_NORM, other_order), 1)
      << "q_norm comes after the rotation in one, before in the other";
}

// What the separation claims: values of the neighbour, rounded, are outside the budget wherever it exceeds 1.
TEST(Separation, ANeighboursOwnValuesFailWhereItExceedsOne) {
  const Case c = sample("qwen3_rmsnorm", SampleValues::full);
  const StageRows rows = every_row(c);
  const Profile profile = shipped_profile("f32");
  const Separator separator(c, rows, {profile});
  const ReferenceResult own = evaluate(c, rows);
  const auto budgets = stage_budgets(c, own.exact, rows, profile);
  int separated = 0;
  for (const Neighbour& neighbour : neighbours(c.contract.terms)) {
    const std::optional<Case> other = case_under(c, neighbour.terms);
    if (!other || neighbour.terms.q_norm.applied == 0 || neighbour.terms.k_norm.applied == 0) continue;
    const Separation found = separator.to(*other)[QKCTS_STAGE_OUTPUT].at(0);
    if (found.value <= 1) continue;
    ++separated;
    const ReferenceResult wrong = evaluate(*other, every_row(*other));
    const auto i = static_cast<std::size_t>(found.row * row_length(QKCTS_STAGE_OUTPUT, c.shape) + found.column);
    const double z = own.stages[QKCTS_STAGE_OUTPUT].hi[i];
    const double got = decode(Format::binary32, wrong.stages[QKCTS_STAGE_OUTPUT].expected[i]);
    EXPECT_GT(std::fabs(got - z), static_cast<double>(budgets[QKCTS_STAGE_OUTPUT].delta[i])) << neighbour.name;
  }
  EXPECT_GE(separated, 10);
}

// The few rows that are looked at first give what the whole case gives on these rows, bit for bit: values and budgets
// do not depend on how much is evaluated around them, nor on whether q, k and v are shared.
TEST(QuickSeparation, IsTheFullOneOnTheRowsThatItLooksAt) {
  for (const char* contract :
       {"gemma2_softcap_window", "clause_projection", "clause_v_norm_hidden", "clause_round_scaled_q"}) {
    SampleSpec spec;
    spec.shape = {1, 4, 2, 5, 6, 8, 6};  // heads that share keys: another mapping reads others
    const Case c = sample_case(shipped_contract(contract), spec);
    const Separator separator(c, every_row(c), {shipped_profile("f32"), shipped_profile("f32_ftz")});
    std::size_t compared = 0, sharing = 0;
    for (const Neighbour& neighbour : neighbours(c.contract.terms)) {
      const std::optional<Case> other = case_under(c, neighbour.terms);
      if (!other) continue;
      SeparationTable quick, full;
      try {
        quick = separator.quickly_to(*other);
        full = separator.to(*other);
      } catch (const InputError&) {
        continue;
      }
      ++compared;
      sharing += have_same_vectors(c, *other) ? 1 : 0;
      for (const qkcts_stage stage : all_stages)
        for (std::size_t profile = 0; profile < full[stage].size(); ++profile)
          EXPECT_LE(quick[stage][profile].value, full[stage][profile].value) << contract << " " << neighbour.name;
      for (const qkcts_stage stage : {QKCTS_STAGE_K_NORM, QKCTS_STAGE_OUTPUT}) {
        if (full[stage].empty()) continue;
        const std::vector<std::vector<Separation>> rows = separator.by_row(*other, stage);
        for (std::size_t profile = 0; profile < full[stage].size(); ++profile) {
          const Separation& found = quick[stage][profile];
          if (found.value > 0) {
            EXPECT_EQ(rows[found.row][profile].value, found.value) << contract << neighbour.name;
          }
        }
      }
    }
    EXPECT_GE(compared, 10U) << contract;
    const bool may_share = c.contract.terms.rounding.scaled_q == 0;  // else the vectors hold the scale of the rows
    EXPECT_GE(sharing, may_share ? 3U : 0U) << contract;
  }
}

// What the rounding points of one side made is taken over where only the other side differs, and nothing else is.
TEST(QuickSeparation, TakesPointsOfASideThatMeansTheSame) {
  SampleSpec spec;
  spec.format = Format::bfloat16;
  spec.shape = {1, 4, 2, 3, 4, 8, 6};
  const Case c = sample_case(shipped_contract("qwen3_bf16_eager"), spec);
  const Evaluation own(c, {});
  std::size_t q_alone = 0, k_alone = 0;
  for (const Neighbour& neighbour : neighbours(c.contract.terms)) {
    const std::optional<Case> other = case_under(c, neighbour.terms);
    if (!other) continue;
    const bool same_q = have_same_side(c, *other, Side::query), same_k = have_same_side(c, *other, Side::key);
    if (have_same_vectors(c, *other)) {
      EXPECT_TRUE(same_q && same_k) << neighbour.name;
      continue;
    }
    q_alone += same_q && !same_k ? 1 : 0;
    k_alone += same_k && !same_q ? 1 : 0;
    EXPECT_FALSE(same_q && neighbour.name.starts_with("q_norm")) << neighbour.name;
    EXPECT_FALSE(same_k && neighbour.name.starts_with("k_norm")) << neighbour.name;
    EXPECT_FALSE((same_q || same_k) && neighbour.name.starts_with("rope")) << neighbour.name;
    if (!same_q && !same_k) continue;
    try {
      Evaluation fresh(*other, {});
      Evaluation beside = Evaluation::beside(*other, {}, own);
      fresh.evaluate_vectors();
      beside.evaluate_vectors();
      for (const qkcts_stage stage : {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_Q_ROPE, QKCTS_STAGE_K_NORM, QKCTS_STAGE_K_ROPE}) {
        EXPECT_EQ(fresh.vectors().values[stage], beside.vectors().values[stage]) << neighbour.name;
        EXPECT_EQ(fresh.vectors().before[stage], beside.vectors().before[stage]) << neighbour.name;
      }
    } catch (const InputError&) {
      continue;  // no value under this neighbour
    }
  }
  EXPECT_GE(q_alone, 10U);
  EXPECT_GE(k_alone, 10U);
}

// The first neighbour that is asked for reads the keys of another head, which the contract's own rows would not need.
TEST(QuickSeparation, OfAnotherMappingOfHeads) {
  SampleSpec spec;
  spec.shape = {1, 4, 2, 5, 6, 8, 6};
  const Case c = sample_case(shipped_contract("plain_sdpa"), spec);
  qkcts_contract terms = c.contract.terms;
  terms.heads.mapping = QKCTS_HEADS_TILE;
  const std::optional<Case> other = case_under(c, terms);
  ASSERT_TRUE(other && have_same_vectors(c, *other));
  const Separator separator(c, every_row(c), {shipped_profile("f32")});
  const Separation found = separator.quickly_to(*other)[QKCTS_STAGE_PROBS].at(0);
  EXPECT_GT(found.value, 1);
  EXPECT_EQ(separator.by_row(*other, QKCTS_STAGE_PROBS)[found.row][0].value, found.value);
}

// All keys are seen under both alignments; what differs is the distance that the linear bias multiplies.
TEST(QuickSeparation, OfAnotherAlignmentUnderALinearBias) {
  SampleSpec spec;
  spec.shape = {1, 4, 2, 5, 8, 8, 6};
  const Case c = sample_case(shipped_contract("clause_alibi_symmetric"), spec);
  qkcts_contract terms = c.contract.terms;
  ASSERT_EQ(terms.mask.alignment, QKCTS_TOP_LEFT);
  terms.mask.alignment = QKCTS_BOTTOM_RIGHT;
  const std::optional<Case> other = case_under(c, terms);
  ASSERT_TRUE(other);
  const Separator separator(c, every_row(c), {shipped_profile("f32")});
  EXPECT_GT(separator.quickly_to(*other)[QKCTS_STAGE_CAPPED].at(0).value, 1);
  EXPECT_GT(separator.to(*other)[QKCTS_STAGE_CAPPED].at(0).value, 1);
}

TEST(QuickSeparation, LooksAtFewRowsAndAtTheTellingOnesFirst) {
  SampleSpec spec;
  spec.shape = {1, 4, 2, 16, 16, 8, 6};
  Case c = sample_case(shipped_contract("qwen3_rmsnorm"), spec);
  Tensor& q = *c.inputs.tensors[static_cast<std::size_t>(Input::q)];
  for (std::size_t d = 0; d < 8; ++d)
    q.set_pattern((2 * 16 + 9) * 8 + d, encode(Format::binary32, std::ldexp(1.0, -9)));
  const StageRows stored = every_row(c);
  const SeparationRows rows(c, stored);
  qkcts_contract terms = c.contract.terms;
  terms.q_norm.root = QKCTS_OUTSIDE_ROOT;
  const Case outside = *case_under(c, terms);
  const auto holds = [](const StageRows& batch, std::uint32_t row) {
    const std::vector<std::uint32_t>& list = batch[QKCTS_STAGE_OUTPUT];
    return std::find(list.begin(), list.end(), row) != list.end();
  };
  EXPECT_TRUE(holds(rows.batch(outside, 0), 2 * 16 + 9)) << "the smallest row that is not zero";
  EXPECT_LE(rows.batch(outside, 0)[QKCTS_STAGE_OUTPUT].size(), 6U);
  for (std::size_t i = 0; i < SeparationRows::batches; ++i)
    EXPECT_LE(rows.batch(outside, i)[QKCTS_STAGE_OUTPUT].size(), 32U);
  terms = c.contract.terms;
  terms.mask.causal = 0;
  EXPECT_TRUE(holds(rows.batch(*case_under(c, terms), 0), 0)) << "sees one key in place of all";
}

TEST(RowJacobian, IsTheLargestDiagonalEntry) {
  for (const std::vector<double>& p : {std::vector<double>{0.25, 0.25, 0.25, 0.25},
                                       {0.9, 0.06, 0.04},
                                       {0.5, 0.5},
                                       {0.4, 0.35, 0.25},
                                       {1.0},
                                       {0.55, 0.45}}) {
    RowStatistics statistics;
    statistics.p_max = {*std::max_element(p.begin(), p.end())};
    double largest = 0;
    for (const double x : p) largest = std::max(largest, x * (1 - x));
    EXPECT_NEAR(row_jacobians(statistics)[0], largest, 1e-15);
  }
}

}  // namespace
}  // namespace qkcts
