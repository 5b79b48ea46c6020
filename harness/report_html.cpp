// SPDX-License-Identifier: Apache-2.0
#include "harness/report_html.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "conformance/clause.hpp"
#include "conformance/contract_field.hpp"
#include "harness/aggregate.hpp"
#include "harness/failure_text.hpp"
#include "harness/html_chart.hpp"
#include "harness/html_style.hpp"
#include "harness/html_table.hpp"
#include "harness/relation_report.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

constexpr std::size_t failures_shown = 200;
constexpr std::size_t worst_shown = 10;

std::string badge(Verdict verdict) {
  const std::string_view kind = violates(verdict) ? "bad" : verdict == Verdict::pass ? "good" : "dim";
  return fmt::format("<span class=\"badge {}\">{}</span>", kind, html_escaped(verdict_name(verdict)));
}

std::string shape_line(const qkcts_shape& s) {
  return fmt::format("B{} H{}/{} L{}x{} D{} Dv{}", s.batch, s.q_heads, s.kv_heads, s.q_len, s.k_len, s.head_dim,
                     s.v_head_dim);
}

std::string head(const RunRecord& record) {
  const int code = exit_code(record);
  const std::string_view word = code == 0                       ? "Conforming"
                                : over_own_limits_alone(record) ? "Within every proven budget, over own limits"
                                : code == 1                     ? "Not conforming"
                                : code == 5                     ? "Nothing was run"
                                                                : "Interrupted";
  const std::string_view kind = code == 0 ? "good" : code == 1 ? "bad" : "dim";
  std::set<std::string> profiles, formats;
  for (const CaseResult& result : record.cases) {
    if (!result.profile.empty()) profiles.insert(result.profile);
    formats.insert(std::string(parameters(result.format).name));
  }
  std::string counts;
  const RunSummary summary = summarise(record);
  for (auto entry = summary.cases.rbegin(); entry != summary.cases.rend(); ++entry) {
    counts += fmt::format("<li>{} {}</li>", entry->second, badge(entry->first));
  }
  const std::string limits =
      summary.limit_violations == 0
          ? std::string()
          : fmt::format("<p>{} case stages are over the user's own limits.</p>\n", summary.limit_violations);
  const std::string unavailable = record.unavailable.empty()
                                      ? std::string()
                                      : fmt::format("<p>Not available: {}</p>\n", html_escaped(record.unavailable));
  return fmt::format(
      "<header><h1>{} {}</h1>\n<p class=\"banner {}\">{}</p>\n<ul class=\"counts\">{}</ul>\n{}{}"
      "<p>Judged on corpus <b>{}</b> (<code>{}</code>), formats {}, by profile {}. A pass says that every judged "
      "element lies "
      "within a proven error budget of the exact value; it says nothing of speed, training or other "
      "layers.</p></header>\n",
      html_escaped(record.description.name), html_escaped(record.description.version), kind, word, counts, limits,
      unavailable, html_escaped(record.corpus_suite), html_escaped(record.corpus_digest.substr(0, 16)),
      formats.empty() ? "none" : fmt::format("{}", fmt::join(formats, ", ")),
      profiles.empty() ? "none" : html_escaped(fmt::format("{}", fmt::join(profiles, ", "))));
}

std::string stage_table(const RunRecord& record) {
  const std::vector<StageAggregate> lines = aggregate(record);
  const bool limits = std::any_of(lines.begin(), lines.end(), [](const StageAggregate& l) { return l.limits > 0; });
  constexpr CellKind number = CellKind::number;
  std::vector<HtmlColumn> columns = {
      {"contract"},           {"stage"},          {"cases", number},   {"judged", number},
      {"mistrusted", number}, {"domain", number}, {"max ulp", number}, {"max error/&#916;", number}};
  if (limits) columns.push_back({"own limit"});
  columns.push_back({"verdict"});
  std::vector<std::vector<std::string>> rows;
  for (const StageAggregate& line : lines) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {html_escaped(line.contract),
           std::string(stage_name(line.stage)),
           std::to_string(line.cases),
           std::to_string(line.counts.judged + line.counts.exact),
           std::to_string(line.counts.mistrusted),
           std::to_string(line.counts.domain),
           line.cases > 0 ? short_text(line.max_ulp) : "",
           line.cases > 0 ? short_text(line.max_ratio) : ""};
    if (limits) row.emplace_back(line.limits == 0 ? "" : line.limits_exceeded > 0 ? "over" : "within");
    std::string verdicts = badge(line.verdict);
    for (auto entry = line.verdicts.rbegin(); line.verdicts.size() > 1 && entry != line.verdicts.rend(); ++entry)
      verdicts += fmt::format(" {} {}", entry->second, html_escaped(verdict_name(entry->first)));
    row.push_back(verdicts);
  }
  return html_table("Results by contract and stage", columns, rows);
}

struct WorstEntry {
  const CaseResult* result;
  const StageResult* stage;
};

std::vector<WorstEntry> worst_entries(const RunRecord& record) {
  std::vector<WorstEntry> entries;
  for (const CaseResult& result : record.cases) {
    for (const StageResult& stage : result.stages) {
      if (stage.judgement && stage.judgement->worst) entries.push_back({&result, &stage});
    }
  }
  const auto ratio = [](const WorstEntry& e) { return e.stage->judgement->max_ratio; };
  std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) { return ratio(a) > ratio(b); });
  entries.resize(std::min(entries.size(), worst_shown));
  return entries;
}

std::string worst_list(const RunRecord& record) {
  std::string items;
  for (const WorstEntry& entry : worst_entries(record)) {
    const JudgedElement& worst = *entry.stage->judgement->worst;
    const CaseResult& result = *entry.result;
    const Format format = stage_format(entry.stage->stage, result.format);
    items += fmt::format(
        "<li><b>{}</b> {} [{}] {}<br>got <code>{}</code> ({}), exact {}, {} ulp, error/&#916; "
        "{}\n<pre>{}\n{}</pre></li>\n",
        html_escaped(result.slug), stage_name(entry.stage->stage),
        coordinate_text(entry.stage->stage, result.shape, worst.place), badge(entry.stage->verdict),
        bits_text(format, worst.got), decimal_text(format, worst.got_value), exact_text(worst.exact),
        short_text(worst.ulps), short_text(worst.ratio),
        html_escaped(explain_command(record, result, entry.stage->stage, worst.place)),
        html_escaped(rerun_command(record, result)));
  }
  return items.empty() ? "<p>No element was measured.</p>\n" : "<ol>\n" + items + "</ol>\n";
}

std::string failure_list(const RunRecord& record) {
  std::string list;
  std::size_t shown = 0, all = 0;
  for (const CaseResult& result : record.cases) {
    const std::string text = failure_text(record, result);
    if (text.empty()) continue;
    ++all;
    if (shown == failures_shown) continue;
    ++shown;
    list += fmt::format("<pre class=\"failure\" tabindex=\"0\">{}</pre>\n", html_escaped(text));
  }
  if (all == 0) return {};
  const std::string cut =
      shown == all ? "" : fmt::format("<p>The first {} of {}; run.json holds all.</p>\n", shown, all);
  return fmt::format("<section id=\"failures\"><h2>Failures ({})</h2>\n{}{}</section>\n", all, cut, list);
}

std::string diagnosis_section(const RunRecord& record) {
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

double case_ratio(const CaseResult& result) {
  double largest = 0;
  for (const StageResult& stage : result.stages) {
    if (stage.judgement) largest = std::max(largest, stage.judgement->max_ratio);
  }
  return largest;
}

std::string case_table(const RunRecord& record) {
  constexpr CellKind number = CellKind::number;
  std::vector<std::vector<std::string>> rows;
  for (const CaseResult& result : record.cases) {
    rows.push_back({html_escaped(result.slug), html_escaped(result.family), std::string(parameters(result.format).name),
                    shape_line(result.shape), html_escaped(result.profile), html_escaped(result.implementation),
                    fmt::format("{:.2f}", result.seconds * 1000), short_text(case_ratio(result)),
                    fmt::format("{} {}", badge(result.verdict), html_escaped(result.detail))});
  }
  return html_table("Cases",
                    {{"case"},
                     {"family"},
                     {"format"},
                     {"shape"},
                     {"profile"},
                     {"implementation"},
                     {"ms", number},
                     {"max error/&#916;", number},
                     {"verdict"}},
                    rows);
}

std::string contract_details(const RunRecord& record) {
  std::string text;
  for (const auto& [name, json] : record.contracts) {
    const Contract contract = contract_from_json(json, name);
    std::vector<std::vector<std::string>> rows;
    for (const FieldValue& field : contract_field_values(contract.terms)) {
      const Clause* const clause = find_clause(field.clause);
      rows.push_back({std::string(field.clause), html_escaped(field.path),
                      fmt::format("<code>{}</code>", html_escaped(field.json)),
                      clause == nullptr ? std::string() : html_escaped(clause->title)});
    }
    std::string sources;
    for (const std::string& source : contract.sources) sources += fmt::format("<li>{}</li>", html_escaped(source));
    text += fmt::format(
        "<details><summary>{0}</summary><p>{1}</p>\n<ul>{2}</ul>\n{3}</details>\n", html_escaped(name),
        html_escaped(contract.title), sources,
        html_table("Clauses of " + html_escaped(name), {{"clause"}, {"field"}, {"value"}, {"meaning"}}, rows));
  }
  return text;
}

std::string circumstances(const RunRecord& record) {
  std::string command;
  for (const std::string& word : record.command) command += (command.empty() ? "" : " ") + shell_quoted(word);
  const Machine& m = record.machine;
  return fmt::format(
      "<dl><dt>Command</dt><dd><code>{}</code></dd><dt>Started</dt><dd>{}, took {:.1f} s</dd>"
      "<dt>Adapter</dt><dd>{}<br>SHA-256 <code>{}</code></dd><dt>Machine</dt><dd>{} {} on {}, {} ({} logical "
      "processors)</dd>"
      "<dt>Corpus</dt><dd>{}, digest <code>{}</code>, made by {}</dd><dt>Suite version</dt><dd>{}</dd></dl>\n"
      "<details><summary>What the adapter says of itself</summary><pre tabindex=\"0\">{}</pre></details>\n",
      html_escaped(command), html_escaped(record.started), record.seconds, html_escaped(record.adapter.path),
      record.adapter_sha256, html_escaped(m.system), html_escaped(m.release), html_escaped(m.architecture),
      html_escaped(m.processor), m.logical_processors, html_escaped(record.corpus_path),
      html_escaped(record.corpus_digest), html_escaped(record.generator_version), html_escaped(record.suite_version),
      html_escaped(parse_json(record.description.text, "describe()").dump(2)));
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string report_html(const RunRecord& record) {
  const std::string title = fmt::format("{}: conformance report", html_escaped(record.description.name));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n</head>\n"
      "<body>\n<a class=\"skip\" href=\"#results\">To the results</a>\n{}<main>\n{}{}"
      "<section><h2>Error over budget</h2>\n{}</section>\n"
      "<section id=\"results\"><h2>Results by contract and stage</h2>\n{}</section>\n{}"
      "<section><h2>Errors in ulp</h2>\n<p>Elements per class; the upper edge of a class is written below it, heights "
      "grow with the "
      "square root.</p>\n{}</section>\n"
      "<section><h2>Nearest to the budget, or farthest beyond</h2>\n{}</section>\n"
      "<section><h2>Cases</h2>\n<details><summary>All cases: {}</summary>\n{}</details></section>\n"
      "<section><h2>Contracts, clause by clause</h2>\n{}</section>\n"
      "<section><h2>Circumstances</h2>\n{}</section>\n</main>\n</body>\n</html>\n",
      title, html_style, head(record), failure_list(record), diagnosis_section(record), ratio_chart(record),
      stage_table(record), relation_html(record), ulp_histograms(record), worst_list(record), record.cases.size(),
      case_table(record), contract_details(record), circumstances(record));
}

}  // namespace qkcts
