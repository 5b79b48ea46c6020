// SPDX-License-Identifier: Apache-2.0
// Machines of the named variants: what they do is beyond the bound of the profile that lacks their numbers, so that
// neither is looser than it says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "conformance/budget_terms.hpp"
#include "conformance/further_profiles.hpp"
#include "reference/attention.hpp"
#include "reference/budget_soak.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

struct Machine {
  const char* profile;  // of the machine
  const char* judge;    // whose numbers do not grant it
  const char* contract;
  SoakFamily family;
  qkcts_stage stage;
};

// Elements of the stage that legal code of `machine` computes beyond the budgets of `judge`.
std::uint64_t beyond(const Machine& machine, const Profile& judge) {
  const Profile own = shipped_profile(machine.profile);
  const qkcts_shape shape{1, 2, 1, 2, 8, 64, 3};
  std::uint64_t count = 0;
  SoakRandom random(3);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Case c = soak_case(shipped_contract(machine.contract), own.storage, machine.family, shape, seed);
    const ReferenceResult truth = evaluate(c, every_row(c));
    const StageBudget budget = stage_budgets(c, truth.exact, every_row(c), judge)[machine.stage];
    const std::vector<ElementRule>& rule = truth.stages[machine.stage].rule;
    for (int k = 0; k < 24; ++k) {
      SoakProfile freedom{own, own.lanes == 8, 0};
      const StageValues got = run_legal_variant(c, truth.exact, own, random_variant(random, freedom));
      for (std::size_t i = 0; i < budget.delta.size(); ++i) {
        const double wrong = std::fabs(got[machine.stage][i] - truth.exact.values[machine.stage][i]);
        const bool judged = rule[i] == ElementRule::budget || rule[i] == ElementRule::budget_exact;
        count += judged && wrong > static_cast<double>(budget.delta[i]) ? 1 : 0;
      }
    }
  }
  return count;
}

TEST(BudgetSoakProfiles, EachMachineNeedsItsOwnNumbers) {
  using enum SoakFamily;
  const Machine machines[] = {
      {"tf32", "f32_ftz", "plain_sdpa", normal, QKCTS_STAGE_SCORES},
      {"tf32", "f32_ftz", "plain_sdpa", near_equal_values, QKCTS_STAGE_OUTPUT},
      {"f16_f16acc", "f16_f32acc", "qwen3_rmsnorm", normal, QKCTS_STAGE_SCORES},
      {"f32_approx", "f32_ftz", "gemma2_softcap", large_scores, QKCTS_STAGE_CAPPED},
      {"bf16_f32acc_approx", "bf16_f32acc_ftz", "gemma2_softcap", large_scores, QKCTS_STAGE_CAPPED},
      {"f32", "f32_lanes8", "vit22b_rms_uncentered", absorbed_squares, QKCTS_STAGE_Q_NORM},
      {"bf16_f32acc", "bf16_f32acc_simd", "plain_sdpa", stored_weights, QKCTS_STAGE_LSE},
  };
  for (const Machine& machine : machines) {
    EXPECT_EQ(beyond(machine, shipped_profile(machine.profile)), 0u) << machine.profile;
    EXPECT_GT(beyond(machine, shipped_profile(machine.judge)), 0u) << machine.profile << " by " << machine.judge;
  }
}

// Products of 64 and -64 and many between them of which binary16 absorbs every one, or every four where a unit adds
// them at once: computed scores are 0, though the sum of the others is almost all that a sum may lose. `apart`: that of
// key 0 is above 0 and the other one below, so that weights move apart; else both are above.
Case absorbed_in_binary16(int products, bool apart, std::size_t lanes) {
  const qkcts_shape shape{1, 1, 1, 2, 2, static_cast<std::int64_t>(lanes), 3};
  Case c = soak_case(shipped_contract("plain_sdpa"), Format::binary16, SoakFamily::normal, shape, 1);
  const double wanted = 8 * std::sqrt(0.97 * 0x1p-11 / products);
  const double tail = decode(Format::binary16, encode(Format::binary16, wanted));
  std::vector<double> q, k, v(2 * 3, -1.0);
  const auto append = [lanes](std::vector<double>& rows, double first, double middle, double last) {
    rows.push_back(first);
    rows.resize(rows.size() + lanes - 2, middle);
    rows.push_back(last);
  };
  for (int query = 0; query < 2; ++query) append(q, 8, tail, 8);
  for (int key = 0; key < 2; ++key) append(k, 8, key == 0 || !apart ? tail : -tail, -8);
  std::fill(v.begin(), v.begin() + 3, 1.0);
  set_values(c, Input::q, q);
  set_values(c, Input::k, k);
  set_values(c, Input::v, v);
  return c;
}

TEST(BudgetSoakProfiles, SumsInBinary16ReachTheirBounds) {
  for (const char* name : {"f16_f16acc", "f16_f16acc_matrix"}) {
    const Profile profile = shipped_profile(name);
    const bool unit = profile.product_growth < 1;
    SoakRandom random(9);
    SoakTally tally;
    for (const bool apart : {true, false})
      soak_one(absorbed_in_binary16(unit ? 4 : 1, apart, unit ? 256 : 64), "absorbed", 160, random, tally);
    EXPECT_EQ(tally.rejects, 0u) << tally.first_reject;
    for (const qkcts_stage stage : {QKCTS_STAGE_SCORES, QKCTS_STAGE_PROBS, QKCTS_STAGE_LSE, QKCTS_STAGE_OUTPUT}) {
      const Worst worst = tally.largest(name, std::string(stage_name(stage)));
      std::printf("%-18s %-7s %.3f\n", name, std::string(stage_name(stage)).c_str(), worst.ratio);
      EXPECT_GT(worst.ratio, 0.2) << name << " " << stage_name(stage);
    }
  }
}

// A sum that rounds every product loses more than a unit that rounds every fourth.
TEST(BudgetSoakProfiles, PlainSumsAreBeyondAUnit) {
  const Case c = absorbed_in_binary16(1, true, 64);
  const ReferenceResult truth = evaluate(c, every_row(c));
  const StageValues got = run_legal_variant(c, truth.exact, shipped_profile("f16_f16acc"), {});
  const double wrong = std::fabs(got[QKCTS_STAGE_SCORES][0] - truth.exact.values[QKCTS_STAGE_SCORES][0]);
  const auto delta = [&](const char* name) {
    const StageBudget budget = stage_budgets(c, truth.exact, every_row(c), shipped_profile(name))[QKCTS_STAGE_SCORES];
    return static_cast<double>(budget.delta[0]);
  };
  EXPECT_LE(wrong, delta("f16_f16acc"));
  EXPECT_GT(wrong, 0.3 * delta("f16_f16acc"));
  EXPECT_GT(wrong, delta("f16_f16acc_matrix"));
}

// A product in tf32 whose operands hold nothing but ones behind the tenth fraction bit: cut off, they reach the bound.
TEST(BudgetSoakProfiles, OperandsOfAUnitReachTheirBound) {
  const Profile tf32 = shipped_profile("tf32");
  const qkcts_shape shape{1, 1, 1, 2, 4, 64, 3};
  Case c = soak_case(shipped_contract("plain_sdpa"), Format::binary32, SoakFamily::normal, shape, 1);
  const double x = 1 + (0x1p-10 - 0x1p-23);
  set_values(c, Input::q, std::vector<double>(2 * 64, x));
  set_values(c, Input::k, std::vector<double>(4 * 64, x));
  const ReferenceResult truth = evaluate(c, every_row(c));
  LegalVariant variant;
  variant.sum = LegalVariant::Sum::matrix;
  variant.matrix_fraction = 24;
  variant.feed = LegalVariant::Feed::cut;
  const double got = run_legal_variant(c, truth.exact, tf32, variant)[QKCTS_STAGE_SCORES][0];
  const double delta =
      static_cast<double>(stage_budgets(c, truth.exact, every_row(c), tf32)[QKCTS_STAGE_SCORES].delta[0]);
  const double wrong = std::fabs(got - truth.exact.values[QKCTS_STAGE_SCORES][0]);
  EXPECT_LE(wrong, delta);
  EXPECT_GT(wrong, 0.9 * delta);
  variant.feed = LegalVariant::Feed::nearest;  // and rounded to nearest they are at most half as far off
  const double nearest = run_legal_variant(c, truth.exact, tf32, variant)[QKCTS_STAGE_SCORES][0];
  EXPECT_LT(std::fabs(nearest - truth.exact.values[QKCTS_STAGE_SCORES][0]), 0.01 * delta);
}

// Units that align a subnormal operand by its stored exponent are beyond a bound without M2, and by leading bits are
// not.
TEST(BudgetSoakProfiles, SubnormalFactorsNeedTheirTerm) {
  constexpr TermSet without = all_budget_terms & ~(TermSet{1} << static_cast<unsigned>(BudgetTerm::matrix_alignment));
  const struct {
    const char* name;
    const char* contract;
    qkcts_stage stage;
  } units[] = {{"f16_f32acc", "plain_sdpa", QKCTS_STAGE_SCORES},
               {"bf16_f32acc", "plain_sdpa", QKCTS_STAGE_SCORES},
               {"bf16_f32acc_hopper", "plain_sdpa", QKCTS_STAGE_SCORES},
               {"f16_f32acc", "clause_projection", QKCTS_STAGE_Q_PROJ},
               {"bf16_f32acc", "clause_projection", QKCTS_STAGE_Q_PROJ}};
  for (const auto& unit : units) {
    const Profile profile = shipped_profile(unit.name);
    LegalVariant variant;
    variant.sum = LegalVariant::Sum::matrix;
    if (profile.name.ends_with("_hopper")) {
      variant.matrix_products = 16;
      variant.matrix_fraction = 25;
    }
    double leading = 0;  // |error| over the bound without M2
    double stored = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const Case c = soak_case(shipped_contract(unit.contract), profile.storage, SoakFamily::subnormal_factors,
                               {1, 2, 1, 2, 8, 8, 3}, seed);
      const ReferenceResult truth = evaluate(c, every_row(c));
      const StageBudget whole = stage_budgets(c, truth.exact, every_row(c), profile)[unit.stage];
      const StageBudget part = stage_budgets(c, truth.exact, every_row(c), profile, without)[unit.stage];
      for (const bool aligns_stored : {false, true}) {
        variant.matrix_aligns_stored = aligns_stored;
        const std::vector<double> got = run_legal_variant(c, truth.exact, profile, variant)[unit.stage];
        for (std::size_t i = 0; i < got.size(); ++i) {
          const double wrong = std::fabs(got[i] - truth.exact.values[unit.stage][i]);
          EXPECT_LE(wrong, static_cast<double>(whole.delta[i])) << unit.name << " " << unit.contract;
          double& most = aligns_stored ? stored : leading;
          most = std::max(most, wrong / static_cast<double>(part.delta[i]));
        }
      }
    }
    std::printf("%-18s %-18s %.3f %.3f\n", unit.name, unit.contract, leading, stored);
    EXPECT_LE(leading, 1) << unit.name;
    if (profile.storage == Format::binary16) {
      EXPECT_GT(stored, 1) << unit.contract;
    } else {
      EXPECT_GT(stored, 0.1) << unit.contract;  // what S3 counts for an element of binary32 that underflows is as much
    }
  }
}

}  // namespace
}  // namespace qkcts
