// SPDX-License-Identifier: Apache-2.0
// Calls beside the plain ones: other layouts, fewer stages, other batches. What is claimed is held against the adapter;
// what is not is judged like every other result.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/batch_arrangement.hpp"
#include "harness/case_run.hpp"
#include "harness/handmade_case.hpp"
#include "harness/test_adapters/test_adapters.hpp"

namespace qkcts {
namespace {

constexpr WorkerLimits limits = {std::chrono::milliseconds(30000), std::size_t{1} << 29};

CaseResult run(const std::string& fault, const std::string& library, const GoldenCase& golden) {
  const auto runner = worker_runner(resolve_adapter(test_adapter(library) + "?fault=" + fault), limits);
  const AdapterDescription description = description_from_json(runner->open(true).description, library);
  RunOptions options;
  options.variants = Variants::all;
  return run_case(*runner, description, golden, options);
}

const StageResult& output_of(const CaseResult& result) {
  return result.stages.back();
}

std::string detail_of(const CaseResult& result) {
  return output_of(result).detail + "|" + result.detail;
}

TEST(Variants, AnHonestAdapterPassesAllOfThem) {
  const CaseResult result = run("none", "lying_claims", plain_golden_batch());
  EXPECT_EQ(result.verdict, Verdict::pass) << detail_of(result);
  const std::vector<VariantFinding>& variants = output_of(result).variants;
  ASSERT_EQ(variants.size(), 8u);  // each once
  for (const VariantFinding& finding : variants) EXPECT_TRUE(finding.same_bits) << variant_name(finding.variant);
  EXPECT_FALSE(output_of(result).spread_ulp.has_value());
  EXPECT_EQ(result.stages.front().variants.size(), 7u);  // scores were not asked for beside the output
}

TEST(Variants, OnlyClaimedLayoutsAreTried) {
  const CaseResult result = run("dense_inputs", "lying", plain_golden_batch());
  EXPECT_EQ(result.verdict, Verdict::pass) << detail_of(result);
  for (const VariantFinding& finding : output_of(result).variants)
    EXPECT_EQ(layout_of(finding.variant), TensorLayout::dense);
}

TEST(Variants, WhoeverIgnoresStridesIsFound) {
  const CaseResult inputs = run("dense_inputs", "lying_claims", plain_golden_batch());
  EXPECT_EQ(inputs.verdict, Verdict::fail);
  EXPECT_NE(detail_of(inputs).find("in the call `layout "), std::string::npos) << detail_of(inputs);
  const CaseResult outputs = run("dense_outputs", "lying_claims", plain_golden_batch());
  EXPECT_EQ(outputs.verdict, Verdict::error_overrun);
  EXPECT_NE(outputs.detail.find("output output was written between its elements"), std::string::npos) << outputs.detail;
  EXPECT_NE(outputs.detail.find("in the call `layout padded`"), std::string::npos) << outputs.detail;
}

// Without the claim other bits are judged, and how far they lie apart is reported; with it they are a verdict.
struct ClaimCase {
  const char* fault;
  Verdict claimed;
  const char* call;
};

class ClaimedBits : public testing::TestWithParam<ClaimCase> {};

TEST_P(ClaimedBits, FailOnlyAgainstTheClaim) {
  const CaseResult claimed = run(GetParam().fault, "lying_claims", plain_golden_batch());
  EXPECT_EQ(claimed.verdict, GetParam().claimed) << detail_of(claimed);
  EXPECT_NE(detail_of(claimed).find(GetParam().call), std::string::npos) << detail_of(claimed);
  const CaseResult unclaimed = run(GetParam().fault, "lying", plain_golden_batch());
  EXPECT_EQ(unclaimed.verdict, Verdict::pass) << detail_of(unclaimed);
  ASSERT_TRUE(output_of(unclaimed).spread_ulp.has_value());
  EXPECT_GT(*output_of(unclaimed).spread_ulp, 0);
  EXPECT_LE(*output_of(unclaimed).spread_ulp, 1);
  const auto& variants = output_of(unclaimed).variants;
  EXPECT_TRUE(std::any_of(variants.begin(), variants.end(), [](const VariantFinding& finding) {
    return !finding.same_bits && finding.max_ratio && *finding.max_ratio < 1;
  }));
}

INSTANTIATE_TEST_SUITE_P(All, ClaimedBits,
                         testing::Values(ClaimCase{"taps", Verdict::not_repeatable,
                                                   "other bits in the call `output alone`"},
                                         ClaimCase{"large_batch", Verdict::batch_variant, "in the call `batch of 33`"},
                                         ClaimCase{"alone", Verdict::batch_variant, "in the call `entries alone`"},
                                         ClaimCase{"first_place", Verdict::batch_variant, "in the call `entries "}),
                         [](const auto& one) { return std::string(one.param.fault); });

TEST(Variants, WrongValuesFailWhateverIsClaimed) {
  for (const char* fault : {"taps_wrong", "large_batch_wrong"}) {
    const CaseResult result = run(fault, "lying", plain_golden_batch());
    EXPECT_EQ(result.verdict, Verdict::fail) << fault;
    EXPECT_NE(detail_of(result).find("so in the call `"), std::string::npos) << detail_of(result);
  }
}

TEST(Variants, ADeathSaysInWhichCall) {
  const CaseResult result = run("large_batch_crash", "lying", plain_golden_case());
  EXPECT_EQ(result.verdict, Verdict::error_crash);
  EXPECT_NE(result.detail.find("signal 6"), std::string::npos) << result.detail;
  EXPECT_NE(result.detail.find(", in the call `batch of 33`"), std::string::npos) << result.detail;
}

TEST(Variants, LimitsOfTheDescriptionHold) {
  AdapterDescription description;
  description.limits["batch"].max = 32;
  const Case c = plain_golden_batch().input;
  const auto planned = [&](Variant variant) {
    const std::vector<Call> calls = plan_calls(description, c, bit(QKCTS_STAGE_OUTPUT), 1, Variants::all);
    return std::count_if(calls.begin(), calls.end(), [&](const Call& call) { return call.variant == variant; });
  };
  EXPECT_EQ(planned(Variant::batch_of_33), 0);
  EXPECT_EQ(planned(Variant::entries_alone), 2);
  EXPECT_EQ(planned(Variant::output_alone), 0);  // nothing else was asked for anyway
  description.limits["batch"] = {2, std::nullopt, std::nullopt};
  EXPECT_EQ(planned(Variant::entries_alone), 0);
  EXPECT_EQ(planned(Variant::batch_of_33), 1);
}

TEST(Variants, EveryNameIsReadBack) {
  for (int i = 0; i <= static_cast<int>(last_variant); ++i) {
    const auto variant = static_cast<Variant>(i);
    EXPECT_EQ(variant_named(variant_name(variant)), variant);
  }
  EXPECT_EQ(variant_named("another"), std::nullopt);
}

TEST(BatchArrangement, EntriesComeBackToTheirPlaces) {
  ExecutionRequest request;
  request.shape = {3, 1, 1, 1, 1, 1, 1};
  Tensor q = Tensor::zeros(ElementType::binary32, {3, 1, 1, 1}),
         mask = Tensor::zeros(ElementType::boolean, {1, 1, 1, 1});
  for (std::size_t i = 0; i < 3; ++i) q.set_pattern(i, i + 10);
  request.inputs.set(Input::q, q);
  request.inputs.set(Input::mask, mask);
  const std::vector<std::uint32_t> entries = {2, 0, 1, 2, 0, 1};
  const ExecutionRequest arranged = with_entries(request, entries);
  EXPECT_EQ(arranged.shape.batch, 6);
  EXPECT_EQ(arranged.inputs.at(Input::mask).shape, mask.shape);  // one that serves all
  for (std::size_t place = 0; place < entries.size(); ++place)
    EXPECT_EQ(arranged.inputs.at(Input::q).pattern(place), entries[place] + 10);
  StageBytes made, back;
  made[QKCTS_STAGE_OUTPUT] = arranged.inputs.at(Input::q).bytes;
  for (const std::size_t round : {0u, 1u}) {
    put_back(back, made, entries, round, 3);
    EXPECT_EQ(back[QKCTS_STAGE_OUTPUT], q.bytes);
  }
}

}  // namespace
}  // namespace qkcts
