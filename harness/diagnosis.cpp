// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/run_record.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

constexpr std::size_t width = 80;
constexpr std::size_t matches_shown = 6;

// Words on lines of at most 80 columns, further lines indented as said.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string result, line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      result += line + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += (at == 0 ? "" : " ") + word;
    }
    at = end + 1;
  }
  return result + line + "\n";
}

std::string change_text(const ClauseDifference& change) {
  const std::string field = change.field == "kernel" ? "" : change.field + " ";
  return fmt::format("{}{} -> {} ({})", field, change.left, change.right, change.clause);
}

std::string changes_text(const Suspect& suspect) {
  if (suspect.changes.empty()) return suspect.name;
  std::string text;
  const std::string fault = suspect.by_kernel && !suspect.known_as.empty() ? suspect.known_as.front().id : "";
  for (const ClauseDifference& change : suspect.changes) {
    if (!text.empty()) text += ", ";
    if (change.field == "kernel") text += fmt::format("the known fault {}: ", fault);
    text += change_text(change);
  }
  return text;
}

// "1234 of 1234 elements, worst error/Delta 0.31"
std::string measure_text(const Suspect& suspect) {
  std::string text = fmt::format("{} of {} elements", suspect.explained, suspect.judged);
  // Rounded down: not all is never 100 %.
  if (suspect.explained != suspect.judged && suspect.judged > 0)
    text += fmt::format(
        " ({:.1f} %)",
        std::floor(1000.0 * static_cast<double>(suspect.explained) / static_cast<double>(suspect.judged)) / 10);
  text += fmt::format(", worst error/Delta {}", short_text(suspect.worst));
  if (suspect.valueless > 0) text += fmt::format("; {} of them 0/0, and no number was got", suspect.valueless);
  return text;
}

std::string suspect_lines(const std::string& lead, const Suspect& suspect) {
  std::string text = wrapped("  " + lead + changes_text(suspect), 6);
  // Names that are no mere field and value say where a number comes from.
  const bool is_plain = suspect.name.find(' ') == std::string::npos || suspect.name.find(" and ") != std::string::npos;
  if (!suspect.by_kernel && !is_plain && suspect.name.rfind("input ", 0) != 0)
    text += wrapped(fmt::format("    that is: {}", suspect.name), 6);
  for (const KnownMistake& known : suspect.known_as)
    if (!suspect.by_kernel)
      text += wrapped(fmt::format("    known as {} ({}): {}", known.id, known.clause, known.text), 6);
  if (suspect.by_kernel) text += "    (values of that wrong kernel; what it may be off by is not proven)\n";
  std::string measure = "    " + measure_text(suspect);
  if (suspect.further_cases > 0)
    measure += fmt::format("; {} too", counted(static_cast<std::uint64_t>(suspect.further_cases),
                                               "further failing case", "further failing cases"));
  return text + wrapped(measure, 6);
}

std::string shape_line(const qkcts_shape& s) {
  return fmt::format("B{} H{}/{} L{}x{} D{}/{}", s.batch, s.q_heads, s.kv_heads, s.q_len, s.k_len, s.head_dim,
                     s.v_head_dim);
}

// ", and 2 compute the same values here, bit for bit"; empty if each computes others.
std::string same_values_text(const std::vector<Suspect>& matches) {
  const auto same = std::count_if(matches.begin(), matches.end(), [](const Suspect& s) { return s.same_values; });
  if (same < 2) return {};
  const std::string who = same == static_cast<std::ptrdiff_t>(matches.size()) ? "all of them" : fmt::format("{}", same);
  return fmt::format("; {} compute the same values here, bit for bit", who);
}

std::string finding_lines(const CaseDiagnosis& d) {
  std::string text;
  switch (d.finding) {
    case Finding::matched:
      return suspect_lines("MATCHES: ", d.matches.front());
    case Finding::ambiguous:
      text = wrapped(fmt::format("  SEVERAL MATCH ({}); this run does not tell them apart{}:", d.matches.size(),
                                 same_values_text(d.matches)),
                     4);
      for (std::size_t i = 0; i < std::min(matches_shown, d.matches.size()); ++i)
        text += suspect_lines("- ", d.matches[i]);
      if (d.matches.size() > matches_shown)
        text += fmt::format("  and {} more; run.json lists all\n", d.matches.size() - matches_shown);
      return text;
    case Finding::unmatched:
      text = wrapped("  NO MATCH: it computes none of the contracts that were tried" +
                         std::string(d.nearest.empty() ? ", and none comes nearer" : "; nearest:"),
                     4);
      for (const Suspect& suspect : d.nearest) text += suspect_lines("- ", suspect);
      return text;
    case Finding::no_values:
      return wrapped("  NO VALUES to compare: " + d.detail, 4);
    case Finding::passes:
      return wrapped("  PASSES now: " + d.detail, 4);
  }
  return text;
}

Json suspect_json(const Suspect& suspect) {
  Json changes = Json::array();
  for (const ClauseDifference& c : suspect.changes)
    changes.push_back({{"clause", c.clause}, {"field", c.field}, {"asked", c.left}, {"computed", c.right}});
  Json known = Json::array();
  for (const KnownMistake& one : suspect.known_as)
    known.push_back({{"id", one.id}, {"clause", one.clause}, {"text", one.text}});
  return {{"name", suspect.name},
          {"changes", std::move(changes)},
          {"known_as", std::move(known)},
          {"by_kernel", suspect.by_kernel},
          {"same_values", suspect.same_values},
          {"judged", suspect.judged},
          {"explained", suspect.explained},
          {"valueless", suspect.valueless},
          {"worst_error_over_delta", std::isfinite(suspect.worst) ? Json(suspect.worst) : Json()},
          {"further_cases", suspect.further_cases}};
}

Json suspects_json(const std::vector<Suspect>& suspects) {
  Json list = Json::array();
  for (const Suspect& suspect : suspects) list.push_back(suspect_json(suspect));
  return list;
}

Json case_json(const CaseDiagnosis& d) {
  Json document = {{"case", d.slug},
                   {"contract", d.contract},
                   {"finding", finding_name(d.finding)},
                   {"detail", d.detail},
                   {"divergence",
                    {{"stage", d.divergence.stage ? Json(stage_name(*d.divergence.stage)) : Json()},
                     {"detail", d.divergence.detail}}},
                   {"failing", d.failing},
                   {"judged", d.judged},
                   {"tried", d.tried},
                   {"cut", d.cut},
                   {"matches", suspects_json(d.matches)},
                   {"nearest", suspects_json(d.nearest)},
                   {"reproducer", Json()},
                   {"seconds", d.seconds}};
  if (d.reproducer) {
    const qkcts_shape& s = d.reproducer->shape;
    document["reproducer"] = {{"shape",
                               {{"batch", s.batch},
                                {"q_heads", s.q_heads},
                                {"kv_heads", s.kv_heads},
                                {"q_len", s.q_len},
                                {"k_len", s.k_len},
                                {"head_dim", s.head_dim},
                                {"v_head_dim", s.v_head_dim}}},
                              {"tries", d.reproducer->tries},
                              {"bundle", d.reproducer->bundle},
                              {"command", d.reproducer->command}};
  }
  return document;
}

}  // namespace

std::vector<std::string> clauses_named(const Suspect& suspect) {
  std::set<std::string> clauses;
  for (const ClauseDifference& change : suspect.changes) clauses.insert(change.clause);
  for (const KnownMistake& known : suspect.known_as) clauses.insert(known.clause);
  return {clauses.begin(), clauses.end()};
}

std::string_view finding_name(Finding finding) {
  constexpr std::array<std::string_view, 5> names = {"matched", "ambiguous", "unmatched", "no_values", "passes"};
  return names[static_cast<std::size_t>(finding)];
}

Json diagnosis_json(const Diagnosis& diagnosis) {
  Json cases = Json::array();
  for (const CaseDiagnosis& one : diagnosis.cases) cases.push_back(case_json(one));
  return {{"failing_cases", diagnosis.failing_cases}, {"warnings", diagnosis.warnings}, {"cases", std::move(cases)}};
}

std::string diagnosis_text(const CaseDiagnosis& d) {
  std::string text = fmt::format("DIAGNOSIS  {}\n", d.slug);
  text += finding_lines(d);
  if (d.finding == Finding::no_values || d.finding == Finding::passes) {
    if (d.reproducer) text += wrapped("  smallest that fails: " + shape_line(d.reproducer->shape), 4);
  } else {
    if (!d.detail.empty()) text += wrapped("  " + d.detail, 4);
    text +=
        wrapped(fmt::format("  first divergent stage: {}; {}",
                            d.divergence.stage ? stage_name(*d.divergence.stage) : "not located", d.divergence.detail),
                4);
    if (d.reproducer)
      text += wrapped(
          fmt::format("  smallest that fails: {} ({} runs)", shape_line(d.reproducer->shape), d.reproducer->tries), 4);
    text += wrapped(fmt::format("  {} of {} elements fail; {} tried in {:.1f} s{}", d.failing, d.judged,
                                counted(static_cast<std::uint64_t>(d.tried), "contract", "contracts"), d.seconds,
                                d.cut ? "; time ran out before all were" : ""),
                    4);
  }
  if (d.reproducer && !d.reproducer->command.empty())
    text += "  bundle: " + d.reproducer->bundle + "\n  again:  " + d.reproducer->command + "\n";
  return text;
}

std::string diagnosis_extent(const Diagnosis& diagnosis) {
  const std::size_t done = diagnosis.cases.size();
  std::string text =
      fmt::format("{} of {} diagnosed", done,
                  counted(static_cast<std::uint64_t>(diagnosis.failing_cases), "failing case", "failing cases"));
  if (done < static_cast<std::size_t>(diagnosis.failing_cases)) text += ", different contracts first";
  std::map<std::string, int> names;  // of a case only what it is most likely
  for (const CaseDiagnosis& one : diagnosis.cases)
    if (!one.matches.empty()) ++names[one.matches.front().name];
  std::string separator = ": ";
  for (const auto& [name, count] : names) {
    text += fmt::format("{}{} in {}", separator, name, count);
    separator = "; ";
  }
  return text + ".";
}

std::string diagnosis_text(const Diagnosis& diagnosis) {
  std::string text;
  for (const std::string& warning : diagnosis.warnings) text += wrapped("warning: " + warning, 2);
  for (const CaseDiagnosis& one : diagnosis.cases) text += diagnosis_text(one) + "\n";
  return text + wrapped(diagnosis_extent(diagnosis), 2) + "\n";
}

std::string diagnosis_line(const CaseDiagnosis& d) {
  if (d.matches.empty()) return {};
  std::string line = "matches: " + changes_text(d.matches.front());
  if (d.matches.size() > 1) line += fmt::format(", or {} more", d.matches.size() - 1);
  return line;
}

const CaseDiagnosis* diagnosis_of(const RunRecord& record, const std::string& slug) {
  if (!record.diagnosis) return nullptr;
  for (const CaseDiagnosis& one : record.diagnosis->cases)
    if (one.slug == slug) return &one;
  return nullptr;
}

}  // namespace qkcts
