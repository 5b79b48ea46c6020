// SPDX-License-Identifier: Apache-2.0
// mutants_tests SUITE CORPUS [arguments of GoogleTest]
// A suite is worth what it kills: on its corpus the controls pass every case, and each wrong kernel of the catalogue
// fails in the stage that its entry names, or gets the error that it deserves. `core` has to kill the mutants of the
// clauses of ABI 1.0, `clauses` those of 1.1, `points` those of 1.2, unless an entry names another suite. The program
// is its own worker.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/contract_field.hpp"
#include "conformance/json.hpp"
#include "conformance/mutant_catalogue.hpp"
#include "conformance/neighbour.hpp"
#include "harness/case_run.hpp"
#include "harness/worker.hpp"
#include "vectors/corpus_reader.hpp"

namespace qkcts {
namespace {

std::string suite, corpus_path;

// Every case of the corpus, read once, the small ones first: most mutants die early.
const std::vector<GoldenCase>& corpus() {
  static const std::vector<GoldenCase> cases = [] {
    const CorpusReader reader(corpus_path);
    std::vector<GoldenCase> read;
    for (const std::string& slug : reader.slugs()) read.push_back(reader.read(slug));
    const auto work = [](const GoldenCase& golden) {
      const qkcts_shape& s = golden.input.shape;
      return s.batch * s.q_heads * s.q_len * s.k_len * s.head_dim;
    };
    std::stable_sort(read.begin(), read.end(),
                     [&](const GoldenCase& a, const GoldenCase& b) { return work(a) < work(b); });
    return read;
  }();
  return cases;
}

struct OpenAdapter {
  explicit OpenAdapter(const std::string& spec, std::chrono::milliseconds timeout = std::chrono::seconds(60))
      : runner(worker_runner(resolve_adapter(spec), {timeout, 0})), answer(runner->open(true)) {
    if (answer.error.empty()) description = description_from_json(answer.description, spec);
  }
  std::unique_ptr<AdapterRunner> runner;
  OpenAnswer answer;
  AdapterDescription description;
};

// Where the contract first speaks of a clause, as an offset; 0 if it is no field.
std::size_t first_place(std::string_view clause) {
  std::size_t first = SIZE_MAX;
  for (const ContractField& field : contract_field_table())
    if (field.clause == clause) first = std::min<std::size_t>(first, field.offset);
  for (const NormSection& section : norm_sections())
    if (section.clause == clause) first = std::min<std::size_t>(first, section.offset);
  return first == SIZE_MAX ? 0 : first;
}

// The suite that has to kill a mutant: the one that it names, else that of the version in which its clause came.
std::string_view suite_of(const CatalogueMutant& mutant) {
  if (!mutant.suite.empty()) return mutant.suite;
  // What 1.2 added to structs and enumerations of 1.1.
  if (mutant.clause == "QK-ROPE-12" || mutant.id.find("log_ratio") != std::string::npos) return "points";
  const std::size_t place = first_place(mutant.clause);
  if (place >= offsetof(qkcts_contract, v_norm)) return "points";
  return place >= offsetof(qkcts_contract, q_range) ? "clauses" : "core";
}

bool runs(const CatalogueMutant& mutant) {
  return !mutant.fields.empty() || !mutant.fault.empty();
}

// Those that the suite has to kill.
std::vector<const CatalogueMutant*> mutants() {
  std::vector<const CatalogueMutant*> chosen;
  for (const CatalogueMutant& mutant : mutant_catalogue())
    if (runs(mutant) && suite_of(mutant) == suite) chosen.push_back(&mutant);
  return chosen;
}

// What the adapter says of a fault.
const Json& fault_entry(const std::string& fault) {
  static const Json faults =
      parse_json(in_process_runner(resolve_adapter("mutants"))->open(true).description, "mutants")
          .at("arithmetic")
          .at("mutants");
  return faults.at(fault);
}

// A fault may deserve an error: "fail", "error(crash)".
std::string due_verdict(const CatalogueMutant& mutant) {
  return mutant.fault.empty() ? "fail" : fault_entry(mutant.fault).at("verdict").get<std::string>();
}

// Did this case kill the mutant in the way that the catalogue says?
bool killed(const CatalogueMutant& mutant, const std::string& due, const CaseResult& result) {
  if (due != "fail") return verdict_name(result.verdict) == due;
  return std::any_of(result.stages.begin(), result.stages.end(), [&](const StageResult& stage) {
    return stage.stage == *mutant.stage && stage.verdict == Verdict::fail;
  });
}

// A case in which a wrong contract is the contract asked for says nothing.
bool touched(const CatalogueMutant& mutant, const Case& c) {
  if (mutant.fields.empty()) return true;
  const std::optional<qkcts_contract> wrong = contract_of(mutant, c.contract.terms, &c.shape);
  return wrong && case_under(c, *wrong);
}

class Control : public testing::TestWithParam<const char*> {};

TEST_P(Control, PassesEveryCaseThatItDeclares) {
  const std::string name = GetParam();
  OpenAdapter adapter(name);
  ASSERT_EQ(adapter.answer.error, "");
  if (adapter.answer.probe != QKCTS_OK) GTEST_SKIP() << adapter.answer.probe_reason;
  std::size_t passed = 0;
  for (const GoldenCase& golden : corpus()) {
    const CaseResult result = run_case(*adapter.runner, adapter.description, golden, {});
    if (result.verdict == Verdict::pass) ++passed;
    const bool declared = unsupported_reason(adapter.description, golden.input).empty();
    EXPECT_EQ(result.verdict, declared ? Verdict::pass : Verdict::unsupported) << result.slug << ": " << result.detail;
  }
  // binary64, and some of the later clauses, are all that avx2 leaves out.
  const std::size_t tenths = name != "avx2" ? 10 : suite == "core" ? 9 : suite == "clauses" ? 3 : 0;
  EXPECT_GE(passed * 10, corpus().size() * tenths);
}

#ifdef QKCTS_AVX2_BUILT
INSTANTIATE_TEST_SUITE_P(Fast, Control, testing::Values("avx2"));
#endif
INSTANTIATE_TEST_SUITE_P(Plain, Control, testing::Values("scalar", "mutants?mutant=none"), [](const auto& parameter) {
  const std::string name = parameter.param;
  return name.find('?') == std::string::npos ? name : "no_mutant";
});

class Wrong : public testing::TestWithParam<const CatalogueMutant*> {};

TEST_P(Wrong, FailsWhereItIsWrong) {
  const CatalogueMutant& mutant = *GetParam();
  const std::string due = due_verdict(mutant);
  // Only one of them never returns; the others may be slow on a busy machine.
  OpenAdapter adapter("mutants?mutant=" + mutant.id,
                      due == "error(timeout)" ? std::chrono::seconds(1) : std::chrono::seconds(60));
  ASSERT_EQ(adapter.answer.error, "");
  std::size_t tried = 0;
  std::string seen;
  for (const GoldenCase& golden : corpus()) {
    if (!touched(mutant, golden.input)) continue;
    ++tried;
    RunOptions options;
    // Dense inputs show no such fault.
    if (mutant.word == "layout.strides") options.variants = Variants::all;
    const CaseResult result = run_case(*adapter.runner, adapter.description, golden, options);
    if (killed(mutant, due, result)) return;
    if (violates(result.verdict)) seen = result.slug + ": " + std::string(verdict_name(result.verdict));
  }
  FAIL() << mutant.id << " (" << mutant.clause << ") survives in " << stage_name(*mutant.stage)
         << "; cases tried: " << tried << "; elsewhere: " << seen;
}

INSTANTIATE_TEST_SUITE_P(Kernel, Wrong, testing::ValuesIn(mutants()), [](const auto& parameter) {
  std::string name = parameter.param->id;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// One home per fact: what the adapter and the catalogue both say of a fault is the same, and each fault has an entry.
TEST(Catalogue, AgreesWithTheFaultsOfTheAdapter) {
  std::set<std::string> entries;
  for (const CatalogueMutant& mutant : mutant_catalogue()) {
    if (mutant.fault.empty()) continue;
    EXPECT_TRUE(entries.insert(mutant.fault).second) << mutant.fault << " is the fault of two entries";
    const Json& fault = fault_entry(mutant.fault);
    EXPECT_EQ(mutant.clause, fault.at("clause").get<std::string>()) << mutant.id;
    EXPECT_EQ(stage_name(*mutant.stage), fault.at("stage").get<std::string>()) << mutant.id;
  }
  const Json description = parse_json(in_process_runner(resolve_adapter("mutants"))->open(true).description, "mutants");
  for (const auto& [id, fault] : description.at("arithmetic").at("mutants").items())
    EXPECT_EQ(entries.count(id), 1u) << id << " has no entry in conformance/mutants";
}

}  // namespace
}  // namespace qkcts

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], qkcts::worker_argument) == 0) return qkcts::worker_main();
  if (argc < 3) {
    std::fprintf(stderr, "usage: mutants_tests SUITE CORPUS [arguments of GoogleTest]\n");
    return 2;
  }
  qkcts::suite = argv[1];
  qkcts::corpus_path = argv[2];
  // What follows the corpus is GoogleTest's; it looks for the mutants here.
  argv[2] = argv[0];
  argc -= 2;
  testing::InitGoogleTest(&argc, argv + 2);
  return RUN_ALL_TESTS();
}
