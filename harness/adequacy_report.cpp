// SPDX-License-Identifier: Apache-2.0
#include "harness/adequacy_report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/value_text.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts {
namespace {

// Columns of the text: profiles have names of up to 14 characters.
constexpr std::size_t name_columns = 32, cell_columns = 16;

const AdequacyCell* cell_of(const AdequacyRow& row, const std::string& profile) {
  for (const AdequacyCell& cell : row.cells)
    if (cell.profile == profile) return &cell;
  return nullptr;
}

const AdequacyCell* best_cell(const AdequacyRow& row) {
  const AdequacyCell* best = nullptr;
  for (const AdequacyCell& cell : row.cells)
    if (best == nullptr || cell.best.separation > best->best.separation) best = &cell;
  return best;
}

// "-": no case of that profile takes the mutant; "=": proven indistinguishable; in brackets: not killed.
std::string cell_text(const AdequacyCell* cell) {
  if (cell == nullptr) return "-";
  const KillVerdict verdict = kill_verdict(*cell);
  if (verdict == KillVerdict::identical) return "=";
  const std::string text = separation_text(cell->best.separation);
  return cell->best.separation > 1 ? text : "(" + text + ")";
}

std::string place_text(const SeparatingPlace& place) {
  if (place.slug.empty()) return "-";
  return fmt::format("{}, {}", place.slug, stage_name(place.stage));
}

// Why a cell is not killed, in words.
std::string explanation(const AdequacyCell& cell) {
  switch (kill_verdict(cell)) {
    case KillVerdict::missed:
      return fmt::format("{} separates it by {}", cell.beyond_where, separation_text(cell.beyond));
    case KillVerdict::identical:
      return "P7: both contracts have the same values over the reals";
    case KillVerdict::unexplained:
      return "not on the list of those that a search found nothing for";
    default:
      return cell.excuse;
  }
}

bool is_told_apart(const AdequacyCell& cell) {
  return kill_verdict(cell) == KillVerdict::killed;
}

std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

// One line per profile.
std::vector<std::string> count_lines(const AdequacyReport& report) {
  std::vector<std::string> lines;
  for (const std::string& profile : report.profiles) {
    const KillCount count = count_kills(report, profile);
    lines.push_back(fmt::format("{}: {} of {} killed, {} not distinguished, {} proven indistinguishable, {} inadequate",
                                profile, count.killed, count.taken, count.not_distinguished, count.identical,
                                count.inadequate));
  }
  return lines;
}

std::string joined_or_none(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string separation_text(double separation) {
  if (std::isinf(separation)) return "inf";
  if (separation == 0) return "0";
  return separation >= 0.01 && separation < 10000 ? fmt::format("{:.3g}", separation)
                                                  : fmt::format("{:.1e}", separation);
}

std::string adequacy_text(const AdequacyReport& report) {
  std::string text;
  for (const AdequacyCorpus& corpus : report.corpora)
    text += wrapped(
        corpus.path + ": ",
        fmt::format("suite {}, {}, digest {:.12}", corpus.suite, counted(corpus.cases, "case", "cases"), corpus.digest),
        2);
  text += "\n" + table_row("mutant", name_columns, report.profiles, cell_columns);
  for (const AdequacyRow& row : report.rows) {
    std::vector<std::string> cells;
    for (const std::string& profile : report.profiles) cells.push_back(cell_text(cell_of(row, profile)));
    text += table_row(row.id, name_columns, cells, cell_columns);
    const AdequacyCell* best = best_cell(row);
    text += wrapped(fmt::format("  {}, ", row.clause),
                    best == nullptr ? "no case takes it" : "largest in " + place_text(best->best), 4);
  }
  std::string open;
  for (const AdequacyRow& row : report.rows)
    for (const AdequacyCell& cell : row.cells)
      if (!is_told_apart(cell))
        open +=
            wrapped(fmt::format("  {} ", row.id),
                    fmt::format("{}: {}, {} of {} cases compared: {}", cell.profile,
                                kill_verdict_name(kill_verdict(cell)), cell.compared, cell.cases, explanation(cell)),
                    4);
  if (!open.empty()) text += "\nNot simply killed\n" + open;
  text += "\n";
  for (const std::string& line : count_lines(report)) text += wrapped("", line, 2);
  text += wrapped("mutants that no case takes: ", joined_or_none(mutants_without_case(report)), 2);
  text += wrapped("clauses that no case separates: ", joined_or_none(unseparated_clauses(report)), 2);
  return text + wrapped("", report.effort +
                                ". Above 1: no implementation that is right for the wrong contract can pass. In "
                                "brackets: nothing here separates it; =: proven indistinguishable; -: no case of that "
                                "profile takes it");
}

std::string adequacy_markdown(const AdequacyReport& report) {
  std::string text = "| corpus | cases | digest |\n|---|---|---|\n";
  for (const AdequacyCorpus& corpus : report.corpora)
    text += fmt::format("| {} | {} | `{}` |\n", corpus.suite, corpus.cases, corpus.digest);
  text += "\n";
  for (const std::string& line : count_lines(report)) text += line + "  \n";
  text += "\n| mutant | clause |";
  for (const std::string& profile : report.profiles) text += fmt::format(" {} |", profile);
  text += " largest in |\n|---|---|";
  for (std::size_t i = 0; i < report.profiles.size(); ++i) text += "---|";
  text += "---|\n";
  for (const AdequacyRow& row : report.rows) {
    text += fmt::format("| `{}` | {} |", row.id, row.clause);
    for (const std::string& profile : report.profiles) text += fmt::format(" {} |", cell_text(cell_of(row, profile)));
    const AdequacyCell* best = best_cell(row);
    text += fmt::format(" {} |\n", best == nullptr ? "no case takes it" : place_text(best->best));
  }
  std::string open;
  for (const AdequacyRow& row : report.rows)
    for (const AdequacyCell& cell : row.cells)
      if (!is_told_apart(cell))
        open +=
            fmt::format("| `{}` | {} | {} | {} | {} |\n", row.id, cell.profile, kill_verdict_name(kill_verdict(cell)),
                        separation_text(cell.best.separation), escaped(explanation(cell)));
  if (!open.empty()) text += "\n| mutant | profile | | largest found | why |\n|---|---|---|---|---|\n" + open;
  text += fmt::format("\nMutants that no case takes: {}. Clauses that no case separates: {}. {}.\n",
                      joined_or_none(mutants_without_case(report)), joined_or_none(unseparated_clauses(report)),
                      report.effort);
  return text;
}

std::string adequacy_csv(const AdequacyReport& report) {
  std::string text =
      "mutant,clause,kind,profile,verdict,separation,case,stage,row,column,cases,compared,refused,beyond\n";
  for (const AdequacyRow& row : report.rows)
    for (const AdequacyCell& cell : row.cells)
      text += fmt::format("{},{},{},{},\"{}\",{:.9g},{},{},{},{},{},{},{},{:.9g}\n", row.id, row.clause, row.kind,
                          cell.profile, kill_verdict_name(kill_verdict(cell)), cell.best.separation, cell.best.slug,
                          cell.best.slug.empty() ? "" : stage_name(cell.best.stage), cell.best.row, cell.best.column,
                          cell.cases, cell.compared, cell.refused, cell.beyond);
  return text;
}

Json adequacy_json(const AdequacyReport& report) {
  const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json("inf"); };  // JSON has no infinity
  const auto place = [&](const SeparatingPlace& p) {
    if (p.slug.empty()) return Json(nullptr);
    return Json{{"separation", number(p.separation)},
                {"corpus", report.corpora[p.corpus].suite},
                {"case", p.slug},
                {"stage", stage_name(p.stage)},
                {"row", p.row},
                {"column", p.column}};
  };
  Json document = {
      {"schema", "qkcts-adequacy/1"}, {"effort", report.effort}, {"exit_code", adequacy_exit_code(report)}};
  for (const AdequacyCorpus& corpus : report.corpora)
    document["corpora"].push_back(
        {{"path", corpus.path}, {"suite", corpus.suite}, {"digest", corpus.digest}, {"cases", corpus.cases}});
  document["mutants"] = Json::array();
  for (const AdequacyRow& row : report.rows) {
    Json cells = Json::array();
    for (const AdequacyCell& cell : row.cells) {
      Json entry = {{"profile", cell.profile},       {"verdict", kill_verdict_name(kill_verdict(cell))},
                    {"best", place(cell.best)},      {"cases", cell.cases},
                    {"compared", cell.compared},     {"refused", cell.refused},
                    {"identities", cell.identities}, {"why", is_told_apart(cell) ? "" : explanation(cell)}};
      if (!cell.beyond_where.empty())
        entry["beyond"] = {{"separation", number(cell.beyond)}, {"where", cell.beyond_where}};
      cells.push_back(std::move(entry));
    }
    document["mutants"].push_back({{"id", row.id},
                                   {"clause", row.clause},
                                   {"kind", row.kind},
                                   {"right", row.right},
                                   {"wrong", row.wrong},
                                   {"invisible", row.invisible},
                                   {"profiles", std::move(cells)}});
  }
  document["clauses"] = Json::array();
  for (const ClauseSeparation& clause : report.clauses) {
    Json best = Json::object();
    for (std::size_t i = 0; i < clause.best.size(); ++i)
      if (clause.best[i]) best[report.profiles[i]] = place(*clause.best[i]);
    document["clauses"].push_back({{"clause", clause.clause}, {"best", std::move(best)}});
  }
  document["unseparated_clauses"] = unseparated_clauses(report);
  return document;
}

}  // namespace qkcts
