// SPDX-License-Identifier: Apache-2.0
#include "harness/report_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "harness/aggregate.hpp"
#include "harness/relation_report.hpp"
#include "harness/report_outcome.hpp"
#include "harness/value_text.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts {
namespace {

constexpr int failures_in_full = 10;

std::string rule() {
  return std::string(80, '-') + "\n";
}

// Why cases were not judged, one line per verdict and reason.
std::string reasons(const RunRecord& record) {
  std::map<std::pair<Verdict, std::string>, int> counts;
  for (const CaseResult& result : record.cases) {
    if (row(result.verdict).effect == Effect::neutral) ++counts[{result.verdict, result.detail}];
  }
  std::string text;
  for (const auto& [key, count] : counts) {
    text += clipped(fmt::format("  {} {}: {}", count, verdict_name(key.first), key.second), 80) + "\n";
  }
  return text;
}

// "  of these: 1 mistrusted, 13 pass", where the cases of a row came to different ends: the gravest hides none of them.
std::string mixed_verdicts(const StageAggregate& line) {
  if (line.verdicts.size() < 2) return {};
  std::string text, row = "  of these:";
  for (auto entry = line.verdicts.rbegin(); entry != line.verdicts.rend(); ++entry) {
    const std::string part = fmt::format(" {} {}{}", entry->second, verdict_name(entry->first),
                                         std::next(entry) == line.verdicts.rend() ? "" : ",");
    if (row.size() + part.size() > 80) {
      text += row + "\n";
      row = "           ";
    }
    row += part;
  }
  return text + row + "\n";
}

std::string count_text(int count) {
  return count > 0 ? std::to_string(count) : "-";
}

// Contracts in which something violates before the others, the lines of each together.
std::vector<StageAggregate> failures_first(std::vector<StageAggregate> lines) {
  std::set<std::string> violated;
  for (const StageAggregate& line : lines)
    if (violates(line.verdict)) violated.insert(line.contract);
  std::stable_partition(lines.begin(), lines.end(),
                        [&](const StageAggregate& line) { return violated.contains(line.contract); });
  return lines;
}

// Where calls of a case came out differently; whether that is a failure is said by the verdicts.
std::string spread_line(const RunRecord& record) {
  std::uint64_t stages = 0;
  double most = 0;
  for (const CaseResult& result : record.cases)
    for (const StageResult& stage : result.stages) {
      if (!stage.spread_ulp) continue;
      ++stages;
      most = std::max(most, *stage.spread_ulp);
    }
  if (stages == 0) return {};
  return fmt::format("{} other bits in some calls, at most {} ulp apart.\n",
                     counted(stages, "case stage had", "case stages had"), short_text(most));
}

// "62 relations: 60 pass, 2 skipped"
std::string relations_line(const RunRecord& record, const RunSummary& summary) {
  std::string line = counted(record.relations.size(), "relation", "relations") + ":";
  for (auto entry = summary.relations.rbegin(); entry != summary.relations.rend(); ++entry)
    line += fmt::format(" {} {}{}", entry->second, verdict_name(entry->first),
                        std::next(entry) == summary.relations.rend() ? "\n" : ",");
  return line;
}

}  // namespace

std::string stage_table(const RunRecord& record) {
  const std::vector<StageAggregate> lines = aggregate_stages(record);
  std::string text = fmt::format("{:<9}{:>6}{:>9}{:>10}{:>11}{:>12}  {}\n", "stage", "cases", "max ulp", "max err/D",
                                 "plain ulp", "plain err/D", "verdict");
  text += rule();
  std::string warnings;
  for (const StageAggregate& line : lines) {
    const bool judged = line.cases > 0, plain = line.plain_cases > 0;
    text += fmt::format("{:<9}{:>6}{:>9}{:>10}{:>11}{:>12}  {}\n", stage_name(line.stage), count_text(line.cases),
                        judged ? short_text(line.max_ulp) : "-", judged ? short_text(line.max_ratio) : "-",
                        plain ? short_text(line.plain_max_ulp) : "-", plain ? short_text(line.plain_max_ratio) : "-",
                        verdict_name(line.verdict)) +
            mixed_verdicts(line);
    for (const auto& [warning, cases] : notable_warnings(line))
      warnings +=
          clipped(fmt::format("legal but unusual: {} in {}: {}", stage_name(line.stage),
                              counted(static_cast<std::uint64_t>(cases), "case", "cases"), warning_meaning(warning)),
                  80) +
          "\n";
  }
  return text + rule() + warnings;
}

std::string family_table(const RunRecord& record) {
  std::string text =
      fmt::format("{:<21}{:>6}{:>9}{:>10}  {:<9}{}\n", "family", "cases", "max ulp", "max err/D", "in", "verdicts");
  text += rule();
  for (const FamilyAggregate& line : aggregate_families(record)) {
    int cases = 0;
    std::string counts;
    for (auto entry = line.verdicts.rbegin(); entry != line.verdicts.rend(); ++entry) {
      cases += entry->second;
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", entry->second, verdict_name(entry->first));
    }
    if (line.verdicts.size() == 1) counts = verdict_name(line.verdict);
    text +=
        fmt::format("{:<21}{:>6}{:>9}{:>10}  {:<9}{}\n", clipped(line.family, 20), cases,
                    line.measured ? short_text(line.max_ulp) : "-", line.measured ? short_text(line.max_ratio) : "-",
                    line.measured ? stage_name(line.worst_stage) : "-", clipped(counts, 23));
  }
  return text + rule();
}

std::string run_headline(const RunRecord& record) {
  return wrapped("",
                 fmt::format("{} {} ({}) on {}, suite {} {:.12}", record.description.name, record.description.version,
                             record.adapter.given, record.corpus_path, record.corpus_suite, record.corpus_digest),
                 2);
}

std::string run_tables(const RunRecord& record) {
  return stage_table(record) + "\n" + family_table(record) + "\n" + result_table(record);
}

std::string run_text(const RunRecord& record) {
  std::string text = run_headline(record) + "\n";
  int shown = 0;
  for_each_outcome(record, [&](const Outcome& outcome, const CaseResult*) {
    if (!is_failing(outcome)) return;
    text += ++shown <= failures_in_full ? outcome.text + "\n"
                                        : fmt::format("FAIL  {}  {}\n", outcome.name, verdict_name(outcome.verdict));
  });
  if (shown > 0) text += "\n";
  if (!record.cases.empty() && record.judging == Judging::values_and_relations) text += run_tables(record) + "\n";
  if (!record.relations.empty()) text += relation_table_text(record) + "\n";
  if (record.diagnosis) text += diagnosis_text(*record.diagnosis);
  return text + summary_text(record);
}

std::string result_table(const RunRecord& record) {
  const std::vector<StageAggregate> lines = failures_first(aggregate_briefly(record));
  const bool limits = std::any_of(lines.begin(), lines.end(), [](const StageAggregate& l) { return l.limits > 0; });
  const std::size_t name_width = limits ? 24 : 31;
  std::string text = fmt::format("{:<{}} {:<7}{:>6}{:>9}{:>10}  {}{}\n", "contract", name_width, "stage", "cases",
                                 "max ulp", "max err/D", limits ? "limit   " : "", "verdict");
  text += rule();
  std::string_view previous;
  for (const StageAggregate& line : lines) {
    const std::string limit = !limits                    ? ""
                              : line.limits == 0         ? "-       "
                              : line.limits_exceeded > 0 ? "over    "
                                                         : "within  ";
    const std::string name = line.contract == previous ? "" : clipped(line.contract, name_width);
    previous = line.contract;
    const bool judged = line.cases > 0;
    text += fmt::format("{:<{}} {:<7}{:>6}{:>9}{:>10}  {}{}\n", name, name_width, stage_name(line.stage),
                        judged ? std::to_string(line.cases) : "-", judged ? short_text(line.max_ulp) : "-",
                        judged ? short_text(line.max_ratio) : "-", limit, verdict_name(line.verdict)) +
            mixed_verdicts(line);
  }
  return text + rule() +
         "err/D: |got - exact| / Delta, the proven budget of the profile; above 1 fails.\n"
         "max ulp: |got - exact| / ulp(exact); large where the exact value is near 0.\n" +
         (record.plain ? "plain: an unfused evaluation that stores each stage in the format of the case.\n" : "");
}

std::string summary_text(const RunRecord& record) {
  const RunSummary summary = summarise(record);
  std::string text, line = counted(record.cases.size(), "case", "cases") + (record.cases.empty() ? "" : ":");
  for (auto entry = summary.cases.rbegin(); entry != summary.cases.rend(); ++entry) {
    const bool last = std::next(entry) == summary.cases.rend();
    const std::string part = fmt::format(" {} {}{}", entry->second, verdict_name(entry->first), last ? "" : ",");
    if (line.size() + part.size() > 80) {
      text += line + "\n";
      line = "  ";
    }
    line += part;
  }
  text += line + "\n" + reasons(record);
  if (!record.relations.empty()) text += relations_line(record, summary);
  if (summary.limit_violations > 0) {
    text += counted(static_cast<std::uint64_t>(summary.limit_violations), "case stage is", "case stages are") +
            " over your own limits.\n";
  }
  text += spread_line(record);
  for (const std::string& demand : unmet_demands(record)) text += wrapped("Not as asked: ", demand + ".", 2);
  if (record.planned_cases) return text + "PARTIAL: the run did not end; what was judged until then is above.\n";
  const int code = exit_code(record);
  const auto missing = summary.cases.find(Verdict::not_run);
  if (code == 1 && missing != summary.cases.end()) {
    text += counted(static_cast<std::uint64_t>(missing->second), "case was", "cases were") +
            " not run: nothing is known of them.\n";
  }
  switch (code) {
    case 0:
      if (!summary.cases.contains(Verdict::pass) && !summary.relations.contains(Verdict::pass))
        return text + "NOTHING WAS RUN, as --allow-not-run admits; nothing is known of this adapter.\n";
      return text + (record.judging == Judging::relations_alone
                         ? "CONFORMING to the relations; no value was compared with a golden one.\n"
                         : "CONFORMING: every judged element lies within its proven budget.\n");
    case 1:
      return text + (over_own_limits_alone(record) ? "OVER YOUR OWN LIMITS, within every proven budget.\n"
                                                   : "NOT CONFORMING.\n");
    case 5:
      return text + (record.unavailable.empty() ? "NOTHING WAS RUN.\n"
                                                : wrapped("NOTHING WAS RUN: ", record.unavailable + ".", 2));
    default:
      return text +
             fmt::format("INTERRUPTED by signal {}; what was judged until then is above.\n", record.interrupted_by);
  }
}

}  // namespace qkcts
