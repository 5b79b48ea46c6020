// SPDX-License-Identifier: Apache-2.0
#include "harness/sample_record.hpp"

#include <limits>

#include "harness/handmade_case.hpp"
#include "harness/utf8_text.hpp"

namespace qkcts {
namespace {

struct Outputs {
  std::vector<double> scores = {0, 0, 0, 0};
  std::vector<double> probs = {0.5, 0.5, 0.5, 0.5};
  std::vector<double> lse = {0x1.62e43p-1, 0x1.62e43p-1};
  std::vector<double> output = {2, 3.5, 2, 3.5};
};

CaseResult judged_case(const std::string& slug, const Outputs& outputs, const std::optional<Limit>& limit = {}) {
  GoldenCase golden = plain_golden_case();
  golden.input.slug = slug;
  CaseResult result = unrun_case(golden, Verdict::not_run, "");
  result.profile = "f32";
  result.implementation = "plain loops";
  result.seconds = 0.001;
  result.calls = 2;
  for (StageResult& stage : result.stages) {
    const std::vector<double>& values = stage.stage == QKCTS_STAGE_SCORES  ? outputs.scores
                                        : stage.stage == QKCTS_STAGE_PROBS ? outputs.probs
                                        : stage.stage == QKCTS_STAGE_LSE   ? outputs.lse
                                                                           : outputs.output;
    stage.judgement = judge_stage(golden, stage.stage, 0, stage_bytes(Format::binary32, values), limit);
    stage.verdict = stage.judgement->verdict;
    stage.output_sha256 = std::string(64, 'd');
    result.verdict = graver(result.verdict, stage.verdict);
  }
  return result;
}

CaseResult crashed_case() {
  CaseResult result = unrun_case(plain_golden_case(), Verdict::error_crash, "signal 11 (Segmentation fault)");
  result.slug = "hand/crash";
  result.profile = "f32";
  result.output = utf8_text("last words: <b>\x01\xff & \"quotes\" ]]>\nsecond line\n");
  return result;
}

RelationResult broken_relation() {
  RelationResult result;
  result.slug = "hand/scaled";
  result.kind = RelationKind::value_scale;
  result.rule = row(result.kind).rule;
  result.cases = {"hand/pass", "hand/wrong"};
  result.first_shape = result.second_shape = plain_golden_case().input.shape;
  result.profile = "f32";
  result.verdict = Verdict::fail;
  result.compared = 4;
  result.violated = 1;
  RelationBreach breach;
  breach.first = breach.second = {1, 1};
  breach.first_bits = 0x40600000;
  breach.second_bits = 0x7fc00000;
  breach.first_value = 3.5;
  breach.second_value = std::numeric_limits<double>::quiet_NaN();
  breach.due = 7;
  result.breach = breach;
  return result;
}

Diagnosis told_diagnosis() {
  Suspect suspect;
  suspect.name = "softmax.lse_base=two";
  suspect.changes = {{"QK-LSE-01", "softmax.lse_base", "e", "two"}};
  suspect.judged = suspect.explained = 4;
  suspect.worst = 0.5;
  suspect.known_as = {{"lse_base_two", "QK-LSE", "lse in base 2"}};
  suspect.by_kernel = true;
  CaseDiagnosis one;
  one.slug = "hand/wrong";
  one.contract = "plain_sdpa";
  one.finding = Finding::matched;
  one.divergence = {QKCTS_STAGE_LSE, "the first that fails"};
  one.failing = 2;
  one.judged = 4;
  one.tried = 12;
  one.matches = {suspect};
  one.nearest = {Suspect{}};
  one.nearest[0].worst = std::numeric_limits<double>::infinity();
  one.reproducer = Reproducer{plain_golden_case().input.shape, 3, "bundle/hand.wrong", "qkcts run x"};
  one.seconds = 0.25;
  return {{one}, 4, {"the adapter has changed"}};
}

}  // namespace

RunRecord passing_record() {
  RunRecord record;
  record.suite_version = "0.1.0";
  record.started = "2026-01-02T03:04:05Z";
  record.seconds = 1.5;
  record.command = {"qkcts", "run", "./lib mine.so", "hand.h5"};
  record.machine = this_machine();
  record.machine.worker_memory_mib = 4096;
  record.adapter = {"./lib mine.so", "/opt/lib mine.so", ""};
  record.adapter_sha256 = std::string(64, 'a');
  record.description = description_from_json(
      R"({"name": "mine <&>", "version": "1", "formats": ["binary32"], "stages": ["output"], "profile": {"binary32": "f32"}})",
      "describe()");
  record.corpus_path = "hand.h5";
  record.corpus_suite = "hand";
  record.corpus_digest = std::string(64, 'b');
  record.timeout_seconds = 60;
  record.contracts["plain_sdpa"] = canonical_json(plain_golden_case().input.contract);
  record.cases.push_back(judged_case("hand/pass", {}));
  return record;
}

RunRecord sample_record() {
  RunRecord record = passing_record();
  Outputs wrong;
  wrong.lse[1] = std::numeric_limits<double>::quiet_NaN();
  wrong.output[3] = 3.75;
  record.cases.push_back(judged_case("hand/wrong", wrong));
  Outputs near;
  near.output[0] = 2 + 0x1p-21;
  Limit one_ulp;
  one_ulp.max_ulp = 1;
  record.cases.push_back(judged_case("hand/limit", near, one_ulp));
  record.limits_text = R"({"limits":[{"max_ulp":1,"stage":"*"}],"schema":"qkcts-limits/1"})";
  record.cases.push_back(crashed_case());
  CaseResult restless = judged_case("hand/restless", {});
  restless.stages.back().verdict = restless.verdict = Verdict::not_repeatable;
  restless.stages.back().detail = "1 of 1 further calls returned other bits";
  restless.stages.back().spread_ulp = 1;
  restless.stages.back().variants = {{Variant::output_alone, true, std::nullopt, "fused loops"},
                                     {Variant::batch_of_33, false, 0.25}};
  record.cases.push_back(std::move(restless));
  CaseResult vague = judged_case("hand/vague", {});
  vague.stages.back().verdict = vague.verdict = Verdict::mistrusted;
  record.cases.push_back(std::move(vague));
  record.cases.push_back(unrun_case(plain_golden_case(), Verdict::unsupported, "k_len 2 is more than 1"));
  return record;
}

RunRecord full_record() {
  RunRecord record = sample_record();
  record.adapter.kind = AdapterKind::command;
  record.plain = true;
  record.profile_asked = "f32";
  record.stages_asked = "scores,lse,output";
  record.generator_version = "0.1.0";
  for (CaseResult& result : record.cases)
    for (StageResult& stage : result.stages)
      if (stage.judgement) stage.plain = PlainError{1.5, 1, 0.25, std::numeric_limits<double>::infinity()};
  record.cases[1].stages[3].judgement->unwritten = 2;
  record.cases[1].stages[3].judgement->first_unwritten = ElementCoordinates{1, 0};
  for (CaseResult& result : record.cases) keep_worst_heat(record, result);
  record.relations = {broken_relation(), RelationResult{}};
  record.relations[1].slug = "hand/bounded";
  record.relations[1].cases = {"hand/pass"};
  record.relations[1].first_shape = record.relations[1].second_shape = record.cases[0].shape;
  record.relations[1].detail = "<no device>";
  record.diagnosis = told_diagnosis();
  record.known_failures = {
      {{"hand/vague*", bit(QKCTS_STAGE_OUTPUT), Verdict::fail, "rounds twice", "issue 12", "2026-12-31", ""},
       KnownFailureState::stale,
       0}};
  record.demands.everything = true;
  record.demands.implementation = "fused*";
  record.demands.max_seconds = 60;
  return record;
}

}  // namespace qkcts
