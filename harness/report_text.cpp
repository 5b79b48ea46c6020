// SPDX-License-Identifier: Apache-2.0
#include "harness/report_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "harness/aggregate.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

std::string clipped(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

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

// "62 relations: 60 pass, 2 skipped"
std::string relations_line(const RunRecord& record, const RunSummary& summary) {
  std::string line = counted(record.relations.size(), "relation", "relations") + ":";
  for (auto entry = summary.relations.rbegin(); entry != summary.relations.rend(); ++entry)
    line += fmt::format(" {} {}{}", entry->second, verdict_name(entry->first),
                        std::next(entry) == summary.relations.rend() ? "\n" : ",");
  return line;
}

}  // namespace

std::string result_table(const RunRecord& record) {
  const std::vector<StageAggregate> lines = aggregate_briefly(record);
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
         "max ulp: |got - exact| / ulp(exact); large where the exact value is near 0.\n";
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
  const int code = exit_code(record);
  const auto missing = summary.cases.find(Verdict::not_run);
  if (code == 1 && missing != summary.cases.end()) {
    text += counted(static_cast<std::uint64_t>(missing->second), "case was", "cases were") +
            " not run: nothing is known of them.\n";
  }
  switch (code) {
    case 0:
      return text + (record.judging == Judging::relations_alone
                         ? "CONFORMING to the relations; no value was compared with a golden one.\n"
                         : "CONFORMING: every judged element lies within its proven budget.\n");
    case 1:
      return text + (over_own_limits_alone(record) ? "OVER YOUR OWN LIMITS, within every proven budget.\n"
                                                   : "NOT CONFORMING.\n");
    case 5:
      return text + fmt::format("NOTHING WAS RUN{}.\n", record.unavailable.empty() ? "" : ": " + record.unavailable);
    default:
      return text +
             fmt::format("INTERRUPTED by signal {}; what was judged until then is above.\n", record.interrupted_by);
  }
}

}  // namespace qkcts
