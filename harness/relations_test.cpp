// SPDX-License-Identifier: Apache-2.0
// relations_tests CORPUS [arguments of GoogleTest]
// What relations find without a golden value: on the suite `relations` the controls keep to all of them, and each wrong
// kernel breaks one of the kind that is named beside it. The program is its own worker.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "harness/relation_session.hpp"
#include "harness/run_selection.hpp"
#include "harness/worker.hpp"
#include "vectors/corpus_reader.hpp"

namespace qkcts {
namespace {

std::string corpus_path;

const CorpusReader& corpus() {
  static const CorpusReader reader(corpus_path);
  return reader;
}

struct OpenAdapter {
  explicit OpenAdapter(const std::string& spec)
      : runner(worker_runner(resolve_adapter(spec), {std::chrono::seconds(60), 0})), answer(runner->open(true)) {
    if (answer.error.empty()) description = description_from_json(answer.description, spec);
  }
  std::unique_ptr<AdapterRunner> runner;
  OpenAnswer answer;
  AdapterDescription description;
};

// Relations of one kind (of all, if empty), each with what became of it.
std::vector<RelationResult> results_of(OpenAdapter& adapter, std::string_view kind) {
  RunOptions options;
  options.judging = Judging::relations_alone;
  RelationSession session(corpus(), "*", selected_slugs(corpus(), {}));
  std::vector<RelationResult> results;
  for (const Relation& relation : session.relations()) {
    if (!kind.empty() && row(relation.kind).name != kind) continue;
    results.push_back(session.judge(relation.slug, adapter.description, [&](const std::string& slug) {
      KeptOutputs outputs;
      const CaseResult result = run_case(*adapter.runner, adapter.description, corpus().read(slug), options, &outputs);
      session.keep(result, std::move(outputs));
    }));
  }
  return results;
}

class Control : public testing::TestWithParam<const char*> {};

TEST_P(Control, KeepsToEveryRelationThatItDeclares) {
  const std::string name = GetParam();
  OpenAdapter adapter(name);
  ASSERT_EQ(adapter.answer.error, "");
  if (adapter.answer.probe != QKCTS_OK) GTEST_SKIP() << adapter.answer.probe_reason;
  std::map<RelationKind, int> passed;
  for (const RelationResult& result : results_of(adapter, "")) {
    const bool asks_nothing = result.rule == RelationRule::reference;
    const bool keeps = result.verdict == Verdict::pass || (asks_nothing && result.verdict == Verdict::skipped) ||
                       (name == "avx2" && result.verdict == Verdict::unsupported);
    EXPECT_TRUE(keeps) << result.slug << ": " << verdict_name(result.verdict) << ": " << result.detail
                       << (result.breach ? result.breach->what : "");
    if (keeps && result.verdict != Verdict::unsupported) ++passed[result.kind];
    const RelationRule declared = row(result.kind).rule;
    if (result.verdict == Verdict::pass) {
      EXPECT_EQ(result.rule, declared == RelationRule::bitwise_in_batch ? RelationRule::bitwise : declared)
          << result.slug << ": the controls claim batch_invariant, and no order that depends on the data";
    }
  }
  for (const RelationRow& row : relation_table()) EXPECT_GT(passed[row.kind], 0) << row.name << " was never judged";
}

#ifdef QKCTS_AVX2_BUILT
INSTANTIATE_TEST_SUITE_P(Fast, Control, testing::Values("avx2"));
#endif
INSTANTIATE_TEST_SUITE_P(Plain, Control, testing::Values("scalar", "mutants?mutant=none"), [](const auto& parameter) {
  const std::string name = parameter.param;
  return name.find('?') == std::string::npos ? name : "no_mutant";
});

struct Fault {
  const char* mutant;
  const char* kind;
};

void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.mutant << " by " << fault.kind;
}

constexpr Fault faults[] = {
    {"norm_skipped", "score_bound"},
    {"softcap_missing", "score_bound"},
    {"eps_hardcoded_1e-5", "eps_rescaling"},
    {"eps_class_default", "eps_rescaling"},
    {"eps_underflow_fp16", "eps_rescaling"},
    {"eps_dropped", "liveness"},
    {"rms_for_layernorm", "common_shift"},
    {"layernorm_for_rms", "shift_seen"},
    {"norm_skipped", "weight_bound"},
    {"bias_ignored", "score_shift"},
    {"temperature_inverted", "temperature"},
    {"output_unnormalised", "sums_and_hull"},
    {"batch0_length", "batch_position"},
    {"output_quantised_down", "value_scale"},
    {"output_quantised_down", "value_sign"},
    {"clip_above_only", "joint_sign"},
    {"last_row_one_key_short", "key_permutation"},
    {"path_by_bucket", "batch_position"},
    {"gqa_tile", "repeated_heads"},
    {"heads_block_for_tile", "repeated_heads"},
    {"gqa_no_map", "repeated_heads"},
    {"causal_ignored", "prefix"},
    {"causal_one_ahead", "prefix"},
    {"kv_len_ignored", "prefix"},
    {"softcap_missing", "liveness"},
    {"causal_ignored", "liveness"},
    {"temperature_ignored", "liveness"},
};

class Wrong : public testing::TestWithParam<Fault> {};

TEST_P(Wrong, BreaksTheRelation) {
  const Fault& fault = GetParam();
  OpenAdapter adapter(std::string("mutants?mutant=") + fault.mutant);
  ASSERT_EQ(adapter.answer.error, "");
  const std::vector<RelationResult> results = results_of(adapter, fault.kind);
  ASSERT_FALSE(results.empty());
  const bool broken = std::any_of(results.begin(), results.end(),
                                  [](const RelationResult& result) { return result.verdict == Verdict::fail; });
  EXPECT_TRUE(broken) << results.size()
                      << " relations of this kind, none broken; the first: " << verdict_name(results[0].verdict);
}

INSTANTIATE_TEST_SUITE_P(Kernel, Wrong, testing::ValuesIn(faults), [](const auto& parameter) {
  std::string name = std::string(parameter.param.mutant) + "_by_" + parameter.param.kind;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Every kind that asks something of an adapter is broken by one.
TEST(Faults, CoverEveryKind) {
  std::set<std::string_view> covered;
  for (const Fault& fault : faults) covered.insert(fault.kind);
  for (const RelationRow& row : relation_table())
    EXPECT_EQ(covered.count(row.name) != 0, row.rule != RelationRule::reference) << row.name;
}

}  // namespace
}  // namespace qkcts

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], qkcts::worker_argument) == 0) return qkcts::worker_main();
  if (argc < 2) {
    std::fprintf(stderr, "usage: relations_tests CORPUS [arguments of GoogleTest]\n");
    return 2;
  }
  qkcts::corpus_path = argv[1];
  argv[1] = argv[0];  // what follows the corpus is GoogleTest's; it looks for the program here
  --argc;
  testing::InitGoogleTest(&argc, argv + 1);
  return RUN_ALL_TESTS();
}
