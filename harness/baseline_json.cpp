// SPDX-License-Identifier: Apache-2.0
// Baselines as files. One entry stands on one line, so that a review shows which figures changed.
#include <fmt/format.h>

#include <set>

#include "conformance/file.hpp"
#include "conformance/json_schema.hpp"
#include "harness/baseline.hpp"
#include "harness/file_kind.hpp"
#include "harness/record_values.hpp"

namespace qkcts {
namespace {

Json entry_json(const BaselineEntry& entry) {
  return {{"contract", entry.contract},
          {"case", entry.slug},
          {"stage", stage_name(entry.stage)},
          {"profile", entry.profile},
          {"implementation", entry.implementation},
          {"max_ulp", figure_json(entry.max_ulp)},
          {"max_error_over_delta", figure_json(entry.max_ratio)},
          {"output_sha256", entry.output_sha256}};
}

BaselineEntry entry_from(const JsonAt& at) {
  return {at["contract"].text(),
          at["case"].text(),
          stage_from(at["stage"]),
          at["profile"].text(),
          at["implementation"].text(),
          figure_from(at["max_ulp"]),
          figure_from(at["max_error_over_delta"]),
          at["output_sha256"].text()};
}

BaselineRun run_from(const JsonAt& at) {
  BaselineRun run;
  run.scope = {at["adapter"].text(), at["machine_class"].text(), at["suite"].text(), at["corpus_digest"].text()};
  std::set<std::string> known;
  for (const JsonAt& one : at["entries"].items()) {
    const BaselineEntry& entry = run.entries.emplace_back(entry_from(one));
    if (!known.insert(fmt::format("{} {}", entry.slug, stage_name(entry.stage))).second)
      one.refuse("stands there a second time");
  }
  return run;
}

std::string words(const std::string& text) {
  return Json(text).dump();
}

}  // namespace

Baseline baseline_from_json(std::string_view text, std::string_view origin) {
  const Json document = parse_json(text, origin);
  require_schema(document, "baseline", origin);
  Baseline baseline;
  for (const JsonAt& one : JsonAt(document, std::string(origin))["runs"].items()) {
    BaselineRun run = run_from(one);
    for (const BaselineRun& other : baseline.runs)
      if (other.scope == run.scope) one.refuse("has the adapter, machine class and corpus of another run");
    baseline.runs.push_back(std::move(run));
  }
  return baseline;
}

Baseline read_baseline(const std::string& path) {
  if (file_kind(path) != FileKind::run) return baseline_from_json(read_text_file(path), path);
  const RunRecord record = read_run_record(path);
  return {{baseline_of(record, machine_class(record))}};
}

std::string baseline_json_text(const Baseline& baseline) {
  std::string text = "{\"schema\": \"qkcts-baseline/1\",\n \"runs\": [";
  const char* comma = "";
  for (const BaselineRun& run : baseline.runs) {
    text += fmt::format(
        "{}\n  {{\"adapter\": {},\n   \"machine_class\": {},\n   \"suite\": {},\n   \"corpus_digest\": {},\n   "
        "\"entries\": [",
        comma, words(run.scope.adapter), words(run.scope.machine_class), words(run.scope.suite),
        words(run.scope.corpus_digest));
    comma = ",";
    const char* inner = "";
    for (const BaselineEntry& entry : run.entries) {
      text += fmt::format("{}\n    {}", inner, entry_json(entry).dump());
      inner = ",";
    }
    text += "]}";
  }
  return text + "]}\n";
}

}  // namespace qkcts
