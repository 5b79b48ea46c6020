// SPDX-License-Identifier: Apache-2.0
// Legal implementations of every kind that the budgets admit: none is diagnosed as wrong, and of a wrong contract each
// is named, though none of them is the kernel that the catalogue was made with.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "conformance/neighbour.hpp"
#include "harness/diagnose_case.hpp"
#include "reference/legal_variant.hpp"
#include "vectors/generate.hpp"
#include "vectors/row_selection.hpp"

namespace qkcts {
namespace {

constexpr int variants_of_each = 12;

// Every choice that no profile of these formats forbids.
LegalVariant drawn(std::mt19937& source) {
  const auto one_of = [&](std::uint32_t count) { return static_cast<std::uint8_t>(source() % count); };
  LegalVariant v;
  v.sum = static_cast<LegalVariant::Sum>(one_of(5));
  v.variance = static_cast<LegalVariant::Variance>(one_of(2));
  v.root = static_cast<LegalVariant::Root>(one_of(3));
  v.association = static_cast<LegalVariant::Association>(one_of(3));
  v.scale = static_cast<LegalVariant::Scale>(one_of(4));
  v.base = static_cast<LegalVariant::Base>(one_of(5));
  v.softmax = static_cast<LegalVariant::Softmax>(one_of(4));
  v.order = static_cast<LegalVariant::Order>(one_of(2));
  v.normalise = static_cast<LegalVariant::Normalise>(one_of(2));
  v.quotient = static_cast<LegalVariant::Quotient>(one_of(2));
  v.functions = static_cast<LegalVariant::Functions>(one_of(4));
  v.block = 1 + one_of(16);
  v.store_weights = one_of(2) == 0;
  return v;
}

GoldenCase golden_of(const char* contract, Format format) {
  PlannedCase planned;
  planned.contract = shipped_contract(contract);
  planned.family = "gaussian";
  planned.format = format;
  planned.shape = shape_from_text("1,4,2,4,7,20,12");
  planned.slug = case_slug(planned.contract, planned.family, format, planned.shape, 0);
  planned.seed = case_seed(1, planned.slug);
  GoldenCase golden;
  golden.input = make_case(planned, golden.first_position);
  golden.family = planned.family;
  golden.profiles = {profiles_for(format).front().name};
  std::vector<DroppedProfile> dropped;
  seal(golden, select_rows(planned.contract.terms, planned.shape, 0, 1), dropped);
  return golden;
}

// Output and lse, as a fused kernel writes them.
StageBytes outputs_alone(const StageValues& values, Format storage) {
  StageBytes outputs;
  for (const qkcts_stage stage : {QKCTS_STAGE_OUTPUT, QKCTS_STAGE_LSE}) {
    const Format format = stage_format(stage, storage);
    const auto size = static_cast<std::size_t>(parameters(format).bits / 8);
    outputs[stage].resize(values[stage].size() * size);
    for (std::size_t i = 0; i < values[stage].size(); ++i) {
      const std::uint64_t pattern = encode(format, values[stage][i]);
      std::memcpy(outputs[stage].data() + i * size, &pattern, size);
    }
  }
  return outputs;
}

StageBytes run(const Case& c, const Profile& profile, const LegalVariant& variant) {
  StageRows rows;
  for (const qkcts_stage stage : all_stages)
    if ((stages_of(c.contract.terms) & bit(stage)) != 0)
      for (std::int64_t row = 0; row < row_count(stage, c.shape); ++row)
        rows[stage].push_back(static_cast<std::uint32_t>(row));
  return outputs_alone(run_legal_variant(c, evaluate(c, rows).exact, profile, variant), c.inputs.format);
}

TEST(ValidVariant, NoneIsDiagnosedAsWrong) {
  std::mt19937 source(1);
  for (const char* contract : {"qwen3_rmsnorm", "rmsnorm_softcap", "clause_sink_column", "clause_layer_norm_two_pass",
                               "plain_sdpa_temperature", "clause_bias_additive"})
    for (const Format format : {Format::binary32, Format::bfloat16}) {
      const GoldenCase golden = golden_of(contract, format);
      const Profile profile = profiles_for(format).front();
      for (int i = 0; i < variants_of_each; ++i) {
        const LegalVariant variant = drawn(source);
        const Observation observation(golden, 0, run(golden.input, profile, variant));
        const CaseDiagnosis d = diagnosed_outputs(observation, Verdict::pass, 2).diagnosis;
        EXPECT_EQ(d.finding, Finding::passes) << contract << " " << variant.text() << "\n" << diagnosis_text(d);
        EXPECT_TRUE(d.matches.empty());
      }
    }
}

struct WrongTerms {
  const char* contract;
  const char* clause;
  void (*change)(qkcts_contract&);
};

TEST(ValidVariant, OfAWrongContractTheClauseIsNamed) {
  const WrongTerms list[] = {
      {"plain_sdpa", "QK-SCALE-01",
       [](qkcts_contract& t) {
         t.score.scale_form = QKCTS_SCALE_CONSTANT;
         t.score.scale_value = 1;
       }},
      {"qwen3_rmsnorm", "QK-ROPE-02", [](qkcts_contract& t) { t.rope.pairing = QKCTS_INTERLEAVED; }},
      {"qwen3_rmsnorm", "QK-NORM-02", [](qkcts_contract& t) { t.q_norm.center = t.k_norm.center = 1; }},
      {"plain_sdpa_temperature", "QK-TEMP-01", [](qkcts_contract& t) { t.score.temperature = 1; }},
  };
  std::mt19937 source(2);
  for (const WrongTerms& wrong : list)
    for (const Format format : {Format::binary32, Format::bfloat16}) {
      const GoldenCase golden = golden_of(wrong.contract, format);
      qkcts_contract terms = golden.input.contract.terms;
      wrong.change(terms);
      const std::optional<Case> other = case_under(golden.input, terms);
      ASSERT_TRUE(other) << wrong.clause;
      for (int i = 0; i < 2; ++i) {
        const StageBytes outputs = run(*other, profiles_for(format).front(), drawn(source));
        const CaseDiagnosis d = diagnosed_outputs(Observation(golden, 0, outputs), Verdict::fail, 2).diagnosis;
        ASSERT_FALSE(d.matches.empty()) << wrong.clause << "\n" << diagnosis_text(d);
        const std::vector<std::string> clauses = clauses_named(d.matches.front());
        EXPECT_NE(std::find(clauses.begin(), clauses.end(), wrong.clause), clauses.end()) << diagnosis_text(d);
      }
    }
}

}  // namespace
}  // namespace qkcts
