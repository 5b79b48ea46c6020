// SPDX-License-Identifier: Apache-2.0
// Wrong kernels, and what a diagnosis says of them: from every stage, and from the outputs alone as of a fused kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <ostream>

#include "harness/diagnose.hpp"
#include "harness/diagnose_observation.hpp"
#include "harness/diagnose_rerun.hpp"
#include "harness/diagnose_search.hpp"
#include "harness/diagnose_stage.hpp"
#include "vectors/generate.hpp"
#include "vectors/row_selection.hpp"

namespace qkcts {
namespace {

constexpr StageSet outputs_alone = bit(QKCTS_STAGE_OUTPUT) | bit(QKCTS_STAGE_LSE);

struct Subject {
  const char* mutant;
  const char* contract;
  const char* family;
  const char* clause;  // that has to be among what the likeliest match changes
  const char* shape = "1,6,3,4,7,20,12";
};

void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.mutant;
}

std::string test_name(const Subject& subject) {
  std::string name = subject.mutant;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

GoldenCase small_case(const Subject& subject, Format format) {
  GoldenCase golden;
  PlannedCase planned;
  planned.contract = shipped_contract(subject.contract);
  planned.family = subject.family;
  planned.format = format;
  planned.shape = shape_from_text(subject.shape);
  planned.slug = case_slug(planned.contract, planned.family, format, planned.shape, 0);
  planned.seed = case_seed(1, planned.slug);
  golden.input = make_case(planned, golden.first_position);
  golden.family = planned.family;
  golden.profiles = {profiles_for(format).front().name};
  std::vector<DroppedProfile> dropped;
  seal(golden, select_rows(planned.contract.terms, planned.shape, 0, 1), dropped);
  return golden;
}

struct Outcome {
  GoldenCase golden;
  CaseResult result;
  KeptOutputs kept;
};

class Adapter {
 public:
  explicit Adapter(const std::string& spec) : runner_(in_process_runner(resolve_adapter(spec))) {
    description_ = description_from_json(runner_->open(true).description, spec);
  }
  Outcome run(GoldenCase golden, StageSet stages) {
    Outcome outcome{std::move(golden), {}, {}};
    RunOptions options;
    options.stages = stages;
    outcome.result = run_case(*runner_, description_, outcome.golden, options, &outcome.kept);
    return outcome;
  }
  Rerunner rerunner(StageSet stages) const {
    RunOptions options;
    options.stages = stages;
    return {*runner_, description_, options};
  }

 private:
  std::unique_ptr<AdapterRunner> runner_;
  AdapterDescription description_;
};

CaseDiagnosis diagnosis_of_mutant(const Subject& subject, Format format, StageSet stages) {
  Adapter adapter(std::string("mutants?mutant=") + subject.mutant);
  const Outcome outcome = adapter.run(small_case(subject, format), stages);
  EXPECT_EQ(verdict_name(outcome.result.verdict), "fail") << subject.mutant;
  if (outcome.result.verdict != Verdict::fail) return {};
  return diagnose_outputs(outcome.golden, outcome.result, outcome.kept.outputs, 2);
}

bool changes(const Suspect& suspect, std::string_view clause) {
  return std::any_of(suspect.changes.begin(), suspect.changes.end(),
                     [&](const ClauseDifference& change) { return change.clause == clause; });
}

class Named : public testing::TestWithParam<Subject> {};

void expect_named(const Subject& subject, const CaseDiagnosis& d) {
  ASSERT_FALSE(d.matches.empty()) << diagnosis_text(d);
  EXPECT_TRUE(changes(d.matches.front(), subject.clause)) << diagnosis_text(d);
  for (const Suspect& match : d.matches) {
    EXPECT_EQ(match.explained, match.judged) << match.name;
    EXPECT_LE(match.worst, 1) << match.name;
    EXPECT_GT(match.judged, 0U) << match.name;
  }
  EXPECT_EQ(d.finding, d.matches.size() == 1 ? Finding::matched : Finding::ambiguous);
  EXPECT_FALSE(d.cut);
}

TEST_P(Named, FromOutputsAlone) {
  expect_named(GetParam(), diagnosis_of_mutant(GetParam(), Format::binary32, outputs_alone));
}

TEST_P(Named, FromEveryStage) {
  expect_named(GetParam(), diagnosis_of_mutant(GetParam(), Format::binary32, ~StageSet{0}));
}

constexpr Subject subjects[] = {
    {"eps_outside_sqrt", "clause_eps_inside_root", "eps_edge", "QK-EPS-02"},
    {"eps_inside_sqrt", "clause_eps_outside_root", "eps_edge", "QK-EPS-02"},
    {"eps_clamp_mean", "clause_eps_inside_root", "eps_edge", "QK-EPS-02"},
    {"eps_hardcoded_1e-5", "qwen3_rmsnorm", "eps_edge", "QK-EPS-01"},
    {"eps_sum_for_mean", "clause_eps_inside_root", "eps_edge", "QK-EPS-01"},
    {"layernorm_for_rms", "qwen3_rmsnorm", "gaussian", "QK-NORM-02"},
    {"l2_for_rms", "qwen3_rmsnorm", "gaussian", "QK-NORM-03"},
    {"full_width_for_per_head", "qwen3_rmsnorm", "gaussian", "QK-NORM-04"},
    {"norm_skipped", "qwen3_rmsnorm", "gaussian", "QK-NORM-01"},
    {"gain_missing", "qwen3_rmsnorm", "gaussian", "QK-GAIN-01"},
    {"gain_offset_missing", "clause_gain_one_plus_w", "gaussian", "QK-GAIN-01"},
    {"gain_shared_across_heads", "clause_gain_head_head_dim", "gaussian", "QK-GAIN-02"},
    {"rope_before_norm", "qwen3_rmsnorm", "gaussian", "QK-ROPE-01"},
    {"rope_interleaved_for_half", "clause_rope_half_split", "gaussian", "QK-ROPE-02"},
    {"rope_half_for_interleaved", "clause_rope_interleaved", "gaussian", "QK-ROPE-02"},
    {"rope_skipped", "clause_rope_half_split", "gaussian", "QK-ROPE-01"},
    {"scale_missing", "plain_sdpa", "gaussian", "QK-SCALE-01"},
    {"scale_from_wrong_dim", "plain_sdpa", "gaussian", "QK-SCALE-01"},
    {"scale_d_model", "plain_sdpa", "gaussian", "QK-SCALE-01"},
    {"softcap_missing", "rmsnorm_softcap", "gaussian", "QK-CAP-01"},
    {"softcap_before_scale", "rmsnorm_softcap", "gaussian", "QK-CAP-01"},
    {"causal_top_left", "clause_causal_bottom_right", "gaussian", "QK-MASK-02"},
    {"causal_ignored", "clause_causal_bottom_right", "gaussian", "QK-MASK-01"},
    {"causal_off_by_one", "clause_causal_bottom_right", "gaussian", "QK-MASK-02"},
    {"window_plus_one", "clause_window_left", "gaussian", "QK-MASK-05", "1,2,2,12,14,20,12"},
    {"window_minus_one", "clause_window_left", "gaussian", "QK-MASK-05", "1,2,2,12,14,20,12"},
    {"mask_inverted", "clause_mask_boolean", "random_mask", "QK-MASK-04"},
    {"kv_len_ignored", "clause_kv_lengths", "padded", "QK-MASK-03"},
    {"gqa_tile", "plain_sdpa", "gaussian", "QK-HEADS-02"},
    {"sink_missing", "clause_sink_column", "gaussian", "QK-SINK-01"},
    {"sink_of_first_head", "clause_sink_column", "gaussian", "QK-SINK-01"},
    {"temperature_ignored", "plain_sdpa_temperature", "gaussian", "QK-TEMP-01"},
    {"softmax_base2", "plain_sdpa", "gaussian", "QK-BASE-01"},
};

INSTANTIATE_TEST_SUITE_P(Mutants, Named, testing::ValuesIn(subjects),
                         [](const auto& parameter) { return test_name(parameter.param); });

class Unnamed : public testing::TestWithParam<Subject> {};

// Arithmetic that is too coarse is no contract, and a contract is not named for it.
TEST_P(Unnamed, ARoundingFaultIsNoContract) {
  for (const StageSet stages : {outputs_alone, ~StageSet{0}}) {
    const CaseDiagnosis d = diagnosis_of_mutant(GetParam(), Format::binary32, stages);
    EXPECT_EQ(d.finding, Finding::unmatched) << diagnosis_text(d);
    EXPECT_TRUE(d.matches.empty());
    EXPECT_NE(diagnosis_text(d).find("NO MATCH"), std::string::npos);
    for (const Suspect& suspect : d.nearest) EXPECT_LT(suspect.explained, suspect.judged) << suspect.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Mutants, Unnamed,
                         testing::Values(Subject{"softmax_low_precision", "plain_sdpa", "gaussian", ""},
                                         Subject{"dot_fp16", "plain_sdpa", "gaussian", ""},
                                         Subject{"pv_fp16", "plain_sdpa", "gaussian", ""},
                                         Subject{"ss_fp16", "qwen3_rmsnorm", "gaussian", "", "1,2,1,3,5,12,8"}),
                         [](const auto& parameter) { return test_name(parameter.param); });

TEST(Diagnose, ARightAdapterIsNotAccused) {
  for (const char* contract : {"qwen3_rmsnorm", "rmsnorm_softcap", "clause_sink_column"}) {
    Adapter adapter("scalar");
    const Subject subject{"none", contract, "gaussian", ""};
    const Outcome outcome = adapter.run(small_case(subject, Format::binary32), ~StageSet{0});
    ASSERT_EQ(outcome.result.verdict, Verdict::pass);
    const CaseDiagnosis d = diagnose_outputs(outcome.golden, outcome.result, outcome.kept.outputs, 1);
    EXPECT_EQ(d.finding, Finding::passes);
    EXPECT_TRUE(d.matches.empty());
    EXPECT_EQ(d.failing, 0U);
  }
}

// Two clauses at once: no single contract explains the outputs.
TEST(Diagnose, APairIsNamedWhereNoSingleIs) {
  const Subject asked{"scale_missing", "rmsnorm_softcap", "gaussian", ""};
  GoldenCase golden = small_case(asked, Format::binary32);
  // What is asked for differs from what the mutant was given by a further clause: the kernel never hears of the cap.
  Adapter adapter("mutants?mutant=scale_missing");
  GoldenCase told = golden;
  told.input.contract.terms.score.softcap = 0;
  std::vector<DroppedProfile> dropped;
  seal(told, select_rows(told.input.contract.terms, told.input.shape, 0, 1), dropped);
  Outcome outcome = adapter.run(std::move(told), outputs_alone);
  ASSERT_TRUE(outcome.kept.filled);
  outcome.result.profile = golden.profiles.front();
  const CaseDiagnosis d = diagnose_outputs(golden, outcome.result, outcome.kept.outputs, 2);
  ASSERT_FALSE(d.matches.empty()) << diagnosis_text(d);
  EXPECT_TRUE(changes(d.matches.front(), "QK-CAP-01")) << diagnosis_text(d);
  EXPECT_TRUE(changes(d.matches.front(), "QK-SCALE-01")) << diagnosis_text(d);
}

// 16 lanes: what is four times too large may be a scale of 1 for 1/4, or a factor of 2 on q and on k.
TEST(Diagnose, WhatACaseCannotTellApartIsSaid) {
  const Subject subject{"scale_missing", "plain_sdpa", "gaussian", "", "1,2,1,3,4,16,6"};
  const CaseDiagnosis d = diagnosis_of_mutant(subject, Format::binary32, outputs_alone);
  ASSERT_GT(d.matches.size(), 1U) << diagnosis_text(d);
  EXPECT_EQ(d.finding, Finding::ambiguous);
  EXPECT_NE(diagnosis_text(d).find("SEVERAL MATCH"), std::string::npos) << diagnosis_text(d);
}

// Rows of zeros have no value without an epsilon. Stage by stage the other rows tell; at the end of a fused kernel
// every number is gone, and what agrees with that is no match.
TEST(Diagnose, NumbersThatAreGoneProveLittle) {
  const Subject subject{"eps_dropped", "clause_eps_inside_root", "eps_edge", "QK-EPS-01"};
  const CaseDiagnosis all = diagnosis_of_mutant(subject, Format::binary32, ~StageSet{0});
  expect_named(subject, all);
  ASSERT_FALSE(all.matches.empty());
  EXPECT_GT(all.matches.front().valueless, 0U);
  EXPECT_LT(all.matches.front().valueless, all.matches.front().judged);

  const CaseDiagnosis fused = diagnosis_of_mutant(subject, Format::binary32, outputs_alone);
  EXPECT_EQ(fused.finding, Finding::unmatched);
  ASSERT_FALSE(fused.nearest.empty());
  EXPECT_TRUE(changes(fused.nearest.front(), "QK-EPS-01"));
  EXPECT_EQ(fused.nearest.front().valueless, fused.nearest.front().judged);
  EXPECT_NE(diagnosis_text(fused).find("no number was got"), std::string::npos);
}

// Other contracts have nearly the same values here and larger budgets: that something fits them says nothing.
TEST(Diagnose, ALargerBudgetIsNoMatch) {
  const Subject subject{"none", "clause_layer_norm_two_pass", "gaussian", "", "1,2,1,3,4,16,6"};
  Adapter adapter("scalar");
  Outcome outcome = adapter.run(small_case(subject, Format::binary32), bit(QKCTS_STAGE_Q_NORM));
  // One element between the two budgets, where they differ most.
  GoldenCase wider = outcome.golden;
  wider.input.contract.terms.q_norm.variance = QKCTS_VARIANCE_ONE_PASS_CLIPPED;
  std::vector<DroppedProfile> dropped;
  seal(wider, select_rows(wider.input.contract.terms, wider.input.shape, 0, 1), dropped);
  const GoldenStage& stage = outcome.golden.stages[QKCTS_STAGE_Q_NORM];
  const std::vector<float>& narrow_deltas = stage.budgets[0].delta;
  const std::vector<float>& wide_deltas = wider.stages[QKCTS_STAGE_Q_NORM].budgets.at(0).delta;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < narrow_deltas.size(); ++i)
    if (wide_deltas[i] - narrow_deltas[i] > wide_deltas[chosen] - narrow_deltas[chosen]) chosen = i;
  const double between = (static_cast<double>(narrow_deltas[chosen]) + static_cast<double>(wide_deltas[chosen])) / 2;
  const auto wrong = static_cast<float>(stage.values.hi[chosen] + between);
  std::memcpy(outcome.kept.outputs[QKCTS_STAGE_Q_NORM].data() + chosen * sizeof wrong, &wrong, sizeof wrong);
  const CaseDiagnosis d = diagnose_outputs(outcome.golden, outcome.result, outcome.kept.outputs, 2);
  EXPECT_EQ(d.failing, 1U);
  EXPECT_EQ(d.finding, Finding::unmatched) << diagnosis_text(d);
  EXPECT_NE(d.detail.find("larger budget"), std::string::npos) << diagnosis_text(d);
}

TEST(Diagnose, ABfloat16KernelIsNamedToo) {
  for (const Subject& subject : {Subject{"rope_before_norm", "qwen3_rmsnorm", "gaussian", "QK-ROPE-01"},
                                 Subject{"scale_missing", "plain_sdpa", "gaussian", "QK-SCALE-01"}})
    expect_named(subject, diagnosis_of_mutant(subject, Format::bfloat16, outputs_alone));
}

// What the clock leaves out is left out, and said; what was found until then counts.
TEST(Diagnose, TheClockEndsASearch) {
  const Subject subject{"scale_missing", "plain_sdpa", "gaussian", ""};
  Adapter adapter("mutants?mutant=scale_missing");
  const Outcome outcome = adapter.run(small_case(subject, Format::binary32), outputs_alone);
  const Observation observation(outcome.golden, 0, outcome.kept.outputs);
  SearchLimits limits;
  const FoundSuspects all = search_suspects(observation, limits);
  EXPECT_FALSE(all.cut);
  EXPECT_FALSE(all.matches.empty());
  limits.time = limits.longer = std::chrono::milliseconds(0);
  const FoundSuspects none = search_suspects(observation, limits);
  EXPECT_TRUE(none.cut);
  EXPECT_LE(none.tried, 2);
  EXPECT_TRUE(none.matches.empty());
}

struct Place {
  const char* mutant;
  qkcts_stage stage;
};

// Of a fused kernel golden rows in the place of q and k say where it goes wrong.
TEST(Diagnose, TheFirstDivergentStageIsFoundBySubstitution) {
  for (const Place& place :
       {Place{"gain_missing", QKCTS_STAGE_Q_NORM}, Place{"rope_interleaved_for_half", QKCTS_STAGE_Q_ROPE},
        Place{"scale_missing", QKCTS_STAGE_SCORES}}) {
    for (const StageSet stages : {outputs_alone, ~StageSet{0}}) {
      Adapter adapter(std::string("mutants?mutant=") + place.mutant);
      const Subject subject{place.mutant, "qwen3_rmsnorm", "gaussian", ""};
      const Outcome outcome = adapter.run(small_case(subject, Format::binary32), stages);
      ASSERT_EQ(outcome.result.verdict, Verdict::fail) << place.mutant;
      const Observation observation(outcome.golden, 0, outcome.kept.outputs);
      Divergence found = observed_divergence(observation);
      EXPECT_EQ(found.detail.empty(), stages == outputs_alone);
      if (found.detail.empty())
        found = substituted_divergence(*found.stage, outcome.golden, adapter.rerunner(stages), outcome.result);
      EXPECT_EQ(found.stage, place.stage) << place.mutant << ": " << found.detail;
    }
  }
}

}  // namespace
}  // namespace qkcts
