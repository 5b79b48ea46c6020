// SPDX-License-Identifier: Apache-2.0
#include "harness/relation_report.hpp"

#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/failure_text.hpp"
#include "harness/html_table.hpp"
#include "harness/record_values.hpp"
#include "harness/report_html.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

constexpr std::size_t failures_shown = 100;

struct KindCounts {
  std::map<Verdict, int> verdicts;
  Verdict gravest = Verdict::not_run;
  std::map<RelationRule, int> rules;
};

std::map<RelationKind, KindCounts> by_kind(const RunRecord& record) {
  std::map<RelationKind, KindCounts> counts;
  for (const RelationResult& result : record.relations) {
    KindCounts& kind = counts[result.kind];
    ++kind.verdicts[result.verdict];
    ++kind.rules[result.rule];
    kind.gravest = graver(kind.gravest, result.verdict);
  }
  return counts;
}

std::string counts_text(const std::map<Verdict, int>& verdicts) {
  std::string text;
  for (auto entry = verdicts.rbegin(); entry != verdicts.rend(); ++entry)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", entry->second, verdict_name(entry->first));
  return text;
}

std::string rules_text(const std::map<RelationRule, int>& rules) {
  std::string text;
  for (const auto& [rule, count] : rules)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", relation_rule_name(rule));
  return text;
}

std::string element_line(const RelationResult& result, const RelationBreach& breach, std::size_t which) {
  const Format format = stage_format(breach.stage, result.format);
  const bool second = which == 1;
  const std::uint64_t bits = second ? breach.second_bits : breach.first_bits;
  const double value = second ? breach.second_value : breach.first_value;
  const std::string place = coordinate_text(breach.stage, second ? result.second_shape : result.first_shape,
                                            second ? breach.second : breach.first);
  return fmt::format("    got    {}  {}  {}[{}] of {}\n", bits_text(format, bits), decimal_text(format, value),
                     stage_name(breach.stage), place, result.cases[which]);
}

std::string breach_text(const RelationResult& result, const RelationBreach& breach) {
  std::string text;
  if (breach.what.empty()) {
    for (std::size_t which = 0; which < result.cases.size(); ++which) text += element_line(result, breach, which);
  } else {
    text += fmt::format("    {}: {} row {}\n", breach.what, stage_name(breach.stage), breach.first.row);
    if (result.cases.size() == 2) text += element_line(result, breach, 0) + element_line(result, breach, 1);
  }
  if (result.rule == RelationRule::bitwise)
    return text + fmt::format("    due    {} of the second, to the bit\n", breach.due);
  if (result.rule == RelationRule::differ || result.rule == RelationRule::apart) return text;
  return text + fmt::format("    due    {}, up to {:.3g}; got {}\n", breach.due, breach.allowed, breach.second_value);
}

}  // namespace

std::string relation_rerun_command(const RunRecord& record, const RelationResult& result) {
  std::string command = fmt::format("{} --case {}", judging_command(record), result.slug);
  if (record.judging == Judging::relations_alone) command += " --relations-only";
  if (!record.profile_asked.empty()) command += " --profile " + record.profile_asked;
  return command;
}

std::string relation_failure_text(const RunRecord& record, const RelationResult& result) {
  if (!violates(result.verdict)) return {};
  const RelationRow& row = qkcts::row(result.kind);
  const std::string word =
      result.verdict == Verdict::fail ? std::string("FAIL") : fmt::format("FAIL {}", verdict_name(result.verdict));
  std::string text = fmt::format("{}  {}\n  relation {} {}: {}\n", word, result.slug, row.id, row.name, row.statement);
  if (result.breach) {
    text += fmt::format("  judged {}: {} of {} broken; the first:\n{}", relation_rule_name(result.rule),
                        result.violated, result.compared, breach_text(result, *result.breach));
    text += fmt::format("  meaning: {}\n", row.violation);
  } else {
    text += fmt::format("  {}\n", result.detail);
  }
  return text + fmt::format("  again:   {}\n", relation_rerun_command(record, result));
}

std::string relation_table_text(const RunRecord& record) {
  if (record.relations.empty()) return {};
  std::string text = fmt::format("{:<25} {:<16} {}\n", "relation", "judged", "verdicts");
  text += std::string(80, '-') + "\n";
  for (const auto& [kind, counts] : by_kind(record))
    text += fmt::format("{:<4}{:<21} {:<16} {}\n", row(kind).id, row(kind).name, rules_text(counts.rules),
                        counts_text(counts.verdicts));
  return text + std::string(80, '-') + "\n";
}

std::string relation_html(const RunRecord& record) {
  if (record.relations.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const auto& [kind, counts] : by_kind(record)) {
    const std::string_view badge = violates(counts.gravest) ? "bad" : counts.gravest == Verdict::pass ? "good" : "dim";
    rows.push_back(
        {fmt::format("{} {}", row(kind).id, row(kind).name), html_escaped(row(kind).statement),
         rules_text(counts.rules),
         fmt::format("<span class=\"badge {}\">{}</span> {}", badge, html_escaped(verdict_name(counts.gravest)),
                     html_escaped(counts_text(counts.verdicts)))});
  }
  std::string failures;
  std::size_t all = 0;
  for (const RelationResult& result : record.relations) {
    const std::string text = relation_failure_text(record, result);
    if (text.empty() || ++all > failures_shown) continue;
    failures += fmt::format("<pre class=\"failure\" tabindex=\"0\">{}</pre>\n", html_escaped(text));
  }
  if (all > failures_shown)
    failures =
        fmt::format("<p>The first {} of {} failures; {} holds all.</p>\n", failures_shown, all, record_file(record)) +
        failures;
  return fmt::format("<section id=\"relations\"><h2>Relations between cases</h2>\n{}{}</section>\n",
                     html_table("Relations", {{"relation"}, {"statement"}, {"judged"}, {"verdict"}}, rows), failures);
}

Json relation_json(const RelationResult& result) {
  const RelationRow& row = qkcts::row(result.kind);
  Json json = {{"relation", result.slug},
               {"id", row.id},
               {"kind", row.name},
               {"rule", relation_rule_name(result.rule)},
               {"cases", result.cases},
               {"format", parameters(result.format).name},
               {"first_shape", shape_json(result.first_shape)},
               {"second_shape", shape_json(result.second_shape)},
               {"profile", result.profile},
               {"verdict", verdict_name(result.verdict)},
               {"detail", result.detail},
               {"statement", row.statement},
               {"meaning", violates(result.verdict) && result.breach ? Json(row.violation) : Json()},
               {"compared", result.compared},
               {"violated", result.violated},
               {"breach", Json()}};
  if (!result.breach) return json;
  const RelationBreach& breach = *result.breach;
  const Format format = stage_format(breach.stage, result.format);
  json["breach"] = {{"stage", stage_name(breach.stage)},
                    {"what", breach.what},
                    {"first_index", index_of(breach.stage, result.first_shape, breach.first)},
                    {"second_index", index_of(breach.stage, result.second_shape, breach.second)},
                    {"first_bits", bits_text(format, breach.first_bits)},
                    {"second_bits", bits_text(format, breach.second_bits)},
                    {"first", figure_json(breach.first_value)},
                    {"second", figure_json(breach.second_value)},
                    {"due", figure_json(breach.due)},
                    {"allowed", figure_json(breach.allowed)}};
  return json;
}

}  // namespace qkcts
