// SPDX-License-Identifier: Apache-2.0
#include "harness/report_ctrf.hpp"

#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <map>

#include "harness/json_pieces.hpp"
#include "harness/record_values.hpp"
#include "harness/report_outcome.hpp"

namespace qkcts {
namespace {

constexpr std::size_t longest_text = 20000;

// Milliseconds since 1970 of "2026-01-02T03:04:05Z"; 0 if it is none.
std::int64_t epoch_milliseconds(const std::string& started) {
  std::tm time{};
  if (strptime(started.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time) == nullptr) return 0;
  return static_cast<std::int64_t>(timegm(&time)) * 1000;
}

std::int64_t milliseconds(double seconds) {
  return std::llround(seconds * 1000);
}

// `other`: it was run, and says nothing: mistrusted, domain, known to fail.
std::string_view status_of(const Outcome& outcome) {
  switch (outcome.kind) {
    case JunitElement::passed:
      return "passed";
    case JunitElement::failure:
    case JunitElement::error:
      return "failed";
    case JunitElement::skipped:
      break;
  }
  return outcome.verdict == Verdict::not_run             ? "pending"
         : row(outcome.verdict).effect == Effect::judged ? "other"
                                                         : "skipped";
}

Json stage_figures(const CaseResult& result) {
  Json stages = Json::object();
  for (const StageResult& stage : result.stages) {
    Json& figures = stages[std::string(stage_name(stage.stage))] = {{"verdict", verdict_name(stage.verdict)}};
    if (!stage.judgement) continue;
    figures["max_ulp"] = figure_json(stage.judgement->max_ulp);
    figures["max_error_over_delta"] = figure_json(stage.judgement->max_ratio);
  }
  return stages;
}

Json test_json(const RunRecord& record, const Outcome& outcome, const CaseResult* result) {
  Json test = {{"name", outcome.name},
               {"status", status_of(outcome)},
               {"duration", milliseconds(outcome.seconds)},
               {"suite", {record.corpus_suite, outcome.group}},
               {"rawStatus", verdict_name(outcome.verdict)},
               {"type", result != nullptr              ? "conformance"
                        : outcome.group == "relations" ? "relation"
                                                       : "demand"}};
  if (!outcome.message.empty()) test["message"] = cut_text(outcome.message, longest_text);
  if (!outcome.text.empty()) test["trace"] = cut_text(outcome.text, longest_text);
  if (result != nullptr)
    test["extra"] = {{"profile", result->profile},
                     {"format", parameters(result->format).name},
                     {"family", result->family},
                     {"implementation", result->implementation},
                     {"stages", stage_figures(*result)}};
  return test;
}

}  // namespace

void write_ctrf_json(const RunRecord& record, const TextSink& sink) {
  std::map<std::string_view, int> counts;
  for_each_outcome(record, [&](const Outcome& outcome, const CaseResult*) { ++counts[status_of(outcome)]; });
  const std::int64_t start = epoch_milliseconds(record.started);
  const Json document = {
      {"reportFormat", "CTRF"},
      {"specVersion", "1.0.0"},
      {"timestamp", record.started},
      {"generatedBy", fmt::format("qkcts {}", record.suite_version)},
      {"results",
       {{"tool", {{"name", "qkcts"}, {"version", record.suite_version}}},
        {"summary",
         {{"tests", number_of_outcomes(record)},
          {"passed", counts["passed"]},
          {"failed", counts["failed"]},
          {"skipped", counts["skipped"]},
          {"pending", counts["pending"]},
          {"other", counts["other"]},
          {"start", start},
          {"stop", start + milliseconds(record.seconds)},
          {"duration", milliseconds(record.seconds)},
          {"extra", {{"exit_code", exit_code(record)}, {"outcome", run_word(record)}}}}},
        {"tests", Json::array()},
        {"environment",
         {{"appName", record.description.name},
          {"appVersion", record.description.version},
          {"osPlatform", record.machine.system},
          {"osRelease", record.machine.release},
          {"extra", {{"corpus_digest", record.corpus_digest}, {"adapter_sha256", record.adapter_sha256}}}}}}}};
  const auto write_tests = [&](std::size_t level) {
    write_json_list(sink, level, [&](const JsonSink& item) {
      for_each_outcome(
          record, [&](const Outcome& outcome, const CaseResult* result) { item(test_json(record, outcome, result)); });
    });
  };
  const auto write_results = [&](std::size_t level) {
    write_json_object(sink, level, document["results"], {{"tests", write_tests}});
  };
  write_json_object(sink, 0, document, {{"results", write_results}});
  sink("\n");
}

std::string ctrf_json_text(const RunRecord& record) {
  return text_of([&](const TextSink& sink) { write_ctrf_json(record, sink); });
}

}  // namespace qkcts
