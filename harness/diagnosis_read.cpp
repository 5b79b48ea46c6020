// SPDX-License-Identifier: Apache-2.0
// The diagnosis of a run.json.
#include "harness/diagnosis.hpp"
#include "harness/record_values.hpp"

namespace qkcts {
namespace {

Finding finding_from(const JsonAt& at) {
  for (const Finding finding :
       {Finding::matched, Finding::ambiguous, Finding::unmatched, Finding::no_values, Finding::passes})
    if (finding_name(finding) == at.text()) return finding;
  at.refuse("is no finding");
}

Suspect suspect_from(const JsonAt& at) {
  Suspect suspect;
  suspect.name = at["name"].text();
  for (const JsonAt& change : at["changes"].items())
    suspect.changes.push_back(
        {change["clause"].text(), change["field"].text(), change["asked"].text(), change["computed"].text()});
  suspect.judged = at["judged"].get<std::uint64_t>();
  suspect.explained = at["explained"].get<std::uint64_t>();
  suspect.valueless = at["valueless"].get<std::uint64_t>();
  suspect.worst = figure_from(at["worst_error_over_delta"]);
  suspect.further_cases = at["further_cases"].get<int>();
  for (const JsonAt& known : at["known_as"].items())
    suspect.known_as.push_back({known["id"].text(), known["clause"].text(), known["text"].text()});
  suspect.by_kernel = at["by_kernel"].get<bool>();
  suspect.same_values = at["same_values"].get<bool>();
  return suspect;
}

CaseDiagnosis case_diagnosis_from(const JsonAt& at) {
  CaseDiagnosis d;
  d.slug = at["case"].text();
  d.contract = at["contract"].text();
  d.finding = finding_from(at["finding"]);
  d.detail = at["detail"].text();
  const JsonAt divergence = at["divergence"];
  if (!divergence["stage"].is_null()) d.divergence.stage = stage_from(divergence["stage"]);
  d.divergence.detail = divergence["detail"].text();
  d.failing = at["failing"].get<std::uint64_t>();
  d.judged = at["judged"].get<std::uint64_t>();
  d.tried = at["tried"].get<int>();
  d.cut = at["cut"].get<bool>();
  for (const JsonAt& suspect : at["matches"].items()) d.matches.push_back(suspect_from(suspect));
  for (const JsonAt& suspect : at["nearest"].items()) d.nearest.push_back(suspect_from(suspect));
  const JsonAt small = at["reproducer"];
  if (!small.is_null())
    d.reproducer = Reproducer{shape_from(small["shape"]), small["tries"].get<int>(), small["bundle"].text(),
                              small["command"].text()};
  d.seconds = at["seconds"].get<double>();
  return d;
}

}  // namespace

Diagnosis diagnosis_from_json(const JsonAt& at) {
  Diagnosis diagnosis;
  diagnosis.failing_cases = at["failing_cases"].get<int>();
  diagnosis.warnings = at["warnings"].get<std::vector<std::string>>();
  for (const JsonAt& one : at["cases"].items()) diagnosis.cases.push_back(case_diagnosis_from(one));
  return diagnosis;
}

}  // namespace qkcts
