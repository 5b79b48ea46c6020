// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "conformance/contract.hpp"

namespace qkcts {
namespace {

std::vector<std::string> names_of(const char* contract) {
  std::vector<std::string> names;
  for (const qkcts_stage stage : all_stages)
    if ((stages_of(shipped_contract(contract).terms) & bit(stage)) != 0) names.emplace_back(stage_name(stage));
  return names;
}

TEST(Stage, ExistsOnlyWhereTheContractHasIt) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of("plain_sdpa"), (Names{"scores", "probs", "lse", "output"}));
  EXPECT_EQ(names_of("qwen3_rmsnorm"),
            (Names{"q_norm", "k_norm", "q_rope", "k_rope", "scores", "masked", "probs", "lse", "output"}));
  EXPECT_EQ(names_of("gemma2_softcap"),
            (Names{"q_rope", "k_rope", "scores", "capped", "masked", "probs", "lse", "output"}));
  EXPECT_EQ(names_of("clause_norm_on_k_only"), (Names{"k_norm", "scores", "probs", "lse", "output"}));
  EXPECT_EQ(names_of("clause_bias_additive"),
            (Names{"q_norm", "k_norm", "scores", "capped", "masked", "probs", "lse", "output"}));
  EXPECT_EQ(names_of("clause_clip_without_norm"),
            (Names{"q_norm", "k_norm", "q_rope", "k_rope", "scores", "probs", "lse", "output"}));
  EXPECT_EQ(names_of("clause_alibi_symmetric"),
            (Names{"q_norm", "k_norm", "scores", "capped", "probs", "lse", "output"}));
  EXPECT_EQ(names_of("clause_projection"),
            (Names{"q_proj", "k_proj", "q_norm", "k_norm", "q_rope", "k_rope", "scores", "probs", "lse", "output"}));
  EXPECT_EQ(names_of("clause_v_multiplier"), (Names{"k_norm", "v_norm", "scores", "probs", "lse", "output"}));
  EXPECT_EQ(names_of("clause_mask_documents"),
            (Names{"q_norm", "k_norm", "scores", "masked", "probs", "lse", "output"}));
}

TEST(Stage, ShapesAndRows) {
  const qkcts_shape shape{2, 6, 3, 5, 7, 16, 11};
  using Extents = std::vector<std::int64_t>;
  EXPECT_EQ(stage_shape(QKCTS_STAGE_Q_NORM, shape), (Extents{2, 6, 5, 16}));
  EXPECT_EQ(stage_shape(QKCTS_STAGE_K_ROPE, shape), (Extents{2, 3, 7, 16}));
  EXPECT_EQ(stage_shape(QKCTS_STAGE_MASKED, shape), (Extents{2, 6, 5, 7}));
  EXPECT_EQ(stage_shape(QKCTS_STAGE_LSE, shape), (Extents{2, 6, 5}));
  EXPECT_EQ(stage_shape(QKCTS_STAGE_OUTPUT, shape), (Extents{2, 6, 5, 11}));
  EXPECT_EQ(stage_shape(QKCTS_STAGE_K_PROJ, shape), (Extents{2, 3, 7, 16}));
  EXPECT_EQ(stage_shape(QKCTS_STAGE_V_NORM, shape), (Extents{2, 3, 7, 11}));
  EXPECT_EQ(row_length(QKCTS_STAGE_OUTPUT, shape), 11);
  EXPECT_EQ(row_length(QKCTS_STAGE_LSE, shape), 1);
  EXPECT_EQ(row_count(QKCTS_STAGE_K_NORM, shape), 42);
  EXPECT_EQ(row_count(QKCTS_STAGE_LSE, shape), 60);
}

TEST(Stage, PointsAreThoseOfTheStage) {
  const qkcts_contract eager = shipped_contract("clause_round_eager").terms;
  EXPECT_TRUE(has_rounding_points(eager.rounding));
  for (const qkcts_stage stage : {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_ROPE, QKCTS_STAGE_SCORES, QKCTS_STAGE_OUTPUT})
    EXPECT_EQ(stage_point(eager, stage), static_cast<std::uint32_t>(QKCTS_BFLOAT16)) << stage_name(stage);
  EXPECT_EQ(stage_point(eager, QKCTS_STAGE_MASKED), 0U);
  EXPECT_EQ(stage_point(shipped_contract("clause_round_e5m2").terms, QKCTS_STAGE_K_NORM),
            static_cast<std::uint32_t>(QKCTS_E5M2));
  qkcts_rounding rounding{};
  rounding.saturate = 1;
  EXPECT_FALSE(has_rounding_points(rounding));
  rounding.v.reciprocal = QKCTS_BINARY16;
  EXPECT_TRUE(has_rounding_points(rounding));
}

TEST(Stage, NamesAreUniqueAndFound) {
  for (const qkcts_stage stage : all_stages) EXPECT_EQ(stage_named(stage_name(stage)), stage);
  EXPECT_FALSE(stage_named("dq").has_value());
}

TEST(ShapeFault, NamesTheFirstContradiction) {
  const qkcts_contract plain = shipped_contract("plain_sdpa").terms;
  const qkcts_contract rotated = shipped_contract("clause_rope_partial_first").terms;
  const qkcts_shape good{1, 4, 2, 3, 3, 16, 8};
  EXPECT_EQ(shape_fault(plain, good), "");
  EXPECT_EQ(shape_fault(rotated, good), "");
  qkcts_shape bad = good;
  bad.kv_heads = 3;
  EXPECT_NE(shape_fault(plain, bad).find("q_heads 4 is no multiple of kv_heads 3"), std::string::npos);
  bad = good;
  bad.k_len = 0;
  EXPECT_NE(shape_fault(plain, bad).find("k_len is 0"), std::string::npos);
  bad = good;
  bad.head_dim = 8;
  EXPECT_NE(shape_fault(rotated, bad).find("rope.rotated 16"), std::string::npos);
  bad.head_dim = 15;
  EXPECT_NE(shape_fault(shipped_contract("clause_rope_half_split").terms, bad).find("odd"), std::string::npos);
  bad = good;
  bad.batch = bad.q_len = bad.k_len = 2000000000;
  EXPECT_NE(shape_fault(plain, bad).find("too many"), std::string::npos);
}

}  // namespace
}  // namespace qkcts
