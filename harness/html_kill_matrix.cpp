// SPDX-License-Identifier: Apache-2.0
#include "harness/html_kill_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/adequacy_report.hpp"
#include "harness/html_table.hpp"
#include "harness/json_at.hpp"
#include "harness/report_html.hpp"

namespace qkcts {
namespace {

double separation_from(const JsonAt& at) {
  return at.json().is_string() ? std::numeric_limits<double>::infinity() : at.get<double>();
}

KillMatrixCell cell_from(const JsonAt& at) {
  KillMatrixCell cell;
  cell.profile = at["profile"].text();
  cell.verdict = at["verdict"].text();
  cell.why = at["why"].text();
  const JsonAt best = at["best"];
  if (best.is_null()) return cell;
  cell.separation = separation_from(best["separation"]);
  cell.where = fmt::format("{} {}", best["case"].text(), best["stage"].text());
  return cell;
}

KillMatrix matrix_at(const JsonAt& at) {
  KillMatrix matrix;
  matrix.effort = at["effort"].text();
  for (const JsonAt& corpus : at["corpora"].items()) {
    matrix.digests.push_back(corpus["digest"].text());
    matrix.corpora.push_back(fmt::format("{}: {} cases, digest {:.16}", corpus["suite"].text(),
                                         corpus["cases"].get<std::size_t>(), corpus["digest"].text()));
  }
  for (const JsonAt& mutant : at["mutants"].items()) {
    KillMatrixRow& row = matrix.rows.emplace_back();
    row.id = mutant["id"].text();
    row.clause = mutant["clause"].text();
    row.right = mutant["right"].text();
    row.wrong = mutant["wrong"].text();
    for (const JsonAt& cell : mutant["profiles"].items()) {
      row.cells.push_back(cell_from(cell));
      if (std::find(matrix.profiles.begin(), matrix.profiles.end(), row.cells.back().profile) == matrix.profiles.end())
        matrix.profiles.push_back(row.cells.back().profile);
    }
  }
  return matrix;
}

// The colour repeats what the figure and the sign say.
std::string cell_html(const KillMatrixRow& row, const std::string& profile) {
  for (const KillMatrixCell& cell : row.cells) {
    if (cell.profile != profile) continue;
    const bool killed = cell.separation > 1;
    const std::string_view kind = killed                        ? "good"
                                  : cell.verdict == "identical" ? "dim"
                                  : cell.why.empty()            ? "bad"
                                                                : "dim";
    return fmt::format("<span class=\"{}\" title=\"{}\">{}{}</span>", kind,
                       html_escaped(cell.where.empty() ? cell.why : cell.where),
                       killed ? "" : "&#8804; 1: ", separation_text(cell.separation));
  }
  return "&#8211;";
}

}  // namespace

KillMatrix kill_matrix_from_json(std::string_view text, std::string_view origin) {
  const Json document = parse_json(text, origin);
  const std::string name(origin);
  if (!document.is_object() || document.value("schema", Json()) != "qkcts-adequacy/1")
    throw InputError(fmt::format("{}: is not what `qkcts adequacy --format json` writes", origin));
  try {
    return matrix_at(JsonAt(document, name));
  } catch (const Json::exception& error) {
    throw InputError(
        fmt::format("{}: is damaged: {}; write it again with `qkcts adequacy --format json`", origin, error.what()));
  }
}

std::string kill_matrix_html(const KillMatrix& matrix, const std::string& run_digest) {
  std::vector<HtmlColumn> columns = {{"mutant"}, {"clause"}};
  for (const std::string& profile : matrix.profiles) columns.push_back({profile, CellKind::number});
  columns.push_back({"what is wrong"});
  std::vector<std::vector<std::string>> rows;
  for (const KillMatrixRow& mutant : matrix.rows) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {fmt::format("<code>{}</code>", html_escaped(mutant.id)), html_escaped(mutant.clause)};
    for (const std::string& profile : matrix.profiles) row.push_back(cell_html(mutant, profile));
    row.push_back(html_escaped(mutant.wrong));
  }
  std::string corpora;
  for (const std::string& corpus : matrix.corpora) corpora += fmt::format("<li>{}</li>", html_escaped(corpus));
  const bool same = std::find(matrix.digests.begin(), matrix.digests.end(), run_digest) != matrix.digests.end();
  return fmt::format(
      "<section id=\"kills\"><h2>Kill matrix</h2>\n<p>How far apart the cases hold a wrong contract and the right one, "
      "in units of both budgets. Above 1, no implementation that is right for the wrong contract can pass. {}</p>\n"
      "<ul>{}</ul>\n{}<details><summary>All mutants: {}</summary>\n{}</details></section>\n",
      html_escaped(matrix.effort), corpora,
      same ? "" : "<p class=\"bad\">None of these corpora is the one that this run was judged on.</p>\n", rows.size(),
      html_table("Kill matrix", columns, rows));
}

}  // namespace qkcts
