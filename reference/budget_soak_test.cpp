// SPDX-License-Identifier: Apache-2.0
// The budgets attacked: legal implementations are never rejected, wrong ones are, and the bounds are approached.
#include "reference/budget_soak.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "conformance/budget_terms.hpp"
#include "conformance/further_profiles.hpp"
#include "reference/attention.hpp"
#include "reference/legal_variant.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

// `ctest -L soak` asks for more cases than a default run.
int wanted_cases(int usual) {
  const char* cases = std::getenv("QKCTS_SOAK_CASES");
  return cases != nullptr ? std::atoi(cases) : usual;
}

TEST(BudgetSoak, LegalImplementationsPass) {
  SoakTally tally;
  soak(20, wanted_cases(250), 8, tally);
  std::printf("%s", tally.text().c_str());
  EXPECT_EQ(tally.rejects, 0u) << tally.first_reject;
  EXPECT_GT(tally.runs, 1000u);
}

struct Attack {
  const char* contract;
  SoakFamily family;
  qkcts_shape shape;
};

// Each stage of each profile has a family that reaches a fifth of its bound, or the bound has gone lax.
TEST(BudgetSoak, BoundsAreApproached) {
  const qkcts_shape wide{1, 2, 1, 2, 8, 64, 3};
  const qkcts_shape narrow{1, 2, 1, 2, 4, 8, 6};
  const qkcts_shape deep{1, 1, 1, 2, 64, 2, 3};
  const qkcts_shape few{1, 2, 1, 2, 2, 18, 6};
  const Attack attacks[] = {
      {"rmsnorm_softcap", SoakFamily::absorbed_squares, wide},
      {"qwen3_rmsnorm", SoakFamily::absorbed_squares, wide},
      {"clause_eps_max_root", SoakFamily::storage_bound, few},
      {"plain_sdpa", SoakFamily::stored_weights, wide},
      {"plain_sdpa", SoakFamily::falling, deep},
      {"plain_sdpa", SoakFamily::rising, deep},
      {"clause_causal_offset", SoakFamily::stored_weights, few},
      {"clause_bias_after_softcap", SoakFamily::normal, few},
      {"plain_sdpa", SoakFamily::near_equal_values, few},
      {"clause_rope_interleaved", SoakFamily::normal, narrow},
      {"gemma2_softcap", SoakFamily::large_scores, narrow},
      {"clause_softcap_inexact", SoakFamily::large_scores, few},
      {"plain_sdpa", SoakFamily::offset, few},
      {"clause_mask_boolean", SoakFamily::saturating, few},
      {"clause_projection", SoakFamily::absorbed_squares, few},
      {"clause_projection", SoakFamily::normal, few},
      {"clause_projection", SoakFamily::ascending, few},
      {"clause_v_norm", SoakFamily::absorbed_squares, few},
  };
  SoakTally tally;
  SoakRandom random(7);
  for (const Attack& attack : attacks) {
    for (const Format format : {Format::binary64, Format::binary32, Format::bfloat16, Format::binary16}) {
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const Case c = soak_case(shipped_contract(attack.contract), format, attack.family, attack.shape, seed);
        ASSERT_EQ(case_fault(c), "") << c.slug;
        soak_one(c, soak_family_name(attack.family), 24, random, tally);
      }
    }
  }
  std::printf("%s", tally.text().c_str());
  EXPECT_EQ(tally.rejects, 0u) << tally.first_reject;
  std::vector<std::string> profiles = shipped_profiles();
  for (const std::string& name : further_profiles()) profiles.push_back(name);
  for (const std::string& profile : profiles) {
    for (const qkcts_stage stage : all_stages) {
      // Sums in binary16 have inputs of their own: BudgetSoakProfiles.SumsInBinary16ReachTheirBounds.
      const bool of_rows = stage == QKCTS_STAGE_PROBS || stage == QKCTS_STAGE_LSE || stage == QKCTS_STAGE_OUTPUT;
      if (profile.starts_with("f16_f16acc") && of_rows) continue;
      EXPECT_GT(tally.largest(profile, std::string(stage_name(stage))).ratio, 0.2)
          << profile << " " << stage_name(stage);
    }
  }
}

// Scores that rise to 100, each the one of the next 48 numbers whose product with log2 e is rounded down by most. With
// v = 1 nothing but the row sum can be off.
Case rising_maxima(std::int64_t keys) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  contract.terms.score.scale_value = 1;
  SampleSpec spec;
  spec.format = Format::binary32;
  spec.shape = {1, 1, 1, 1, keys, 1, 1};
  Case c = sample_case(contract, spec);
  std::vector<double> scores;
  float s = 100;
  while (scores.size() < static_cast<std::size_t>(keys)) {
    constexpr float log2_e = 1.442695041f;
    float best = s;
    double most = -1;
    for (int i = 0; i < 48; ++i, s = std::nextafter(s, 1000.0f)) {
      const double lost = static_cast<double>(s) * static_cast<double>(log2_e) - static_cast<double>(s * log2_e);
      if (lost > most) {
        most = lost;
        best = s;
      }
    }
    scores.push_back(static_cast<double>(best));
  }
  set_values(c, Input::q, std::vector<double>{1});
  set_values(c, Input::k, scores);
  set_values(c, Input::v, std::vector<double>(scores.size(), 1));
  return c;
}

// Without O7 a budget rejects kernels that form their weights once more when the row sum is done.
TEST(BudgetSoak, FreshWeightsNeedTheirTerm) {
  constexpr TermSet without = all_budget_terms & ~(TermSet{1} << static_cast<unsigned>(BudgetTerm::fresh_weights));
  const Case c = rising_maxima(128);
  const ReferenceResult truth = evaluate(c, every_row(c));
  const Profile f32 = shipped_profile("f32");
  const auto delta = [&](TermSet terms) {
    return static_cast<double>(stage_budgets(c, truth.exact, every_row(c), f32, terms)[QKCTS_STAGE_OUTPUT].delta[0]);
  };
  LegalVariant variant;
  variant.base = LegalVariant::Base::two_contracted;
  variant.block = 1;
  for (const LegalVariant::Softmax softmax :
       {LegalVariant::Softmax::online, LegalVariant::Softmax::split_renormalised}) {
    for (const LegalVariant::Normalise normalise : {LegalVariant::Normalise::first, LegalVariant::Normalise::last}) {
      variant.softmax = softmax;
      variant.normalise = normalise;
      const auto error = [&](bool afresh) {
        variant.afresh = afresh;
        return std::fabs(run_legal_variant(c, truth.exact, f32, variant)[QKCTS_STAGE_OUTPUT][0] - 1);
      };
      EXPECT_LT(error(false), delta(without)) << "weights that are carried need nothing";
      EXPECT_LT(error(true), delta(all_budget_terms));
      if (softmax == LegalVariant::Softmax::online) {
        EXPECT_GT(error(true), delta(without));
      }
    }
  }
}

// The control of the controls: what is not legal is rejected.
TEST(BudgetSoak, WrongImplementationsAreRejected) {
  SoakFault eps, scale, key, weight, larger_scale;
  eps.eps_factor = 10;
  scale.scale_factor = 1 + 1e-4;
  larger_scale.scale_factor = 1 + 1e-2;  // beside the freedom that sums over 96 entries have
  key.drop_last_key = true;
  weight.weight_factor = 1 + 1e-4;
  const qkcts_shape shape{1, 2, 1, 2, 7, 32, 3};
  SoakRandom random(3);
  const auto rejects = [&](const char* contract, SoakFamily family, const SoakFault& fault) {
    SoakTally tally;
    soak_one(soak_case(shipped_contract(contract), Format::binary32, family, shape, 5), "", 4, random, tally, fault);
    return tally.rejects;
  };
  for (const char* contract :
       {"vit22b_rms_uncentered", "clause_v_norm", "clause_projection", "clause_projection_input_norm"}) {
    EXPECT_EQ(rejects(contract, SoakFamily::small, {}), 0u) << contract;
    EXPECT_GT(rejects(contract, SoakFamily::small, eps), 0u) << contract;
    const bool projects = std::string_view(contract).starts_with("clause_projection");
    EXPECT_GT(rejects(contract, SoakFamily::normal, projects ? larger_scale : scale), 0u) << contract;
    EXPECT_GT(rejects(contract, SoakFamily::normal, key), 0u) << contract;
  }
  EXPECT_GT(rejects("clause_projection", SoakFamily::normal, weight), 0u);
  EXPECT_GT(rejects("clause_projection_input_norm", SoakFamily::normal, weight), 0u);
}

}  // namespace
}  // namespace qkcts
