// SPDX-License-Identifier: Apache-2.0
#include "harness/report_outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/failure_text.hpp"
#include "harness/relation_report.hpp"
#include "harness/utf8_text.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

// "output[b0 h0 t0 c1]: got 3.75, exact 3.5, error/Delta 2.6e+05"
std::string worst_line(const CaseResult& result, const StageResult& stage) {
  const StageJudgement& j = *stage.judgement;
  if (!j.worst || j.counts.failed == 0) return fmt::format("{} {}", stage_name(stage.stage), stage.detail);
  const Format format = stage_format(stage.stage, result.format);
  return fmt::format("{}[{}]: got {}, exact {}, error/Delta {}, {} of its elements fail", stage_name(stage.stage),
                     coordinate_text(stage.stage, result.shape, j.worst->place),
                     decimal_text(format, j.worst->got_value), decimal_text(format, j.worst->exact.hi),
                     short_text(j.worst->ratio), j.counts.failed);
}

std::string reason(const CaseResult& result) {
  if (!result.detail.empty()) return result.detail;
  for (const StageResult& stage : result.stages) {
    if (stage.verdict != result.verdict) continue;
    if (stage.judgement && violates(stage.verdict)) return worst_line(result, stage);
    return fmt::format("{} {}", stage_name(stage.stage), stage.detail);
  }
  return {};
}

// What the case matches instead, if that was asked for and found.
std::string diagnosed(const RunRecord& record, const CaseResult& result) {
  const CaseDiagnosis* const diagnosis = diagnosis_of(record, result.slug);
  const std::string line = diagnosis == nullptr ? std::string() : diagnosis_line(*diagnosis);
  return line.empty() ? reason(result) : reason(result) + "; " + line;
}

bool over_limits(const CaseResult& result) {
  return std::any_of(result.stages.begin(), result.stages.end(), [](const StageResult& s) {
    return s.judgement && s.judgement->limit && s.judgement->limit->violations > 0;
  });
}

Outcome case_outcome(const RunRecord& record, const CaseResult& result) {
  Outcome outcome = {result.slug, result.contract, result.verdict, row(result.verdict).junit, result.seconds, "", ""};
  if (over_limits(result) && outcome.kind != JunitElement::error) outcome.kind = JunitElement::failure;
  if (outcome.kind == JunitElement::passed) return outcome;
  outcome.message = violates(result.verdict) || outcome.kind == JunitElement::skipped
                        ? fmt::format("{}: {}", verdict_name(result.verdict), diagnosed(record, result))
                        : std::string("over the user's own limit");
  if (is_failing(outcome)) outcome.text = failure_text(record, result);
  return outcome;
}

Outcome relation_outcome(const RunRecord& record, const RelationResult& result) {
  Outcome outcome = {result.slug, "relations", result.verdict, row(result.verdict).junit, 0, "", ""};
  if (outcome.kind == JunitElement::passed) return outcome;
  outcome.message = fmt::format("{}: {}", verdict_name(result.verdict),
                                result.breach ? std::string(row(result.kind).violation) : result.detail);
  if (is_failing(outcome)) outcome.text = relation_failure_text(record, result);
  return outcome;
}

}  // namespace

void for_each_outcome(const RunRecord& record, const TakeOutcome& take) {
  for (const CaseResult& result : record.cases) take(case_outcome(record, result), &result);
  for (const RelationResult& result : record.relations) take(relation_outcome(record, result), nullptr);
  std::size_t number = 0;
  for (const std::string& line : unmet_demands(record))
    take({fmt::format("demand {}", ++number), "demands", Verdict::fail, JunitElement::failure, 0,
          fmt::format("{}: {}", verdict_name(Verdict::fail), line), line + "\n"},
         nullptr);
}

std::size_t number_of_outcomes(const RunRecord& record) {
  return record.cases.size() + record.relations.size() + unmet_demands(record).size();
}

bool is_failing(const Outcome& outcome) {
  return outcome.kind == JunitElement::failure || outcome.kind == JunitElement::error;
}

std::string_view run_word(const RunRecord& record) {
  if (record.planned_cases) return "Partial: the run did not end";
  switch (exit_code(record)) {
    case 0:
      return "Conforming";
    case 1:
      return over_own_limits_alone(record) ? "Within every proven budget, over own limits" : "Not conforming";
    case 5:
      return "Nothing was run";
    default:
      return "Interrupted";
  }
}

std::string case_counts_line(const RunRecord& record) {
  const RunSummary summary = summarise(record);
  std::string line = counted(record.cases.size(), "case", "cases");
  std::string_view separator = ": ";
  for (auto entry = summary.cases.rbegin(); entry != summary.cases.rend(); ++entry) {
    line += fmt::format("{}{} {}", separator, entry->second, verdict_name(entry->first));
    separator = ", ";
  }
  return line;
}

std::string cut_text(const std::string& text, std::size_t length) {
  if (text.size() <= length) return text;
  constexpr std::string_view mark = "\n[cut]";
  std::size_t end = length > mark.size() ? length - mark.size() : 0;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not within a character
  return text.substr(0, end) + std::string(mark);
}

}  // namespace qkcts
