// SPDX-License-Identifier: Apache-2.0
// The budgets attacked: legal implementations are never rejected, wrong ones are, and the bounds are approached.
#include "reference/budget_soak.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

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
      {"clause_causal_offset", SoakFamily::stored_weights, few},
      {"clause_bias_after_softcap", SoakFamily::normal, few},
      {"plain_sdpa", SoakFamily::near_equal_values, few},
      {"clause_rope_interleaved", SoakFamily::normal, narrow},
      {"gemma2_softcap", SoakFamily::large_scores, narrow},
      {"clause_softcap_inexact", SoakFamily::large_scores, few},
      {"plain_sdpa", SoakFamily::offset, few},
      {"clause_mask_boolean", SoakFamily::saturating, few},
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
  for (const std::string& profile : shipped_profiles()) {
    for (const qkcts_stage stage : all_stages) {
      EXPECT_GT(tally.largest(profile, std::string(stage_name(stage))).ratio, 0.2)
          << profile << " " << stage_name(stage);
    }
  }
}

// The control of the controls: what is not legal is rejected.
TEST(BudgetSoak, WrongImplementationsAreRejected) {
  SoakFault eps, scale, key;
  eps.eps_factor = 10;
  scale.scale_factor = 1 + 1e-4;
  key.drop_last_key = true;
  const qkcts_shape shape{1, 2, 1, 2, 7, 32, 3};
  SoakRandom random(3);
  const auto rejects = [&](SoakFamily family, const SoakFault& fault) {
    SoakTally tally;
    soak_one(soak_case(shipped_contract("vit22b_rms_uncentered"), Format::binary32, family, shape, 5), "", 4, random,
             tally, fault);
    return tally.rejects;
  };
  EXPECT_EQ(rejects(SoakFamily::small, {}), 0u);
  EXPECT_GT(rejects(SoakFamily::small, eps), 0u);
  EXPECT_GT(rejects(SoakFamily::normal, scale), 0u);
  EXPECT_GT(rejects(SoakFamily::normal, key), 0u);
}

}  // namespace
}  // namespace qkcts
