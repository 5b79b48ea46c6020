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
#include "harness/cli/destination.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts::cli {
namespace {

int list() {
  for (const std::vector<std::string>& names : {shipped_contracts(), model_contracts()})
    for (const std::string& name : names)
      fmt::print("{}", wrapped(fmt::format("{:<30} ", name), shipped_contract(name).title, 31));
  return 0;
}

// Lists get a blank behind each comma, so that they can be wrapped.
std::string spaced(const std::string& json) {
  std::string text;
  for (const char c : json) text += c == ',' ? std::string(", ") : std::string(1, c);
  return text;
}

int show(const std::string& argument, bool as_json) {
  const Contract contract = contract_from_argument(argument);
  if (as_json) {
    fmt::print("{}\n", parse_json(canonical_json(contract), argument).dump(2));
    return 0;
  }
  fmt::print("{}", wrapped(contract.name + "  ", contract.title));
  for (const std::string& source : contract.sources) fmt::print("{}", wrapped("  source: ", source));
  fmt::print("  digest: {}\n\n", contract_digest(contract));
  std::map<std::string, std::string> titles;
  for (const FieldValue& field : contract_field_values(contract.terms)) {
    const Clause* const clause = find_clause(field.clause);
    if (clause != nullptr) titles.emplace(field.clause, clause->title);
    fmt::print("{}", wrapped(fmt::format("{:<13} {:<24} ", field.clause, field.path), spaced(field.json)));
  }
  fmt::print("\n");
  for (const auto& [clause, title] : titles) fmt::print("{}", wrapped(fmt::format("{:<13} ", clause), title));
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
  const auto row = [](std::string_view clause, std::string_view field, const std::string& of_a,
                      const std::string& of_b) {
    const std::string head = fmt::format("{:<13} {:<23} ", clause, field);
    const std::string line = fmt::format("{}{:<20} {}", head, of_a, of_b);
    if (text_columns(line) <= terminal_columns) return line + "\n";
    return wrapped(head, spaced(of_a)) + wrapped(std::string(head.size(), ' '), spaced(of_b));
  };
  fmt::print("{}", row("clause", "field", a.name, b.name));
  for (const ClauseDifference& d : differences) fmt::print("{}", row(d.clause, d.field, d.left, d.right));
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
  if (!derived.layers.empty()) fmt::print(stderr, "{}", wrapped("  other layers differ: ", derived.layers, 4));
  const auto list_fields = [](const char* head, const std::vector<ModelConfigField>& fields) {
    for (const ModelConfigField& field : fields)
      fmt::print(stderr, "{}", wrapped(head, fmt::format("{} {}: {}", field.path, spaced(field.value), field.use), 13));
  };
  list_fields("  used     ", derived.used);
  list_fields("  ignored  ", derived.ignored);
  for (const std::string& what : derived.left_out)
    fmt::print(stderr, "{}", wrapped("  left out of the contract: ", what, 4));
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
      fmt::print(stderr, "{}",
                 wrapped(fmt::format("    {:<13} {:<22} ", field.clause, field.path),
                         fmt::format("{} -> {}", old == before.end() ? "" : spaced(old->second), spaced(field.json))));
}

int from_config(const std::string& path, const ModelConfigRequest& request, const std::string& output) {
  if (!output.empty()) require_destination(output, FileKind::contract, {path});
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
      "which fields it used.\nExit code: 0 done, 2 -o would overwrite something else, 3 the file is refused: a family, "
      "a scaling or a key that is not understood");
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
