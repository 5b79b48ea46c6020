// SPDX-License-Identifier: Apache-2.0
#include "harness/report_html.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>

#include "harness/aggregate.hpp"
#include "harness/failure_text.hpp"
#include "harness/html_chart.hpp"
#include "harness/html_contract.hpp"
#include "harness/html_failures.hpp"
#include "harness/html_heat.hpp"
#include "harness/html_style.hpp"
#include "harness/html_table.hpp"
#include "harness/relation_report.hpp"
#include "harness/report_outcome.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

constexpr std::size_t rows_shown = 1000;
constexpr std::size_t contracts_open = 20;  // where none is violated

std::string shape_line(const qkcts_shape& s) {
  return fmt::format("B{} H{}/{} L{}x{} D{} Dv{}", s.batch, s.q_heads, s.kv_heads, s.q_len, s.k_len, s.head_dim,
                     s.v_head_dim);
}

std::string head(const RunRecord& record) {
  const int code = exit_code(record);
  const std::string_view word = run_word(record);
  const std::string_view kind = code == 0 ? "good" : code == 1 ? "bad" : "dim";
  std::set<std::string> profiles, formats;
  for (const CaseResult& result : record.cases) {
    if (result.profile.empty()) continue;  // not judged, or by its relations alone
    profiles.insert(result.profile);
    formats.insert(std::string(parameters(result.format).name));
  }
  std::string counts;
  const RunSummary summary = summarise(record);
  for (auto entry = summary.cases.rbegin(); entry != summary.cases.rend(); ++entry) {
    counts += fmt::format("<li>{} {}</li>", entry->second, html_badge(entry->first));
  }
  const std::string limits =
      summary.limit_violations == 0
          ? std::string()
          : fmt::format("<p>{} case stages are over the user's own limits.</p>\n", summary.limit_violations);
  std::string demands;
  for (const std::string& demand : unmet_demands(record))
    demands += fmt::format("<p class=\"bad\">Not as asked: {}</p>\n", html_escaped(demand));
  const std::string unavailable = record.unavailable.empty()
                                      ? std::string()
                                      : fmt::format("<p>Not available: {}</p>\n", html_escaped(record.unavailable));
  return fmt::format(
      "<header><h1>{} {}</h1>\n<p class=\"banner {}\">{}</p>\n<ul class=\"counts\">{}</ul>\n{}{}{}"
      "<p>Judged on corpus <b>{}</b> (<code>{}</code>), formats {}, by profile {}. A pass says that every judged "
      "element lies "
      "within a proven error budget of the exact value; it says nothing of speed, training or other "
      "layers.</p></header>\n",
      html_escaped(record.description.name), html_escaped(record.description.version), kind, word, counts, limits,
      unavailable, demands, html_escaped(record.corpus_suite), html_escaped(record.corpus_digest.substr(0, 16)),
      formats.empty() ? "none" : fmt::format("{}", fmt::join(formats, ", ")),
      profiles.empty() ? "none" : html_escaped(fmt::format("{}", fmt::join(profiles, ", "))));
}

std::string contract_table(const std::vector<StageAggregate>& lines, std::string_view label) {
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
    std::string verdicts = html_badge(line.verdict);
    for (auto entry = line.verdicts.rbegin(); line.verdicts.size() > 1 && entry != line.verdicts.rend(); ++entry)
      verdicts += fmt::format(" {} {}", entry->second, html_escaped(verdict_name(entry->first)));
    row.push_back(verdicts);
  }
  return html_table(label, columns, rows);
}

// Contracts in which something violates stand open, the others behind one line.
std::string contract_tables(const RunRecord& record) {
  std::set<std::string> violated, all;
  std::vector<StageAggregate> lines = aggregate(record), others;
  for (const StageAggregate& line : lines) {
    all.insert(line.contract);
    if (violates(line.verdict)) violated.insert(line.contract);
  }
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(others),
               [&](const StageAggregate& line) { return !violated.contains(line.contract); });
  std::erase_if(lines, [&](const StageAggregate& line) { return !violated.contains(line.contract); });
  std::string text;
  if (!lines.empty())
    text += contract_table(lines, "Results by contract and stage, of contracts that something violates");
  if (others.empty()) return text;
  const std::string table = contract_table(others, "Results by contract and stage");
  const std::size_t rest = all.size() - violated.size();
  if (violated.empty() && rest <= contracts_open) return table;
  return text + fmt::format("<details><summary>{}, none of them violated</summary>\n{}</details>\n",
                            counted(rest, violated.empty() ? "contract" : "other contract",
                                    violated.empty() ? "contracts" : "other contracts"),
                            table);
}

// The figure, and in red what an infinite one means.
std::string figure_html(bool known, double value) {
  if (!known) return {};
  return std::isfinite(value) ? short_text(value) : std::string("&#8734;");
}

std::string all_stages_table(const RunRecord& record) {
  constexpr CellKind number = CellKind::number;
  std::vector<std::vector<std::string>> rows;
  std::string warnings;
  for (const StageAggregate& line : aggregate_stages(record)) {
    const bool judged = line.cases > 0, plain = line.plain_cases > 0;
    rows.push_back(
        {std::string(stage_name(line.stage)), std::to_string(line.cases), figure_html(judged, line.max_ratio),
         figure_html(plain, line.plain_max_ratio), figure_html(judged, line.max_ulp),
         figure_html(plain, line.plain_max_ulp), figure_html(judged, line.p99_ulp), figure_html(judged, line.mean_ulp),
         figure_html(judged && std::isfinite(line.mean_ulp), line.signed_mean_ulp),
         figure_html(judged && std::isfinite(line.mean_ulp), line.outward_mean_ulp), html_badge(line.verdict)});
    for (const auto& [warning, cases] : notable_warnings(line))
      warnings += fmt::format("<li>{} in {}: {}</li>\n", stage_name(line.stage),
                              counted(static_cast<std::uint64_t>(cases), "case", "cases"), warning_meaning(warning));
  }
  const std::string table = html_table("Results by stage",
                                       {{"stage"},
                                        {"cases", number},
                                        {"max error/&#916;", number},
                                        {"plain error/&#916;", number},
                                        {"max ulp", number},
                                        {"plain max ulp", number},
                                        {"p99 ulp", number},
                                        {"mean ulp", number},
                                        {"signed mean", number},
                                        {"outward mean", number},
                                        {"verdict"}},
                                       rows);
  return table + (warnings.empty() ? "" : "<p>Legal but unusual:</p><ul>\n" + warnings + "</ul>\n");
}

std::string family_rows(const RunRecord& record) {
  std::vector<std::vector<std::string>> rows;
  for (const FamilyAggregate& line : aggregate_families(record)) {
    std::string counts;
    for (auto entry = line.verdicts.rbegin(); entry != line.verdicts.rend(); ++entry)
      counts += fmt::format("{}{}&nbsp;{}", counts.empty() ? "" : ", ", entry->second, html_badge(entry->first));
    rows.push_back({html_escaped(line.family), figure_html(line.measured, line.max_ratio),
                    figure_html(line.measured, line.max_ulp),
                    line.measured ? fmt::format("{} {}", html_escaped(line.worst_case), stage_name(line.worst_stage))
                                  : std::string(),
                    counts});
  }
  return html_table(
      "Results by input family",
      {{"family"}, {"max error/&#916;", CellKind::number}, {"max ulp", CellKind::number}, {"where"}, {"verdicts"}},
      rows);
}

std::string known_failure_section(const RunRecord& record) {
  if (record.known_failures.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const KnownFailureUse& use : record.known_failures)
    rows.push_back({html_escaped(use.entry.cases), html_escaped(use.entry.reason), html_escaped(use.entry.link),
                    html_escaped(use.entry.expires), html_escaped(known_failure_state_name(use.state)),
                    std::to_string(use.matched)});
  return fmt::format(
      "<section id=\"known\"><h2>Known failures</h2>\n{}</section>\n",
      html_table("Known failures",
                 {{"cases"}, {"reason"}, {"link"}, {"expires"}, {"state"}, {"matched", CellKind::number}}, rows));
}

double case_ratio(const CaseResult& result) {
  double largest = 0;
  for (const StageResult& stage : result.stages) {
    if (stage.judgement) largest = std::max(largest, stage.judgement->max_ratio);
  }
  return largest;
}

std::vector<std::string> case_row(const CaseResult& result) {
  return {html_escaped(result.slug),
          html_escaped(result.family),
          std::string(parameters(result.format).name),
          shape_line(result.shape),
          html_escaped(result.profile),
          html_escaped(result.implementation),
          fmt::format("{:.2f}", result.seconds * 1000),
          short_text(case_ratio(result)),
          fmt::format("{} {}", html_badge(result.verdict), html_escaped(result.detail))};
}

// Behind one line, and no more rows than can be looked through.
std::string case_table(const RunRecord& record, std::string_view heading,
                       const std::function<bool(const CaseResult&)>& belongs) {
  constexpr CellKind number = CellKind::number;
  std::vector<std::vector<std::string>> rows;
  std::size_t all = 0;
  for (const CaseResult& result : record.cases)
    if (belongs(result) && ++all <= rows_shown) rows.push_back(case_row(result));
  if (all == 0) return {};
  const std::string cut = all == rows.size() ? ""
                                             : fmt::format("<p>The first {} of {}; {} holds all.</p>\n", rows.size(),
                                                           all, record_file(record));
  return fmt::format("<details><summary>{}: {}</summary>\n{}{}</details>\n", heading, all, cut,
                     html_table(heading,
                                {{"case"},
                                 {"family"},
                                 {"format"},
                                 {"shape"},
                                 {"profile"},
                                 {"implementation"},
                                 {"ms", number},
                                 {"max error/&#916;", number},
                                 {"verdict"}},
                                rows));
}

std::string case_tables(const RunRecord& record) {
  const auto fails = [](const CaseResult& result) { return violates(result.verdict); };
  const std::string failing = case_table(record, "Failing cases", fails);
  return failing + case_table(record, failing.empty() ? "All cases" : "Other cases",
                              [&](const CaseResult& result) { return !fails(result); });
}

std::string section(std::string_view id, std::string_view heading, const std::string& content) {
  return fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, heading, content);
}

std::string circumstances(const RunRecord& record) {
  std::string command;
  for (const std::string& word : record.command) command += (command.empty() ? "" : " ") + shell_quoted(word);
  const Machine& m = record.machine;
  return fmt::format(
      "<dl><dt>Command, to run it again</dt><dd><pre tabindex=\"0\">{}</pre></dd><dt>Started</dt><dd>{}, took {:.1f} "
      "s</dd>"
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

std::string html_badge(Verdict verdict) {
  const std::string_view kind = violates(verdict) ? "bad" : verdict == Verdict::pass ? "good" : "dim";
  return fmt::format("<span class=\"badge {}\">{}</span>", kind, html_escaped(verdict_name(verdict)));
}

std::string report_html(const RunRecord& record, const HtmlExtras& extras) {
  const std::string title = fmt::format("{}: conformance report", html_escaped(record.description.name));
  const std::string plain_note =
      record.plain
          ? "Rings below the dots: a plain unfused evaluation of the same case, which stores every stage in the "
            "case's format. Where it comes near 1, or passes it, &#916; is no wider than that format is coarse."
          : "";
  std::string body =
      head(record) + "<main>\n" + failures_html(record) + diagnosis_html(record) + known_failure_section(record);
  body += section("ratio", "Error over budget",
                  fmt::format("<p>Cases and stages, a dot for those that lie together: the largest error in units of "
                              "its proven budget &#916;. "
                              "Above 1 fails; what violates is red. {}</p>\n",
                              plain_note) +
                      ratio_chart(record));
  body += section("results", "Results by stage", all_stages_table(record));
  body += section("families", "Results by input family", family_rows(record));
  body += section("heat", "Where the errors stand", heat_figures(record));
  body += section("ulps", "Errors in ulp",
                  "<p>Elements per class; the upper edge of a class is written below it, heights grow with the square "
                  "root.</p>\n" +
                      ulp_histograms(record));
  body += section("worst", "Nearest to the budget, or farthest beyond", worst_elements_html(record));
  body += section("contracts", "Results by contract and stage", contract_tables(record)) + relation_html(record);
  if (extras.adequacy) body += kill_matrix_html(*extras.adequacy, record.corpus_digest);
  body += section("cases", "Cases", case_tables(record));
  body += section("clauses", "Contracts, clause by clause", contract_details(record, extras.against));
  body += section("circumstances", "Circumstances", circumstances(record)) + "</main>\n";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n</head>\n"
      "<body>\n<a class=\"skip\" href=\"#results\">To the results</a>\n{}</body>\n</html>\n",
      title, html_style, body);
}

}  // namespace qkcts
