// SPDX-License-Identifier: Apache-2.0
#include "vectors/input_family.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <set>

#include "vectors/generate.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

struct Sample {
  const char* family;
  const char* contract;
  const char* shape;
};

// Each family under contracts that admit it: one with and one without a norm, or with another kind of it.
constexpr Sample samples[] = {
    {"gaussian", "qwen3_rmsnorm", "2,4,2,9,15,64,40"},
    {"gaussian", "plain_sdpa", "2,4,2,9,15,64,40"},
    {"correlated", "qwen3_rmsnorm", "1,4,2,9,15,64,40"},
    {"correlated", "plain_sdpa", "1,4,2,20,15,16,8"},
    {"norm40", "henry2020_l2", "2,4,2,5,8,128,64"},
    {"norm40", "plain_sdpa", "1,2,1,5,8,7,3"},
    {"magnitude_sweep", "plain_sdpa", "1,2,1,15,8,32,16"},
    {"magnitude_sweep", "qwen3_rmsnorm", "1,2,1,15,15,32,16"},
    {"long_rows", "qwen3_rmsnorm", "1,2,1,5,129,32,24"},
    {"long_rows", "plain_sdpa", "1,2,1,3,257,32,24"},
    {"offset_positions", "llama4_rms_unweighted", "2,4,2,6,10,24,20"},
    {"offset_positions", "gemma2_softcap", "2,4,2,6,10,24,20"},
    {"eps_edge", "qwen3_rmsnorm", "1,4,2,12,18,24,20"},
    {"eps_edge", "olmo2_full_width", "1,4,2,12,18,24,20"},
    {"eps_edge", "clause_l2_outside_root", "1,4,2,12,18,24,20"},
    {"absorbed_tail", "vit22b_rms_uncentered", "1,4,2,9,14,64,40"},
    {"absorbed_tail", "qwen3_rmsnorm", "1,4,2,9,14,64,40"},
    {"cancelling", "plain_sdpa", "1,4,2,9,14,64,40"},
    {"cancelling", "clause_eps_inside_root", "1,4,2,9,14,33,40"},
    {"constant_rows", "flax_qk_layernorm", "1,4,2,9,14,64,40"},
    {"constant_rows", "qwen3_rmsnorm", "1,4,2,9,14,64,40"},
    {"shifted_rows", "clause_layer_norm_two_pass", "1,4,2,9,14,64,40"},
    {"shifted_rows", "qwen3_rmsnorm", "1,4,2,9,14,64,40"},
    {"low_scores", "plain_sdpa", "1,4,2,9,14,64,40"},
    {"low_scores", "clause_window_causal", "1,4,2,40,44,24,20"},
    {"low_scores", "clause_mask_boolean", "1,4,2,9,40,24,20"},
    {"gain_signs", "qwen3_rmsnorm", "1,4,2,9,14,32,40"},
    {"gain_signs", "gemma3_rmsnorm", "1,4,2,9,14,32,40"},
    {"huge", "olmo2_full_width", "1,4,2,9,14,64,40"},
    {"huge", "henry2020_l2", "1,4,2,9,14,64,40"},
    {"subnormal", "plain_sdpa", "1,4,2,7,12,40,24"},
    {"subnormal", "qwen3_rmsnorm", "1,4,2,7,12,40,24"},
    {"near_cap", "gemma2_softcap", "1,4,2,9,14,64,40"},
    {"near_cap", "rmsnorm_softcap", "1,4,2,9,14,64,40"},
    {"one_hot", "plain_sdpa", "1,4,2,9,14,64,40"},
    {"one_hot", "qwen3_rmsnorm", "1,4,2,9,14,64,40"},
    {"one_hot", "henry2020_l2", "1,4,2,9,14,64,40"},
    {"tied", "plain_sdpa", "1,4,2,9,14,64,40"},
    {"tied", "gemma2_softcap", "1,4,2,9,14,64,40"},
    {"tied", "olmo2_full_width", "1,4,2,9,14,64,40"},
    {"padded", "henry2020_l2", "3,4,2,5,17,24,20"},
    {"padded", "clause_empty_uniform", "1,4,2,5,17,24,20"},
    {"random_mask", "clause_mask_boolean", "2,4,2,9,35,24,20"},
    {"random_mask", "clause_bias_additive", "2,4,2,9,35,24,20"},
    // Clauses of contract ABI 1.1, under families of their own and under those that they could have disturbed.
    {"sink_equal", "clause_sink_column", "2,4,2,5,9,24,20"},
    {"sink_equal", "clause_sink_post_scale", "2,4,2,9,5,24,20"},
    {"sink_extremes", "clause_sink_column", "2,4,2,5,9,24,20"},
    {"sink_extremes", "clause_sink_post_scale", "1,1,1,5,9,24,20"},
    {"alibi_saturation", "clause_alibi_relative", "1,4,2,3,65,24,20"},
    {"alibi_saturation", "clause_alibi_symmetric", "1,4,2,3,65,24,20"},
    {"alibi_saturation", "clause_alibi_last_key", "1,4,2,9,12,24,20"},
    {"far_positions", "clause_rope_computed", "2,4,2,6,10,24,20"},
    {"offset_positions", "clause_rope_computed", "2,4,2,6,10,24,20"},
    {"temperature_steps", "clause_query_temperature", "2,4,2,7,10,24,20"},
    {"clamped", "clause_clip_before", "1,4,2,9,14,24,20"},
    {"clamped", "clause_clip_after", "2,4,2,9,14,24,20"},
    {"clamped", "clause_clip_without_norm", "1,4,2,9,14,24,20"},
    {"poisoned", "clause_hidden_excluded", "2,4,2,5,17,24,20"},
    {"padded", "clause_hidden_excluded", "3,4,2,5,17,24,20"},
    {"scattered_documents", "clause_mask_documents", "2,4,2,5,9,24,20"},
    {"prefix_ends", "clause_mask_prefix", "4,4,2,7,9,24,20"},
    {"correlated", "clause_heads_tile", "1,6,3,9,15,24,20"},
    {"norm40", "clause_heads_tile", "2,6,3,5,8,24,20"},
    {"one_hot", "clause_base_two", "1,4,2,5,14,24,20"},
    {"one_hot", "clause_scale_per_head", "1,4,2,5,14,24,20"},
    {"one_hot", "clause_sink_column", "1,4,2,5,14,24,20"},
    {"low_scores", "clause_lse_base_two", "1,4,2,5,14,24,20"},
    {"tied", "clause_sink_column", "1,4,2,5,14,24,20"},
    {"long_rows", "clause_mask_prefix", "1,6,2,9,129,24,20"},
    {"eps_edge", "clause_clip_before", "1,4,2,12,18,24,20"},
    // Clauses of contract ABI 1.2: a norm of v, projections, rounding points.
    {"gaussian", "clause_v_norm", "1,4,2,5,8,12,10"},
    {"gaussian", "clause_projection", "1,4,2,5,8,12,10"},
    {"correlated", "clause_projection_bias", "2,4,2,5,8,12,10"},
    {"norm40", "clause_projection", "1,4,2,5,8,12,10"},
    {"tied", "clause_projection_bias", "1,4,2,5,8,12,10"},
    {"absorbed_tail", "clause_projection", "1,4,2,5,8,12,10"},
    {"cancelling", "clause_projection", "1,4,2,5,8,12,10"},
    {"constant_rows", "clause_projection", "1,4,2,5,8,12,10"},
    {"eps_edge", "clause_projection", "1,4,2,7,8,12,10"},
    {"huge", "clause_projection", "1,4,2,5,8,12,10"},
    {"subnormal", "clause_projection", "1,4,2,5,8,12,10"},
    {"one_hot", "clause_projection", "1,4,2,5,8,16,10"},
    {"eps_edge", "clause_v_norm", "1,4,2,7,8,12,10"},
    {"eps_edge", "clause_v_full_width", "1,4,2,7,8,12,10"},
    {"gain_signs", "clause_v_full_width", "1,4,2,7,8,12,10"},
    {"gain_signs", "clause_projection_input_norm", "1,4,2,7,8,12,10"},
    {"clamped", "clause_v_multiplier", "1,4,2,5,8,12,20"},
    {"padded", "clause_v_norm_hidden", "3,4,2,5,9,12,10"},
    {"input_eps_edge", "clause_projection_input_norm", "2,4,2,7,8,12,10"},
    {"input_eps_edge", "clause_projection_two_norms", "2,4,2,7,8,12,10"},
    {"cancelling_bias", "clause_projection_bias", "1,4,2,5,8,12,10"},
    {"temperature_ratio", "clause_query_temperature_ratio", "2,4,2,7,9,12,10"},
    {"offset_positions", "clause_rope_tables_per_head", "2,3,3,7,9,12,10"},
    {"saturated", "clause_round_e4m3fn", "1,4,2,5,8,12,10"},
    {"halfway", "clause_round_projection", "1,4,2,7,11,24,10"},
    {"halfway", "clause_round_rope_product", "1,4,2,7,11,24,10"},
    {"tied", "clause_round_eager", "1,4,2,5,8,16,10"},
    {"near_cap", "clause_round_capped", "1,4,2,5,8,16,10"},
    // NaN and infinities, given and made.
    {"nan_visible", "plain_sdpa", "3,4,2,5,9,24,20"},
    {"nan_visible", "olmo2_full_width", "3,4,2,5,9,24,20"},
    {"nan_visible", "clause_projection", "3,4,2,5,9,24,20"},
    {"inf_visible", "qwen3_rmsnorm", "3,4,2,5,9,24,20"},
    {"nan_hidden", "clause_hidden_excluded_rows", "3,4,2,5,9,24,20"},
    {"nan_hidden", "clause_hidden_propagated", "3,4,2,5,9,24,20"},
    {"signed_zero", "plain_sdpa", "1,4,2,5,9,24,20"},
    {"overflow_statistic", "qwen3_rmsnorm", "1,4,2,5,9,24,20"},
    {"overflow_score", "plain_sdpa", "1,4,2,5,9,24,20"},
    {"overflow_storage", "qwen3_rmsnorm", "1,4,2,5,9,24,20"},
    // Sizes, channels and weights at their ends.
    {"logit_50k", "plain_sdpa", "1,4,2,5,9,24,20"},
    {"logit_50k", "qwen3_rmsnorm", "1,4,2,5,9,128,20"},
    {"equal_gaps", "plain_sdpa", "1,4,2,5,9,24,20"},
    {"equal_gaps", "qwen3_rmsnorm", "1,4,2,5,12,32,20"},
    {"beyond_cap", "gemma2_softcap", "1,4,2,5,9,24,20"},
    {"beyond_cap", "rmsnorm_softcap", "1,4,2,3,5,32,20"},
    {"below_sentinel", "clause_mask_boolean", "2,4,2,5,19,24,20"},
    {"below_sentinel", "clause_causal_bottom_right", "1,4,2,5,9,64,20"},
    {"outlier_channels", "plain_sdpa", "1,4,2,5,9,24,20"},
    {"outlier_channels", "flax_qk_layernorm", "1,4,2,5,9,64,20"},
    {"shift", "clause_layer_norm_two_pass", "1,4,2,5,9,24,20"},
    {"shift", "qwen3_rmsnorm", "2,4,2,6,9,24,20"},
    {"huge_gains", "qwen3_rmsnorm", "1,4,2,5,9,24,20"},
    {"huge_gains", "clause_norm_bias", "1,4,2,5,9,24,20"},
    {"sum_edge", "qwen3_rmsnorm", "1,4,2,5,9,24,20"},
    {"sum_edge", "henry2020_l2", "1,4,2,5,9,64,20"},
    {"small_rows", "qwen3_rmsnorm", "1,4,2,8,9,24,20"},
    {"small_rows", "clause_eps_zero", "1,4,2,8,9,24,20"},
    {"uniform_rows", "plain_sdpa", "1,4,2,5,9,24,20"},
    {"uniform_rows", "olmo2_full_width", "1,4,2,3,5,12,10"},
    {"truncation", "plain_sdpa", "1,4,2,5,9,24,20"},
    {"truncation", "clause_causal_bottom_right", "1,4,2,9,14,24,20"},
    {"eps_ladder", "clause_eps_inside_root", "1,1,1,34,1,128,8"},
    {"long_decode", "plain_sdpa", "1,2,1,1,32768,32,8"},
    {"empty_entries", "clause_kv_lengths", "5,4,2,3,9,24,20"},
    {"empty_entries", "henry2020_l2", "4,4,2,3,9,24,20"},
};

void PrintTo(const Sample& sample, std::ostream* out) {
  *out << sample.family << " of " << sample.contract << " " << sample.shape;
}

std::string name_of(const testing::TestParamInfo<Sample>& info) {
  return std::string(info.param.family) + "_" + info.param.contract + "_" + std::to_string(info.index);
}

class EveryFamily : public testing::TestWithParam<Sample> {};

TEST_P(EveryFamily, KeepsItsPromiseInEveryFormatThatItFits) {
  const InputFamily& family = input_family(GetParam().family);
  int fitting = 0;
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16}) {
    const PlannedCase planned = sample_plan(GetParam().contract, GetParam().family, format, GetParam().shape);
    if (!family_fault(planned.family, planned.contract, planned.shape, format).empty()) continue;
    if (planned.family == "long_decode" && format != Format::bfloat16) continue;  // 32,768 keys take seconds
    ++fitting;
    const Case c = make_case(planned);
    EXPECT_EQ(case_fault(c), "");
    GoldenCase golden;
    golden.input = c;
    std::vector<DroppedProfile> dropped;
    golden = make_golden(planned, dropped);
    EXPECT_EQ(family.broken(golden), "") << parameters(format).name;
  }
  EXPECT_GE(fitting, 1);
}

// The mutant: inputs of another kind must break the promise, or the promise says nothing.
TEST_P(EveryFamily, OtherInputsBreakThePromise) {
  const std::string other = std::string(GetParam().family) == "gaussian" ? "absorbed_tail" : "gaussian";
  std::vector<DroppedProfile> dropped;
  const GoldenCase golden =
      make_golden(sample_plan(GetParam().contract, other, Format::binary32, GetParam().shape), dropped);
  EXPECT_NE(input_family(GetParam().family).broken(golden), "");
}

INSTANTIATE_TEST_SUITE_P(InputFamily, EveryFamily, testing::ValuesIn(samples), name_of);

TEST(InputFamily, EveryOneIsSampledDescribedAndNamedOnce) {
  std::set<std::string_view> sampled, names;
  for (const Sample& sample : samples) sampled.insert(sample.family);
  for (const InputFamily& family : input_families()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_EQ(sampled.count(family.name), 1U) << family.name << " has no sample in this test";
    EXPECT_FALSE(family.reason.empty() || family.promise.empty() || family.clause.empty()) << family.name;
  }
  EXPECT_THROW(input_family("no_such_family"), InputError);
}

TEST(InputFamily, UnfitContractsAreRefusedWithAReason) {
  const auto fault = [](const char* family, const char* contract, const char* shape, Format format) {
    const PlannedCase p = sample_plan(contract, family, format, shape);
    return family_fault(family, p.contract, p.shape, format);
  };
  const char* shape = "1,4,2,9,14,64,40";
  EXPECT_EQ(fault("eps_edge", "plain_sdpa", shape, Format::binary32), "needs a norm");
  EXPECT_EQ(fault("eps_edge", "clause_eps_zero", shape, Format::binary32), "needs an epsilon above 0");
  EXPECT_NE(fault("eps_edge", "henry2020_l2", shape, Format::binary16), "");
  EXPECT_EQ(fault("near_cap", "plain_sdpa", shape, Format::binary32), "needs a soft-cap");
  EXPECT_NE(fault("one_hot", "gemma2_softcap", shape, Format::binary32), "");
  EXPECT_NE(fault("one_hot", "llama4_rms_unweighted", shape, Format::binary32), "");
  EXPECT_NE(fault("huge", "plain_sdpa", shape, Format::binary32), "");
  EXPECT_NE(fault("long_rows", "plain_sdpa", shape, Format::binary32), "");
  EXPECT_NE(fault("padded", "plain_sdpa", shape, Format::binary32), "");
  EXPECT_NE(fault("random_mask", "plain_sdpa", shape, Format::binary32), "");
  EXPECT_NE(fault("offset_positions", "plain_sdpa", shape, Format::binary32), "");
  EXPECT_NE(fault("gain_signs", "henry2020_l2", shape, Format::binary32), "");
  EXPECT_EQ(fault("gaussian", "plain_sdpa", shape, Format::binary32), "");
  EXPECT_EQ(fault("sink_equal", "plain_sdpa", shape, Format::binary32), "needs a sink");
  EXPECT_EQ(fault("sink_extremes", "qwen3_rmsnorm", shape, Format::binary32), "needs a sink");
  EXPECT_EQ(fault("alibi_saturation", "plain_sdpa", shape, Format::binary32), "needs a linear bias");
  EXPECT_EQ(fault("alibi_saturation", "clause_alibi_relative", "1,4,2,3,5,8,6", Format::binary32),
            "needs at least 8 keys");
  EXPECT_EQ(fault("far_positions", "plain_sdpa", shape, Format::binary32), "needs a rotary embedding");
  EXPECT_NE(fault("far_positions", "qwen3_rmsnorm", shape, Format::binary32).find("computed"), std::string::npos);
  EXPECT_EQ(fault("temperature_steps", "plain_sdpa", shape, Format::binary32), "needs a query temperature");
  EXPECT_EQ(fault("clamped", "plain_sdpa", shape, Format::binary32), "needs a clamp");
  EXPECT_EQ(fault("poisoned", "clause_kv_lengths", shape, Format::binary32), "needs hidden values that are excluded");
  EXPECT_EQ(fault("scattered_documents", "plain_sdpa", shape, Format::binary32), "needs documents");
  EXPECT_EQ(fault("prefix_ends", "qwen3_rmsnorm", shape, Format::binary32), "needs a prefix");
  EXPECT_NE(fault("one_hot", "clause_clip_after", shape, Format::binary32), "") << "a clamp bounds the scores";
  EXPECT_EQ(fault("correlated", "clause_projection_input_norm", shape, Format::binary32),
            "needs q and k of its own choice, but they come from rows that a norm has changed");
  EXPECT_EQ(fault("input_eps_edge", "clause_projection", shape, Format::binary32), "needs a norm before a projection");
  EXPECT_EQ(fault("cancelling_bias", "clause_projection", shape, Format::binary32), "needs a projection with a bias");
  EXPECT_EQ(fault("temperature_steps", "clause_query_temperature_ratio", shape, Format::binary32),
            "needs a query temperature that steps");
  EXPECT_EQ(fault("temperature_ratio", "clause_query_temperature", shape, Format::binary32),
            "needs a query temperature of the ratio");
  EXPECT_EQ(fault("saturated", "clause_round_e5m2", shape, Format::binary32), "needs points that saturate");
  EXPECT_EQ(fault("halfway", "clause_round_norm", shape, Format::binary32),
            "needs points of q and k at a projection, or at the products of a rotation without a norm");
  EXPECT_NE(fault("halfway", "clause_round_projection", shape, Format::bfloat16), "") << "nothing lies between";
  EXPECT_EQ(fault("one_hot", "clause_round_scores", shape, Format::binary32), "");
  EXPECT_EQ(fault("logit_50k", "gemma2_softcap", shape, Format::binary32), "needs scores without a soft-cap");
  EXPECT_NE(fault("logit_50k", "plain_sdpa", "1,4,2,9,14,256,40", Format::binary16), "");
  EXPECT_EQ(fault("equal_gaps", "plain_sdpa", "1,4,2,9,14,66,40", Format::binary32),
            "needs a head size that is a multiple of 4");
  EXPECT_EQ(fault("beyond_cap", "plain_sdpa", shape, Format::binary32), "needs a soft-cap");
  EXPECT_EQ(fault("below_sentinel", "vit22b_rms_uncentered", shape, Format::binary32), "needs keys that can be hidden");
  EXPECT_EQ(fault("huge_gains", "gemma3_rmsnorm", shape, Format::binary32),
            "needs gains of q and k that multiply as they stand");
  EXPECT_EQ(fault("sum_edge", "plain_sdpa", shape, Format::binary32), "needs a norm");
  EXPECT_EQ(fault("sum_edge", "olmo2_full_width", shape, Format::binary32), "needs a norm of each head");
  EXPECT_EQ(fault("small_rows", "plain_sdpa", shape, Format::binary32), "needs a norm");
  EXPECT_NE(fault("truncation", "clause_sink_column", shape, Format::binary32), "");
  EXPECT_EQ(fault("long_decode", "plain_sdpa", shape, Format::binary32), "needs one query and at least 32,768 keys");
  EXPECT_EQ(fault("empty_entries", "plain_sdpa", shape, Format::binary32), "needs key lengths");
  EXPECT_EQ(fault("empty_entries", "clause_kv_lengths", shape, Format::binary32), "needs a batch of at least 4");
  const PlannedCase unfit = sample_plan("plain_sdpa", "padded", Format::binary32, shape);
  EXPECT_THROW(make_case(unfit), InputError);
}

// q.k / sqrt(D) of independent gaussian rows has variance 1; pairs that share no row, so that they are independent.
TEST(InputFamily, GaussianScaledScoresHaveVarianceOne) {
  const Case c = make_case(sample_plan("plain_sdpa", "gaussian", Format::binary32, "1,4,4,500,500,64,1"));
  const std::vector<double> q = c.inputs.at(Input::q).values(), k = c.inputs.at(Input::k).values();
  constexpr std::size_t lanes = 64, rows = 2000;
  double squares = 0, fourths = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    double s = 0;
    for (std::size_t d = 0; d < lanes; ++d) s += q[row * lanes + d] * k[row * lanes + d] / 8;
    squares += s * s / rows;
    fourths += s * s * s * s / rows;
  }
  EXPECT_NEAR(squares, 1, 5 * std::sqrt((fourths - squares * squares) / rows));
}

// Bits that no number has: signalling and quiet NaNs, payloads, both signs, both infinities, and finite ends of the
// range.
TEST(InputFamily, PoisonIsOfEveryKind) {
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16}) {
    const Case c = make_case(sample_plan("clause_hidden_excluded", "poisoned", format, "1,4,2,5,17,24,20"));
    const FormatParameters& p = parameters(format);
    const std::uint64_t sign = std::uint64_t{1} << static_cast<unsigned>(p.bits - 1);
    const std::uint64_t quiet = std::uint64_t{1} << static_cast<unsigned>(p.precision - 2);
    for (const Input input : {Input::k, Input::v}) {
      std::set<std::string> kinds;
      const Tensor& tensor = c.inputs.at(input);
      for (std::size_t i = 0; i < tensor.count(); ++i) {
        const std::uint64_t pattern = tensor.pattern(i);
        const std::string side = (pattern & sign) != 0 ? "-" : "+";
        if (std::isinf(tensor.value(i))) kinds.insert(side + "inf");
        if (!std::isnan(tensor.value(i))) continue;
        kinds.insert(side + ((pattern & quiet) != 0 ? "quiet" : "signalling"));
        if ((pattern & (quiet - 1)) != 0) kinds.insert("payload");
      }
      EXPECT_EQ(kinds,
                (std::set<std::string>{"+inf", "-inf", "+quiet", "-quiet", "+signalling", "-signalling", "payload"}))
          << p.name << " " << input_name(input);
    }
  }
}

// Lanes that are rotated together, and the two sides, must not share a gain, or clauses coincide.
TEST(InputFamily, GainsDifferInEveryPairAndSide) {
  for (const Format format : {Format::binary32, Format::bfloat16}) {
    const Case c = make_case(sample_plan("qwen3_rmsnorm", "gaussian", format, "1,4,2,3,4,128,16"));
    const std::vector<double> q = c.inputs.at(Input::q_gain).values(), k = c.inputs.at(Input::k_gain).values();
    for (std::size_t i = 0; i < 128; ++i) {
      EXPECT_GE(std::abs(q[i] - q[i ^ 1U]), 0.24);
      EXPECT_GE(std::abs(q[i] - q[(i + 64) % 128]), 0.24);
    }
    EXPECT_NE(q, k);
  }
  const Case partial =
      make_case(sample_plan("clause_rope_partial_first", "gaussian", Format::binary32, "1,4,2,3,4,24,16"));
  const std::vector<double> gain = partial.inputs.at(Input::q_gain).values();
  for (std::size_t i = 0; i < 8; ++i) EXPECT_GE(std::abs(gain[i] - gain[i + 8]), 0.24);
}

TEST(InputFamily, EqualArgumentsGiveEqualBitsAndSeedsMatter) {
  const PlannedCase planned = sample_plan("qwen3_rmsnorm", "gaussian", Format::binary32, "1,4,2,3,4,8,6");
  const auto bytes = [&](std::uint64_t seed) {
    PlannedCase other = planned;
    other.seed = seed;
    return make_case(other).inputs.at(Input::q).bytes;
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
}

}  // namespace
}  // namespace qkcts
