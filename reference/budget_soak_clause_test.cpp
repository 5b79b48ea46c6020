// SPDX-License-Identifier: Apache-2.0
// The budgets of single clauses attacked: legal code comes near the bound of the stage that a clause changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "conformance/budget_terms.hpp"
#include "reference/attention.hpp"
#include "reference/budget_soak.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

Contract changed(const char* name, void (*change)(qkcts_contract&)) {
  Contract contract = shipped_contract(name);
  change(contract.terms);
  return contract;
}

Contract with_sink(const char* name, std::uint32_t sink) {
  Contract contract = shipped_contract(name);
  contract.terms.softmax.sink = sink;
  return contract;
}

Contract with_values_normed(const char* name) {
  Contract contract = shipped_contract(name);
  qkcts_norm& norm = contract.terms.v_norm;
  norm.applied = 1;
  norm.root = QKCTS_INSIDE_ROOT;
  norm.eps = 1e-6;
  return contract;
}

struct ClauseAttack {
  std::vector<Contract> contracts;
  std::vector<qkcts_stage> stages;  // whose bounds must be approached
  std::vector<SoakFamily> families;
};

std::vector<ClauseAttack> clause_attacks() {
  using enum SoakFamily;
  const std::vector<SoakFamily> norms = {absorbed_squares, storage_bound, normal};
  const std::vector<SoakFamily> scores = {absorbed_squares, small, near_equal_values, falling, saturating};
  const std::vector<SoakFamily> weights = {absorbed_squares, stored_weights, near_equal_values,
                                           storage_bound,    large_scores,   falling};
  const auto computed = [](qkcts_contract& terms) { terms.rotation.angles = QKCTS_ANGLES_COMPUTED; };
  return {
      {{shipped_contract("clause_clip_before")}, {QKCTS_STAGE_Q_NORM}, norms},
      {{shipped_contract("clause_clip_after")}, {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_NORM}, norms},
      {{changed("clause_clip_without_norm",
                [](qkcts_contract& terms) {
                  terms.q_range = {1.25, 1.7, 1.9};
                })},
       {QKCTS_STAGE_Q_NORM},
       norms},
      {{shipped_contract("clause_rope_computed")}, {QKCTS_STAGE_Q_ROPE, QKCTS_STAGE_K_ROPE}, norms},
      {{changed("clause_rope_yarn", computed)}, {QKCTS_STAGE_Q_ROPE}, norms},
      {{changed("clause_rope_llama3", computed)}, {QKCTS_STAGE_Q_ROPE}, norms},
      {{changed("clause_rope_ntk", computed)}, {QKCTS_STAGE_Q_ROPE}, norms},
      {{shipped_contract("clause_scale_exp_per_head")}, {QKCTS_STAGE_SCORES}, scores},
      {{shipped_contract("clause_query_temperature")}, {QKCTS_STAGE_SCORES}, scores},
      {{shipped_contract("clause_alibi_relative")}, {QKCTS_STAGE_CAPPED}, scores},
      {{shipped_contract("clause_alibi_symmetric")}, {QKCTS_STAGE_CAPPED}, scores},
      {{shipped_contract("clause_alibi_last_key")}, {QKCTS_STAGE_CAPPED}, scores},
      {{with_sink("plain_sdpa", QKCTS_SINK_COLUMN), with_sink("qwen3_rmsnorm", QKCTS_SINK_COLUMN),
        with_sink("gemma2_softcap", QKCTS_SINK_COLUMN)},
       {QKCTS_STAGE_PROBS, QKCTS_STAGE_LSE, QKCTS_STAGE_OUTPUT},
       weights},
      {{with_sink("plain_sdpa", QKCTS_SINK_POST_SCALE), with_sink("qwen3_rmsnorm", QKCTS_SINK_POST_SCALE),
        with_sink("gemma2_softcap", QKCTS_SINK_POST_SCALE)},
       {QKCTS_STAGE_OUTPUT},
       weights},
      {{shipped_contract("clause_base_two")}, {QKCTS_STAGE_LSE}, weights},
      {{shipped_contract("clause_lse_base_two")}, {QKCTS_STAGE_LSE}, weights},
      {{shipped_contract("clause_v_norm")}, {QKCTS_STAGE_V_NORM}, norms},
      {{with_values_normed("plain_sdpa"), with_values_normed("qwen3_rmsnorm")}, {QKCTS_STAGE_OUTPUT}, weights},
      {{shipped_contract("clause_projection")}, {QKCTS_STAGE_Q_PROJ, QKCTS_STAGE_K_PROJ}, norms},
      {{shipped_contract("clause_projection_bias")}, {QKCTS_STAGE_Q_PROJ, QKCTS_STAGE_K_PROJ}, norms},
      {{shipped_contract("clause_projection_input_norm")}, {QKCTS_STAGE_Q_PROJ}, norms},
      {{shipped_contract("clause_projection_two_norms")}, {QKCTS_STAGE_Q_PROJ}, norms},
      {{shipped_contract("clause_rope_tables_per_head")}, {QKCTS_STAGE_Q_ROPE, QKCTS_STAGE_K_ROPE}, norms},
      {{shipped_contract("clause_query_temperature_ratio")}, {QKCTS_STAGE_SCORES}, scores},
  };
}

void attacked(const Contract& contract, Format format, const std::vector<SoakFamily>& families, SoakRandom& random,
              SoakTally& tally) {
  std::uint64_t seed = 1;
  for (const SoakFamily family : families) {
    for (qkcts_shape shape :
         {qkcts_shape{1, 2, 1, 2, 8, 64, 3}, qkcts_shape{1, 1, 1, 2, 64, 2, 3}, qkcts_shape{1, 2, 1, 2, 2, 18, 6}}) {
      if (contract.terms.rotation.tables == QKCTS_TABLES_PER_HEAD) {
        shape.kv_heads = shape.q_heads;
      }
      if (!shape_fault(contract.terms, shape).empty()) {
        continue;
      }
      const Case c = soak_case(contract, format, family, shape, seed++);
      ASSERT_EQ(case_fault(c), "") << c.slug;
      soak_one(c, soak_family_name(family), 24, random, tally);
    }
  }
}

TEST(BudgetSoakClauses, BoundsOfEveryClauseAreApproached) {
  for (const ClauseAttack& attack : clause_attacks()) {
    for (const Format format : {Format::binary64, Format::binary32, Format::bfloat16, Format::binary16}) {
      SoakRandom random(11);
      SoakTally tally;
      for (const Contract& contract : attack.contracts) {
        attacked(contract, format, attack.families, random, tally);
      }
      EXPECT_EQ(tally.rejects, 0u) << tally.first_reject;
      const std::string profile = profiles_for(format).front().name;
      for (const qkcts_stage stage : attack.stages) {
        const Worst worst = tally.largest(profile, std::string(stage_name(stage)));
        std::printf("%-26s %-12s %-7s %.3f %s\n", attack.contracts[0].name.c_str(), profile.c_str(),
                    std::string(stage_name(stage)).c_str(), worst.ratio, worst.where.c_str());
        EXPECT_GT(worst.ratio, 0.2) << attack.contracts[0].name << " " << profile << " " << stage_name(stage);
      }
    }
  }
}

// What a clause adds to a bound is needed: counted without it, legal code of this clause is rejected.
TEST(BudgetSoakClauses, AnglesNeedTheirTerm) {
  const qkcts_shape shape{1, 2, 1, 2, 8, 64, 3};
  SoakRandom random(5);
  SoakTally tally;
  const Case c = soak_case(shipped_contract("clause_rope_computed"), Format::binary32, SoakFamily::normal, shape, 3);
  const TermSet without = ~(TermSet{1} << static_cast<unsigned>(BudgetTerm::angle_frequency));
  soak_one(c, "", 8, random, tally, {}, without);
  EXPECT_GT(tally.rejects, 0u);
}

// One product of 1 and many that a matrix unit cuts off beside it: the loss is what the profile grants for its
// products, and more than one rounding each would be.
TEST(BudgetSoakClauses, MatrixUnitsNeedTheirGrowth) {
  struct Unit {
    int products, fraction;
    double least;  // part of the bound that is reached: that of the unit in the profile with the largest growth
  };
  const qkcts_shape shape{1, 1, 1, 2, 4, 128, 3};
  const Profile profile = shipped_profile("bf16_f32acc");
  Profile narrow = profile;
  narrow.product_growth = 1;
  for (const Unit& unit : {Unit{4, 23, 0.7}, Unit{8, 24, 0.35}, Unit{16, 25, 0.18}}) {
    Case c = soak_case(shipped_contract("plain_sdpa"), Format::bfloat16, SoakFamily::normal, shape, 1);
    const double tail = std::ldexp(1 - 0x1p-8, -unit.fraction);
    std::vector<double> q(2 * 128, 1.0), k(4 * 128, tail);
    for (std::size_t key = 0; key < 4; ++key) {
      k[key * 128] = 1;
    }
    set_values(c, Input::q, q);
    set_values(c, Input::k, k);
    const ReferenceResult truth = evaluate(c, every_row(c));
    LegalVariant variant;
    variant.sum = LegalVariant::Sum::matrix;
    variant.matrix_products = unit.products;
    variant.matrix_fraction = unit.fraction;
    const double got = run_legal_variant(c, truth.exact, profile, variant)[QKCTS_STAGE_SCORES][0];
    const double wrong = std::fabs(got - truth.exact.values[QKCTS_STAGE_SCORES][0]);
    // The named variant of the unit itself is sharper, and grants what the unit does.
    const char* variant_of_unit = unit.products == 8 ? "bf16_f32acc_ampere" : "bf16_f32acc_hopper";
    const auto delta = [&](const Profile& p) {
      return static_cast<double>(stage_budgets(c, truth.exact, every_row(c), p)[QKCTS_STAGE_SCORES].delta[0]);
    };
    EXPECT_LE(wrong, delta(profile)) << unit.products;
    EXPECT_GT(wrong, unit.least * delta(profile)) << unit.products;
    if (unit.products == 4) {
      EXPECT_GT(wrong, delta(narrow));
    } else {
      const double own = delta(shipped_profile(variant_of_unit));
      EXPECT_LE(wrong, own) << unit.products;
      EXPECT_GT(wrong, 0.4 * own) << unit.products;
      EXPECT_LT(own, 0.7 * delta(profile)) << unit.products;
    }
  }
}

}  // namespace
}  // namespace qkcts
