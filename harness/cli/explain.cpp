// SPDX-License-Identifier: Apache-2.0
// The whole budget of one element, recomputed from the inputs: the answer to whoever doubts a verdict.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>

#include "conformance/budget.hpp"
#include "conformance/clause.hpp"
#include "conformance/further_profiles.hpp"
#include "harness/cli/arguments.hpp"
#include "harness/cli/commands.hpp"
#include "harness/coordinates.hpp"
#include "harness/usage_error.hpp"
#include "harness/utf8_text.hpp"
#include "harness/value_text.hpp"
#include "harness/wrapped_text.hpp"
#include "reference/evaluation.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts::cli {
namespace {

struct ExplainArguments {
  std::string corpus, slug, stage, index, profile;
};

struct Element {
  qkcts_stage stage;
  ElementCoordinates place;
  std::size_t stored = 0;  // index among the stored elements of the stage
};

Element find_element(const GoldenCase& golden, const ExplainArguments& given) {
  Element element{stage_from_text(given.stage), {}, 0};
  const GoldenStage& stage = golden.stages[element.stage];
  if (!stage.present) {
    std::vector<std::string_view> present;
    for (const qkcts_stage one : all_stages)
      if (golden.stages[one].present) present.push_back(stage_name(one));
    throw UsageError(
        fmt::format("{}: has no stage {}; it has: {}", golden.input.slug, given.stage, fmt::join(present, ", ")));
  }
  element.place = place_from_text(element.stage, golden.input.shape, given.index);
  const std::vector<std::uint32_t>& rows = stage.values.rows;
  const auto row = std::lower_bound(rows.begin(), rows.end(), element.place.row);
  if (row == rows.end() || *row != element.place.row) {
    throw InputError(fmt::format("{}: row {} of {} is not stored; rows {} are", given.slug, element.place.row,
                                 given.stage, fmt::join(rows, " ")));
  }
  const auto length = static_cast<std::size_t>(row_length(element.stage, golden.input.shape));
  element.stored = static_cast<std::size_t>(row - rows.begin()) * length + element.place.column;
  return element;
}

std::size_t profile_index(const GoldenCase& golden, const std::string& name) {
  if (name.empty()) return 0;
  const auto found = std::find(golden.profiles.begin(), golden.profiles.end(), name);
  if (found != golden.profiles.end()) return static_cast<std::size_t>(found - golden.profiles.begin());
  const std::vector<Profile> known = selectable_profiles(golden.input.inputs.format);
  if (std::none_of(known.begin(), known.end(), [&](const Profile& profile) { return profile.name == name; }))
    throw UsageError(fmt::format("--profile {}: there is no such profile; the case has: {}", name,
                                 fmt::join(golden.profiles, ", ")));
  throw InputError(fmt::format("{}: holds no budgets for profile '{}'; it has: {}", golden.input.slug, name,
                               fmt::join(golden.profiles, ", ")));
}

std::string_view trust_text(Trust trust) {
  switch (trust) {
    case Trust::judged:
      return "judged: beyond Delta it fails";
    case Trust::mistrusted:
      return "mistrusted: Delta reaches the value itself; it can fail, it is never a pass";
    case Trust::domain:
      return "domain: an intermediate may overflow legally; not judged";
  }
  return {};
}

std::string_view rule_text(ElementRule rule) {
  switch (rule) {
    case ElementRule::budget:
      return "by class, then |got - exact| <= Delta";
    case ElementRule::budget_exact:
      return "by class, then |got - exact| <= Delta; an exact-case rule gave the value";
    case ElementRule::exact_clause:
      return "exact clause: the contract fixes the value, Delta does not apply";
    case ElementRule::hidden:
      return "hidden key: not judged, or only as an admissible sentinel";
    case ElementRule::special:
      return "by class alone: NaN where NaN is due; where an infinity is due, that or NaN (QK-SPECIAL)";
    case ElementRule::not_finite:
      return "by class alone: an infinity or NaN, never a number (QK-SPECIAL)";
    case ElementRule::free:
      return "free: conforming implementations differ after a NaN or infinity; not judged (QK-SPECIAL)";
  }
  return {};
}

// The growth of Delta as the terms are switched on in a fixed order. Formulas are no plain sums, so a term's share
// depends on the order; the total does not.
void print_terms(const GoldenCase& golden, const Evaluation& evaluation, const StageRows& rows, const Profile& profile,
                 const Element& element, double unit) {
  const auto delta = [&](TermSet terms) {
    const auto budgets = CaseBudgets(golden.input, evaluation.vectors(), profile, terms).of(evaluation.rows(), rows);
    return static_cast<double>(budgets[element.stage].delta[element.place.column]);
  };
  fmt::print("\n{:<6}{:>11}{:>9}{:>14}  {}\n", "term", "adds", "in ulp", "Delta so far",
             "what it is (docs/budgets.md)");
  double before = delta(0);
  if (before <= smallest_subnormal(Format::binary32)) before = 0;  // 0 rounded up
  if (before != 0)
    fmt::print("{:<6}{:>11.3e}{:>9}{:>14.3e}  {}\n", "-", before, short_text(before / unit), before, "always");
  TermSet terms = 0;
  int silent = 0;
  for (const BudgetTerm term : budget_terms()) {
    terms |= TermSet{1} << static_cast<std::uint32_t>(term);
    const double after = delta(terms);
    if (after == before || after <= smallest_subnormal(Format::binary32) || std::isinf(before)) {
      ++silent;
      continue;
    }
    fmt::print("{}", wrapped(fmt::format("{:<6}{:>11.3e}{:>9}{:>14.3e}  ", budget_term_id(term), after - before,
                                         short_text((after - before) / unit), after),
                             budget_term_title(term)));
    before = after;
  }
  fmt::print("{} further terms add nothing here.\n", silent);
}

// Where the contract rounds the stage itself, what stood there before.
void print_point(const GoldenCase& golden, const Evaluation& evaluation, const Element& element) {
  const std::uint32_t point = stage_point(golden.input.contract.terms, element.stage);
  const bool of_attention = (attention_stages & bit(element.stage)) != 0;
  const ExactStages& exact = of_attention ? evaluation.rows() : evaluation.vectors();
  if (point == 0 || exact.before[element.stage].empty()) return;
  const auto length = static_cast<std::size_t>(row_length(element.stage, golden.input.shape));
  const double value = exact.unrounded_row(element.stage, element.place.row, length)[element.place.column];
  fmt::print("point     {:.17g}\n          = {:a}, rounded to {} by the contract\n", value, value,
             parameters(static_cast<Format>(point)).name);
}

int explain(const ExplainArguments& given) {
  check_untrusted_corpus(given.corpus);
  const CorpusReader reader(given.corpus);
  const std::string slug = chosen_case(reader, given.slug);
  const GoldenCase golden = reader.read(slug);
  const Element element = find_element(golden, given);
  const std::size_t chosen = profile_index(golden, given.profile);
  const Profile profile = profile_named(golden.profiles[chosen], golden.own_profiles);
  const GoldenStage& stored = golden.stages[element.stage];

  StageRows rows;
  rows[element.stage] = {element.place.row};
  Evaluation evaluation(golden.input, rows);
  evaluation.evaluate_stored_vectors();
  evaluation.evaluate_rows(attention_rows_of(golden.input, rows));
  const ProvenStage proven = evaluation.result().stages[element.stage];
  const std::size_t column = element.place.column;
  const StoredValue exact = {proven.hi[column], proven.lo[column]};
  const Format format = stage_format(element.stage, golden.input.inputs.format);
  const auto budgets = CaseBudgets(golden.input, evaluation.vectors(), profile).of(evaluation.rows(), rows);
  const float delta = budgets[element.stage].delta[column];
  const double unit = std::isfinite(exact.hi) ? ulp(format, exact.hi) : 1;
  const bool same = proven.expected[column] == stored.values.expected[element.stored] &&
                    proven.lo[column] == stored.values.lo[element.stored] &&
                    (exact.hi == stored.values.hi[element.stored] || std::isnan(exact.hi)) &&
                    delta == stored.budgets[chosen].delta[element.stored];

  fmt::print("{}\n{}", slug, wrapped("  ", golden.description));
  fmt::print("{}",
             wrapped("contract  ", fmt::format("{}: {}", golden.input.contract.name, golden.input.contract.title)));
  fmt::print("stage     {}, clause {} ({})\n", given.stage, stage_clause(element.stage),
             clause_anchor(stage_clause(element.stage)));
  fmt::print("element   {}[{}], row {}\n", given.stage,
             coordinate_text(element.stage, golden.input.shape, element.place), element.place.row);
  fmt::print("{}\n", wrapped("profile   ", fmt::format("{}: {}", profile.name, utf8_line(profile.title))));
  fmt::print("exact     {}\n          = {:a} {:+d}/256 ulp64 (known to 2^-9 ulp64)\n", exact_text(exact), exact.hi,
             exact.lo);
  print_point(golden, evaluation, element);
  fmt::print("rounded   {} ({}) in {}\n", bits_text(format, proven.expected[column]),
             decimal_text(format, decode(format, proven.expected[column])), parameters(format).name);
  fmt::print("Delta     {:.6e} = {:a}, {} ulp of the exact value\n", delta, delta,
             short_text(static_cast<double>(delta) / unit));
  const ElementRule rule = proven.rule[column];
  fmt::print("{}", wrapped("rule      ", rule_text(rule)));
  if (rule == ElementRule::budget || rule == ElementRule::budget_exact)
    fmt::print("{}", wrapped("trust     ", trust_text(budgets[element.stage].trust[column])));
  fmt::print("corpus    {}\n", same ? "holds these same bits" : "HOLDS OTHER BITS than this program computes");
  print_terms(golden, evaluation, rows, profile, element, unit);
  return same ? 0 : 1;
}

}  // namespace

void add_explain(CLI::App& app, Command& command) {
  CLI::App* const sub =
      app.add_subcommand("explain", "The exact value and the whole budget of one element, term by term");
  auto given = std::make_shared<ExplainArguments>();
  sub->add_option("FILE", given->corpus, "Corpus (.h5)")->required();
  sub->add_option("CASE", given->slug, "Case, or a part of its name that no other case has")->required();
  sub->add_option("STAGE", given->stage, "q_proj, k_proj, q_norm, ..., output, as `inspect` lists them")->required();
  sub->add_option("INDEX", given->index, "One index per axis of the stage, e.g. 0,5,17,92")->required();
  sub->add_option("--profile", given->profile, "Machine profile (default: the first of the case)");
  sub->footer(
      "Example: qkcts explain core.h5 qwen3_rmsnorm/norm40/binary32 output 0,3,12,40\n"
      "Exit code: 1 if the file holds other bits than are recomputed");
  sub->callback([given, &command] { command = [given] { return explain(*given); }; });
}

}  // namespace qkcts::cli
