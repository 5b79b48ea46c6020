// SPDX-License-Identifier: Apache-2.0
#include "harness/html_failures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/failure_text.hpp"
#include "harness/report_html.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

constexpr std::size_t failures_shown = 200;
constexpr std::size_t failures_open = 20;  // of these, the others behind one line
constexpr std::size_t worst_shown = 10;

struct WorstEntry {
  double ratio = 0;
  std::string text;
};

std::string worst_item(const RunRecord& record, const CaseResult& result, const StageResult& stage) {
  const JudgedElement& worst = *stage.judgement->worst;
  const Format format = stage_format(stage.stage, result.format);
  return fmt::format(
      "<li><b>{}</b> {} [{}] {}<br>got <code>{}</code> ({}), exact {}, {} ulp, error/&#916; "
      "{}\n<pre>{}\n{}</pre></li>\n",
      html_escaped(result.slug), stage_name(stage.stage), coordinate_text(stage.stage, result.shape, worst.place),
      html_badge(stage.verdict), bits_text(format, worst.got), decimal_text(format, worst.got_value),
      exact_text(worst.exact), short_text(worst.ulps), short_text(worst.ratio),
      html_escaped(explain_command(record, result, stage.stage, worst.place)),
      html_escaped(rerun_command(record, result)));
}

// Of equal ones the first.
std::vector<WorstEntry> worst_entries(const RunRecord& record) {
  std::vector<WorstEntry> entries;
  for (const CaseResult& result : record.cases) {
    for (const StageResult& stage : result.stages) {
      if (!stage.judgement || !stage.judgement->worst) continue;
      const double ratio = stage.judgement->max_ratio;
      const auto place = std::find_if(entries.begin(), entries.end(),
                                      [ratio](const WorstEntry& entry) { return ratio > entry.ratio; });
      if (entries.size() == worst_shown && place == entries.end()) continue;
      entries.insert(place, {ratio, worst_item(record, result, stage)});
      if (entries.size() > worst_shown) entries.pop_back();
    }
  }
  return entries;
}

}  // namespace

std::string failures_html(const RunRecord& record) {
  std::string open, behind;
  std::size_t shown = 0, all = 0;
  for (const CaseResult& result : record.cases) {
    const std::string text = failure_text(record, result);
    if (text.empty()) continue;
    ++all;
    if (shown == failures_shown) continue;
    (++shown <= failures_open ? open : behind) +=
        fmt::format("<pre class=\"failure\" tabindex=\"0\">{}</pre>\n", html_escaped(text));
  }
  if (all == 0) return {};
  const std::string cut =
      shown == all ? "" : fmt::format("<p>The first {} of {}; {} holds all.</p>\n", shown, all, record_file(record));
  if (!behind.empty())
    behind = fmt::format("<details><summary>{} more</summary>\n{}</details>\n", shown - failures_open, behind);
  return fmt::format("<section id=\"failures\"><h2>Failures ({})</h2>\n{}{}{}</section>\n", all, cut, open, behind);
}

std::string diagnosis_html(const RunRecord& record) {
  if (!record.diagnosis) return {};
  std::string list, warnings;
  for (const std::string& warning : record.diagnosis->warnings)
    warnings += fmt::format("<p>Warning: {}</p>\n", html_escaped(warning));
  for (const CaseDiagnosis& one : record.diagnosis->cases)
    list += fmt::format("<pre class=\"failure\" tabindex=\"0\">{}</pre>\n", html_escaped(diagnosis_text(one)));
  return fmt::format(
      "<section id=\"diagnosis\"><h2>What failing cases compute instead</h2>\n<p>{}</p>\n{}{}</section>\n",
      html_escaped(diagnosis_extent(*record.diagnosis)), warnings, list);
}

std::string worst_elements_html(const RunRecord& record) {
  std::string items;
  for (const WorstEntry& entry : worst_entries(record)) items += entry.text;
  return items.empty() ? "<p>No element was measured.</p>\n" : "<ol>\n" + items + "</ol>\n";
}

}  // namespace qkcts
