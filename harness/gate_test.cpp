// SPDX-License-Identifier: Apache-2.0
#include "harness/gate.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>

#include "conformance/file.hpp"
#include "harness/sample_record.hpp"

namespace qkcts {
namespace {

RunRecord with_figures(double ratio, double ulp, const std::string& bits = std::string(64, '1')) {
  RunRecord record = passing_record();
  for (StageResult& stage : record.cases[0].stages) {
    stage.judgement->max_ratio = ratio;
    stage.judgement->max_ulp = ulp;
    stage.output_sha256 = bits;
  }
  return record;
}

Baseline baseline_from(const RunRecord& record) {
  Baseline baseline;
  update_baseline(baseline, record, machine_class(record));
  return baseline;
}

// Of no other process that runs the same test.
std::string own_file(const std::string& name) {
  return fmt::format("{}gate_test.{}.{}", testing::TempDir(), ::getpid(), name);
}

int gate_code(const RunRecord& before, const RunRecord& now, const GateOptions& options = {}) {
  return gate(baseline_from(before), now, options).exit_code(options);
}

TEST(Gate, TheThresholdsAreThoseOfTheDocument) {
  EXPECT_FALSE(has_grown_in_ratio(0.40, 0.50));  // 25 %
  EXPECT_TRUE(has_grown_in_ratio(0.40, 0.51));
  EXPECT_FALSE(has_grown_in_ratio(0.01, 0.06));  // 0.05
  EXPECT_TRUE(has_grown_in_ratio(0.01, 0.0601));
  EXPECT_FALSE(has_grown_in_ratio(0.5, 0.4));
  EXPECT_FALSE(has_grown_in_ulp(0.4, 0.9));  // half an ulp
  EXPECT_TRUE(has_grown_in_ulp(0.4, 1.9));
  EXPECT_FALSE(has_grown_in_ulp(100, 125));  // 25 %
  EXPECT_TRUE(has_grown_in_ulp(100, 125.1));
  constexpr double infinite = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(has_grown_in_ulp(3, infinite));
  EXPECT_TRUE(has_grown_in_ratio(0.5, infinite));
  EXPECT_FALSE(has_grown_in_ulp(infinite, infinite));
}

TEST(Gate, AnErrorThatGrewInsideOfTheBudgetFailsAndSaysHow) {
  const RunRecord before = with_figures(0.12, 0.4), now = with_figures(0.60, 1.9);
  EXPECT_EQ(exit_code(now), 0) << "every element conforms";
  EXPECT_EQ(gate_code(before, now), 1);
  EXPECT_EQ(gate_code(before, before), 0);
  EXPECT_EQ(gate_code(now, before), 0);
  const GateResult result = gate(baseline_from(before), now, {});
  const std::string text = gate_text(result, {}, "qkcts baseline update b.json run.json");
  for (const char* part : {"error/Delta 0.12 -> 0.6 (+400 %), max ulp 0.4 -> 1.9 (+375 %)", "GATE FAILED",
                           "accept it:\n  qkcts baseline update b.json run.json", "hand/pass output"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(gate(baseline_from(now), before, {}).improved, before.cases[0].stages.size());
  const std::string annotations = gate_annotations(result, {});
  EXPECT_EQ(annotations.rfind("::error title=qkcts gate::hand/pass", 0), 0u) << annotations;
  EXPECT_NE(annotations.find("(+400 %25)"), std::string::npos) << annotations;
}

TEST(Gate, OtherBitsAreToldWhereRepeatabilityIsClaimed) {
  const RunRecord before = with_figures(0.1, 0.4);
  RunRecord now = with_figures(0.1, 0.4, std::string(64, '2'));
  EXPECT_TRUE(gate(baseline_from(before), now, {}).findings.empty());
  now.description.bitwise_repeatable = Claim::made;
  const GateResult told = gate(baseline_from(before), now, {});
  EXPECT_EQ(told.findings.size(), now.cases[0].stages.size());
  EXPECT_EQ(told.exit_code({}), 0);
  GateOptions strict;
  strict.same_bits = true;
  EXPECT_EQ(told.exit_code(strict), 1);
}

TEST(Gate, WhatVanishedFails) {
  const RunRecord before = with_figures(0.1, 0.4);
  RunRecord now = before;
  now.cases[0] = unrun_case(GoldenCase(), Verdict::unsupported, "k_len 2 is more than 1");
  now.cases[0].slug = before.cases[0].slug;
  now.cases[0].stages = before.cases[0].stages;
  for (StageResult& stage : now.cases[0].stages) {
    stage.judgement.reset();
    stage.verdict = Verdict::unsupported;
  }
  now.cases.push_back(before.cases[0]);
  now.cases.back().slug = "hand/other";
  EXPECT_EQ(gate(baseline_from(before), now, {}).findings[0].kind, GateFindingKind::unsupported);
  RunRecord elsewhere = before;
  elsewhere.cases[0].implementation = "fallback";
  const GateResult result = gate(baseline_from(before), elsewhere, {});
  EXPECT_EQ(result.findings[0].kind, GateFindingKind::elsewhere);
  EXPECT_EQ(result.exit_code({}), 5) << "nothing is left to compare";
}

TEST(Gate, WhatTheRunDidNotComeToFailsUnlessThatIsAllowed) {
  RunRecord before = with_figures(0.1, 0.4);
  before.cases.push_back(before.cases[0]);
  before.cases[1].slug = "hand/second";
  RunRecord now = before;
  now.cases.pop_back();
  GateOptions allowing;
  allowing.allow_not_run = true;
  EXPECT_EQ(gate_code(before, now), 1);
  EXPECT_EQ(gate_code(before, now, allowing), 0);
  now.cases.clear();
  EXPECT_EQ(gate_code(before, now), 5);
  EXPECT_EQ(gate_code(before, now, allowing), 0) << "a machine without the device";
}

// A declaration that shrank is no missing device.
TEST(Gate, NothingButUnsupportedFailsWhateverIsAllowed) {
  const RunRecord before = with_figures(0.1, 0.4);
  RunRecord now = before;
  for (StageResult& stage : now.cases[0].stages) {
    stage.verdict = Verdict::unsupported;
    stage.judgement.reset();
  }
  GateOptions allowing;
  allowing.allow_not_run = true;
  EXPECT_EQ(gate_code(before, now), 5);
  EXPECT_EQ(gate_code(before, now, allowing), 1);
}

TEST(Gate, ABrokenRelationFails) {
  const RunRecord before = with_figures(0.1, 0.4);
  RunRecord now = before;
  now.relations.emplace_back();
  now.relations.back().slug = "hand/pair";
  now.relations.back().verdict = Verdict::pass;
  EXPECT_EQ(gate_code(before, now), 0);
  now.relations.back().verdict = Verdict::fail;
  EXPECT_EQ(gate_code(before, now), 1);
}

TEST(Baseline, AKnownFailureIsNoMeasure) {
  RunRecord failing = with_figures(0.1, 0.4);
  EXPECT_FALSE(baseline_from(failing).runs[0].entries.empty());
  for (StageResult& stage : failing.cases[0].stages) stage.verdict = Verdict::xfail;
  EXPECT_TRUE(baseline_from(failing).runs[0].entries.empty());
}

TEST(Gate, AnnotationsCannotBeContinuedFromOutside) {
  RunRecord now = with_figures(0.1, 0.4);
  now.cases[0].stages[0].verdict = Verdict::fail;
  now.cases[0].detail = "first\n::error::second %";
  const GateResult result = gate(baseline_from(with_figures(0.1, 0.4)), now, {});
  const std::string text = gate_annotations(result, {});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_NE(text.find("first%0A::error::second %25"), std::string::npos) << text;
}

TEST(Gate, OnlyWhatIsComparableIsCompared) {
  const RunRecord before = with_figures(0.1, 0.4);
  for (const auto& change : std::vector<std::function<void(RunRecord&)>>{
           [](RunRecord& r) { r.corpus_digest = std::string(64, 'c'); },
           [](RunRecord& r) { r.machine.processor = "other"; }, [](RunRecord& r) { r.description.name = "other"; }}) {
    RunRecord now = before;
    change(now);
    const GateResult result = gate(baseline_from(before), now, {});
    EXPECT_EQ(result.exit_code({}), 5);
    EXPECT_NE(result.nothing_because.find("that of the run is"), std::string::npos) << result.nothing_because;
  }
  RunRecord now = before;
  now.machine.processor = "other";
  GateOptions named;
  named.machine_class = machine_class(before);
  EXPECT_EQ(gate_code(before, now, named), 0);
}

TEST(Gate, WhatFailsFailsWithOrWithoutABaseline) {
  const RunRecord sample = sample_record();
  EXPECT_EQ(gate(Baseline(), sample, {}).exit_code({}), 1);
  EXPECT_EQ(gate(baseline_from(sample), sample, {}).exit_code({}), 1);
  for (const BaselineEntry& entry : baseline_of(sample, "here").entries) EXPECT_NE(entry.slug, "hand/crash");
}

TEST(Baseline, FilesComeBackAsTheyWere) {
  Baseline baseline = baseline_from(with_figures(0.1, 0.4));
  update_baseline(baseline, sample_record(), "another machine");
  const std::string text = baseline_json_text(baseline);
  EXPECT_EQ(baseline_json_text(baseline_from_json(text, "b.json")), text);
  EXPECT_EQ(baseline.runs.size(), 2u);
  const std::string path = own_file("baseline.json");
  write_file_atomically(path, text);
  EXPECT_EQ(baseline_json_text(read_baseline(path)), text);
  std::filesystem::remove(path);
}

// That of 10,000 cases is longer than any baseline may be.
TEST(Baseline, ARunIsOneHoweverLong) {
  const RunRecord run = with_figures(0.1, 0.4);
  const std::string path = own_file("run.json");
  write_file_atomically(path, run_json_text(run) + std::string(std::size_t{65} << 20, ' '));
  EXPECT_EQ(baseline_json_text(read_baseline(path)), baseline_json_text(baseline_from(run)));
  std::filesystem::remove(path);
}

TEST(Baseline, AnUpdateReplacesWhatRanAndKeepsTheRest) {
  RunRecord two = with_figures(0.1, 0.4);
  two.cases.push_back(two.cases[0]);
  two.cases[1].slug = "hand/second";
  Baseline baseline = baseline_from(two);
  const std::size_t stages = two.cases[0].stages.size();
  const RunRecord one = with_figures(0.2, 0.4);
  const BaselineChange change = update_baseline(baseline, one, machine_class(one));
  EXPECT_EQ(change.entries, 2 * stages);
  EXPECT_EQ(change.changed, stages);
  EXPECT_EQ(change.added + change.removed, 0u);
  RunRecord lost = with_figures(0.2, 0.4);
  lost.cases[0].verdict = Verdict::unsupported;
  for (StageResult& stage : lost.cases[0].stages) stage.judgement.reset();
  EXPECT_EQ(update_baseline(baseline, lost, machine_class(lost)).removed, stages);
}

TEST(Baseline, FaultsNameTheirPlace) {
  const std::string text = baseline_json_text(baseline_from(with_figures(0.1, 0.4)));
  const auto fault = [](std::string changed) {
    try {
      baseline_from_json(changed, "b.json");
      return std::string();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(fault(text), "");
  std::string other = text;
  other.replace(other.find("\"output\""), 8, "\"result\"");
  EXPECT_EQ(fault(other).rfind("b.json: /runs/0/entries/", 0), 0u) << fault(other);
  std::string twice = text;
  twice.replace(twice.find("\"probs\""), 7, "\"output\"");
  EXPECT_NE(fault(twice).find("a second time"), std::string::npos) << fault(twice);
  EXPECT_NE(fault("[]"), "");
  EXPECT_NE(fault("{"), "");
}

}  // namespace
}  // namespace qkcts
