// SPDX-License-Identifier: Apache-2.0
#include "harness/report_gitlab.hpp"

#include <fmt/format.h>

#include "conformance/digest.hpp"
#include "harness/aggregate.hpp"
#include "harness/json_pieces.hpp"
#include "harness/report_outcome.hpp"

namespace qkcts {
namespace {

constexpr std::size_t longest_description = 1000;

// A finding stands at a file of the repository. What was judged is the nearest to one, if it was given as such.
std::string location(const RunRecord& record) {
  const std::string& given = record.adapter.given;
  const bool relative = record.adapter.kind == AdapterKind::library && !given.empty() && given.front() != '/' &&
                        given.find("..") == std::string::npos && given.find('/') != std::string::npos;
  if (!relative) return record.corpus_suite;
  const std::string path = given.substr(0, given.find('?'));
  return path.rfind("./", 0) == 0 ? path.substr(2) : path;
}

Json entry(const RunRecord& record, const std::string& check, const std::string& place, std::string_view severity,
           const std::string& description) {
  // Neither figures nor digests: the same finding keeps its fingerprint from run to run.
  Sha256 fingerprint;
  for (const std::string& part : {record.description.name, record.corpus_suite, check, place})
    fingerprint.update_field(part);
  return {{"description", cut_text(description, longest_description)},
          {"check_name", check},
          {"fingerprint", fingerprint.finish()},
          {"severity", severity},
          {"location", {{"path", location(record)}, {"lines", {{"begin", 1}}}}}};
}

std::string_view severity_of(const Outcome& outcome) {
  if (outcome.kind == JunitElement::error) return "blocker";
  return violates(outcome.verdict) ? "critical" : "major";  // major: over an own limit alone
}

}  // namespace

void write_gitlab_code_quality(const RunRecord& record, const TextSink& sink) {
  write_json_list(sink, 0, [&](const JsonSink& item) {
    for_each_outcome(record, [&](const Outcome& outcome, const CaseResult*) {
      if (is_failing(outcome))
        item(entry(record, fmt::format("qkcts.{}", verdict_name(outcome.verdict)), outcome.name, severity_of(outcome),
                   fmt::format("{}: {}", outcome.name, outcome.message)));
    });
    for (const StageAggregate& line : aggregate_stages(record))
      for (const auto& [warning, cases] : notable_warnings(line))
        item(entry(record, fmt::format("qkcts.{}", warning_name(warning)), std::string(stage_name(line.stage)), "info",
                   fmt::format("legal but unusual: {} in {} cases: {}", stage_name(line.stage), cases,
                               warning_meaning(warning))));
  });
  sink("\n");
}

std::string gitlab_code_quality(const RunRecord& record) {
  return text_of([&](const TextSink& sink) { write_gitlab_code_quality(record, sink); });
}

}  // namespace qkcts
