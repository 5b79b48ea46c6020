// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <map>

#include "conformance/clause.hpp"
#include "conformance/contract_field.hpp"
#include "conformance/file.hpp"
#include "conformance/json.hpp"
#include "conformance/model_config.hpp"
#include "harness/cli/arguments.hpp"
#include "harness/cli/commands.hpp"

namespace qkcts::cli {
namespace {

int list() {
  for (const std::string& name : shipped_contracts()) fmt::print("{:<34} {}\n", name, shipped_contract(name).title);
  for (const std::string& name : model_contracts()) fmt::print("{:<34} {}\n", name, shipped_contract(name).title);
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

// A shipped contract with the same clauses, or nothing.
std::string same_clauses(const Contract& contract) {
  const std::string digest = contract_digest(contract);
  for (const std::vector<std::string>& names : {shipped_contracts(), model_contracts()})
    for (const std::string& name : names)
      if (contract_digest(shipped_contract(name)) == digest) return name;
  return {};
}

// What was read, and what was not, on stderr: stdout is the contract.
void report(const ModelConfigContract& derived) {
  fmt::print(stderr, "{}, layer {} ({})\n", derived.model_type, derived.layer, derived.kind);
  if (!derived.layers.empty()) fmt::print(stderr, "  other layers differ: {}\n", derived.layers);
  for (const ModelConfigField& field : derived.used)
    fmt::print(stderr, "  used     {:<44} {:<14} {}\n", field.path, field.value, field.use);
  for (const ModelConfigField& field : derived.ignored)
    fmt::print(stderr, "  ignored  {:<44} {:<14} {}\n", field.path, field.value, field.use);
  for (const std::string& what : derived.left_out) fmt::print(stderr, "  left out of the contract: {}\n", what);
  const std::string same = same_clauses(derived.contract);
  if (!same.empty()) {
    fmt::print(stderr, "  the clauses are those of {}\n", same);
    return;
  }
  fmt::print(stderr, "  taken from {}, except:\n", derived.base);
  std::map<std::string, std::string> before;
  for (const FieldValue& field : contract_field_values(shipped_contract(derived.base).terms))
    before[field.path] = field.json;
  for (const FieldValue& field : contract_field_values(derived.contract.terms))
    if (const auto old = before.find(field.path); old == before.end() || old->second != field.json)
      fmt::print(stderr, "    {:<13} {:<22} {} -> {}\n", field.clause, field.path,
                 old == before.end() ? "" : old->second, field.json);
}

int from_config(const std::string& path, const ModelConfigRequest& request, const std::string& output) {
  ModelConfigContract derived = contract_from_config(read_text_file(path), path, request);
  derived.contract.sources.push_back(fmt::format("derived by `qkcts contract from-config` from {}", path));
  const std::string text = parse_json(canonical_json(derived.contract), path).dump(2) + "\n";
  if (output.empty())
    fmt::print("{}", text);
  else
    write_file_atomically(output, text);
  report(derived);
  return 0;
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

  struct ConfigArguments {
    std::string file, section, output;
    std::int64_t layer = -1, length = 0;
  };
  auto config = std::make_shared<ConfigArguments>();
  CLI::App* const config_sub =
      contract->add_subcommand("from-config", "Derive a contract from a model's config.json (Hugging Face)");
  config_sub->add_option("CONFIG", config->file, "config.json of transformers or diffusers")->required();
  config_sub->add_option("--layer", config->layer, "Layer, from 0; default: the first with a contract")
      ->check(CLI::NonNegativeNumber);
  config_sub->add_option("--section", config->section, "Part of the model: text_config, encoder, cross, ...");
  config_sub->add_option("--length", config->length, "Longest sequence, for dynamic frequency scaling")
      ->check(CLI::PositiveNumber);
  config_sub->add_option("-o,--output", config->output, "Write the contract to this file");
  config_sub->footer(
      "Example: qkcts contract from-config config.json --layer 5 -o mine.json\nPrints the contract, and on stderr "
      "which "
      "fields it used.\nExit code: 0 done, 3 the file is refused: a family, a scaling or a key that is not understood");
  config_sub->callback([config, &command] {
    command = [config] {
      ModelConfigRequest request;
      if (config->layer >= 0) request.layer = config->layer;
      if (config->length > 0) request.length = config->length;
      request.section = config->section;
      return from_config(config->file, request, config->output);
    };
  });
}

}  // namespace qkcts::cli
