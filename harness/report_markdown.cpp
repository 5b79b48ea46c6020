// SPDX-License-Identifier: Apache-2.0
#include "harness/report_markdown.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/aggregate.hpp"
#include "harness/failure_text.hpp"
#include "harness/report_outcome.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
std::string markdown_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      result += ' ';
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      if (std::string_view("|`*_[]\\#>@").find(c) != std::string_view::npos) result += '\\';
      result += c;
    }
  }
  return result;
}

namespace {

constexpr std::size_t failures_in_full = 50;

// In a fence longer than any row of backticks in the text.
std::string fenced(const std::string& text) {
  std::size_t longest = 2, now = 0;
  for (const char c : text) {
    now = c == '`' ? now + 1 : 0;
    longest = std::max(longest, now);
  }
  const std::string fence(longest + 1, '`');
  return fmt::format("{0}text\n{1}{2}{0}\n", fence, text, text.empty() || text.back() != '\n' ? "\n" : "");
}

std::string head(const RunRecord& record) {
  std::string text =
      fmt::format("# {} {}: {}\n\n{} on corpus {} (`{:.16}`).\n", markdown_text(record.description.name),
                  markdown_text(record.description.version), run_word(record), markdown_text(case_counts_line(record)),
                  markdown_text(record.corpus_suite), record.corpus_digest);
  if (!record.unavailable.empty()) text += fmt::format("\nNot available: {}\n", markdown_text(record.unavailable));
  for (const std::string& demand : unmet_demands(record))
    text += fmt::format("\nNot as asked: {}\n", markdown_text(demand));
  return text;
}

std::string stage_rows(const RunRecord& record) {
  std::string text =
      "\n## By stage\n\n| stage | cases | max ulp | max error/Δ | plain max ulp | plain max error/Δ | verdict |\n"
      "|---|--:|--:|--:|--:|--:|---|\n";
  std::string warnings;
  for (const StageAggregate& line : aggregate_stages(record)) {
    const bool judged = line.cases > 0, plain = line.plain_cases > 0;
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", markdown_text(std::string(stage_name(line.stage))),
                        line.cases, judged ? short_text(line.max_ulp) : "", judged ? short_text(line.max_ratio) : "",
                        plain ? short_text(line.plain_max_ulp) : "", plain ? short_text(line.plain_max_ratio) : "",
                        markdown_text(std::string(verdict_name(line.verdict))));
    for (const auto& [warning, cases] : notable_warnings(line))
      warnings +=
          fmt::format("\nLegal but unusual: {} in {}: {}.\n", markdown_text(std::string(stage_name(line.stage))),
                      counted(static_cast<std::uint64_t>(cases), "case", "cases"), warning_meaning(warning));
  }
  if (record.plain) text += "\nPlain: an unfused evaluation that stores each stage in the format of the case.\n";
  return text + warnings;
}

std::string family_rows(const RunRecord& record) {
  std::string text = "\n## By family\n\n| family | verdicts | max ulp | max error/Δ | where |\n|---|---|--:|--:|---|\n";
  for (const FamilyAggregate& line : aggregate_families(record)) {
    std::string counts;
    for (auto entry = line.verdicts.rbegin(); entry != line.verdicts.rend(); ++entry)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", entry->second,
                            markdown_text(std::string(verdict_name(entry->first))));
    text += fmt::format("| {} | {} | {} | {} | {} |\n", markdown_text(line.family), counts,
                        line.measured ? short_text(line.max_ulp) : "", line.measured ? short_text(line.max_ratio) : "",
                        line.measured ? fmt::format("{} {}", markdown_text(line.worst_case),
                                                    markdown_text(std::string(stage_name(line.worst_stage))))
                                      : "");
  }
  return text;
}

std::string failures(const RunRecord& record, std::size_t room) {
  std::string text;
  std::size_t all = 0, shown = 0;
  for_each_outcome(record, [&](const Outcome& outcome, const CaseResult*) {
    if (!is_failing(outcome)) return;
    ++all;
    if (shown == failures_in_full) return;
    const std::string one =
        fmt::format("<details><summary>{}: {}</summary>\n\n{}\n</details>\n\n", markdown_text(outcome.name),
                    markdown_text(cut_text(outcome.message, 400)), fenced(cut_text(outcome.text, 20000)));
    if (shown + 1 != all || text.size() + one.size() > room) return;
    ++shown;
    text += one;
  });
  if (all == 0) return {};
  const std::string rest =
      shown == all ? "" : fmt::format("and {} more; {} holds all.\n", all - shown, record_file(record));
  return fmt::format("\n## Failures ({})\n\n{}{}", all, text, rest);
}

std::string circumstances(const RunRecord& record) {
  std::string command;
  for (const std::string& word : record.command) command += (command.empty() ? "" : " ") + shell_quoted(word);
  const Machine& m = record.machine;
  return fmt::format(
      "\n## Circumstances\n\n| | |\n|---|---|\n| started | {}, {:.1f} s |\n| machine | {} {}, {}, {} ({} logical "
      "processors) |\n| adapter SHA-256 | `{}` |\n| corpus digest | `{}` |\n| suite version | {} |\n\n{}",
      markdown_text(record.started), record.seconds, markdown_text(record.machine.system), markdown_text(m.release),
      markdown_text(m.architecture), markdown_text(m.processor), m.logical_processors, record.adapter_sha256,
      record.corpus_digest, markdown_text(record.suite_version), fenced(command));
}

}  // namespace

std::string report_markdown(const RunRecord& record, std::size_t longest) {
  const std::string end = stage_rows(record) + family_rows(record) + circumstances(record);
  const std::string begin = head(record);
  const std::size_t fixed = begin.size() + end.size() + 200;  // 200: what failures() says around them
  return begin + failures(record, longest > fixed ? longest - fixed : 0) + end;
}

}  // namespace qkcts
