// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "conformance/clause.hpp"
#include "conformance/contract_field.hpp"
#include "conformance/json.hpp"
#include "harness/cli/arguments.hpp"
#include "harness/cli/commands.hpp"

namespace qkcts::cli {
namespace {

int list() {
  for (const std::string& name : shipped_contracts()) fmt::print("{:<34} {}\n", name, shipped_contract(name).title);
  return 0;
}

int show(const std::string& argument, bool as_json) {
  const Contract contract = contract_from_argument(argument);
  if (as_json) {
    fmt::print("{}\n", parse_json(canonical_json(contract), argument).dump(2));
    return 0;
  }
  fmt::print("{}  {}\n", contract.name, contract.title);
  for (const std::string& source : contract.sources) fmt::print("  source: {}\n", source);
  fmt::print("  digest: {}\n\n", contract_digest(contract));
  for (const FieldValue& field : contract_field_values(contract.terms)) {
    const Clause* const clause = find_clause(field.clause);
    fmt::print("{:<13} {:<20} {:<22} {}\n", field.clause, field.path, field.json, clause ? clause->title : "");
  }
  return 0;
}

int validate(const std::string& path) {
  const Contract contract = contract_from_argument(path);
  fmt::print("{}: valid contract '{}', digest {}\n", path, contract.name, contract_digest(contract));
  return 0;
}

int diff(const std::string& left, const std::string& right) {
  const Contract a = contract_from_argument(left), b = contract_from_argument(right);
  const std::vector<ClauseDifference> differences = contract_differences(a, b);
  if (differences.empty()) {
    fmt::print("{} and {} have the same clauses.\n", a.name, b.name);
    return 0;
  }
  fmt::print("{:<13} {:<20} {:<22} {}\n", "clause", "field", a.name, b.name);
  for (const ClauseDifference& d : differences) {
    fmt::print("{:<13} {:<20} {:<22} {}\n", d.clause, d.field, d.left, d.right);
  }
  return 1;
}

}  // namespace

void add_contract(CLI::App& app, Command& command) {
  CLI::App* const contract = app.add_subcommand("contract", "List, show, validate and compare contracts");
  contract->require_subcommand(1);
  contract->footer("Example: qkcts contract diff qwen3_rmsnorm llama4_rms_unweighted");

  CLI::App* const list_sub = contract->add_subcommand("list", "Shipped contracts");
  list_sub->footer("Example: qkcts contract list");
  list_sub->callback([&command] { command = list; });

  struct Arguments {
    std::string first, second;
    bool json = false;
  };
  auto given = std::make_shared<Arguments>();
  CLI::App* const show_sub = contract->add_subcommand("show", "One contract, clause by clause");
  show_sub->add_option("CONTRACT", given->first, "Shipped name or JSON file")->required();
  show_sub->add_flag("--json", given->json, "As JSON, every clause written out");
  show_sub->footer("Example: qkcts contract show qwen3_rmsnorm");
  show_sub->callback([given, &command] { command = [given] { return show(given->first, given->json); }; });

  CLI::App* const validate_sub = contract->add_subcommand("validate", "Check a contract of your own");
  validate_sub->add_option("FILE", given->first, "JSON file")->required();
  validate_sub->footer("Example: qkcts contract validate my_model.json\nExit code: 0 valid, 3 not");
  validate_sub->callback([given, &command] { command = [given] { return validate(given->first); }; });

  CLI::App* const diff_sub = contract->add_subcommand("diff", "Clauses in which two contracts differ");
  diff_sub->add_option("A", given->first, "Shipped name or JSON file")->required();
  diff_sub->add_option("B", given->second, "Shipped name or JSON file")->required();
  diff_sub->footer(
      "Example: qkcts contract diff gemma2_softcap gemma3_rmsnorm\nExit code: 0 same clauses, 1 differences");
  diff_sub->callback([given, &command] { command = [given] { return diff(given->first, given->second); }; });
}

}  // namespace qkcts::cli
