// SPDX-License-Identifier: Apache-2.0
// The commands that ask an adapter without giving it a case: adapters, describe.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "conformance/json.hpp"
#include "conformance/mutant_catalogue.hpp"
#include "harness/adapter_description.hpp"
#include "harness/adapter_runner.hpp"
#include "harness/cli/commands.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts::cli {
namespace {

OpenAnswer ask(const AdapterSpec& spec) {
  return worker_runner(spec, WorkerLimits{std::chrono::seconds(60), 0})->open(false);
}

int list_adapters() {
  fmt::print("{:<10} {:<8} {:<37} {}\n", "name", "version", "formats", "usable here");
  for (const std::string& name : bundled_adapters()) {
    try {
      const OpenAnswer answer = ask(resolve_adapter(name));
      const AdapterDescription description = description_from_adapter(answer.description, name);
      std::vector<std::string_view> formats;
      for (const Format format : description.formats) formats.push_back(parameters(format).name);
      fmt::print("{}", wrapped(fmt::format("{:<10} {:<8} {:<37} ", name, description.version,
                                           formats.empty() ? "none" : fmt::format("{}", fmt::join(formats, " "))),
                               answer.probe == QKCTS_OK ? "yes" : "no: " + answer.probe_reason));
    } catch (const std::exception& error) {
      fmt::print("{}", wrapped(fmt::format("{:<10} ", name), error.what()));
    }
  }
  return 0;
}

// What the adapter `mutants` can be asked for.
int list_mutants() {
  for (const CatalogueMutant& mutant : mutant_catalogue())
    if (!mutant.fields.empty() || !mutant.fault.empty())
      fmt::print("{}", wrapped(fmt::format("{} {}: ", mutant.id, mutant.clause), mutant.mutant, 4));
  return 0;
}

int describe(const std::string& argument) {
  const OpenAnswer answer = ask(resolve_adapter(argument));
  const AdapterDescription description = description_from_adapter(answer.description, argument);
  fmt::print("{}\n", parse_json(description.text, argument).dump(2));
  if (answer.probe != QKCTS_OK) fmt::print(stderr, "not usable here: {}\n", answer.probe_reason);
  return 0;
}

}  // namespace

void add_adapters(CLI::App& app, Command& command) {
  CLI::App* const sub = app.add_subcommand("adapters", "Bundled adapters, and whether they are usable here");
  auto mutants = std::make_shared<bool>(false);
  sub->add_flag("--mutants", *mutants,
                "The wrong kernels of the adapter `mutants`: id, clause, what is computed instead");
  sub->footer(
      "Example: qkcts adapters\n"
      "         qkcts run 'mutants?mutant=eps_outside_sqrt' core.h5");
  sub->callback([mutants, &command] { command = *mutants ? list_mutants : list_adapters; });
}

void add_describe(CLI::App& app, Command& command) {
  CLI::App* const sub = app.add_subcommand("describe", "What an adapter says of itself");
  auto adapter = std::make_shared<std::string>();
  sub->add_option("ADAPTER", *adapter, "Shared library or bundled name")->required();
  sub->footer("Example: qkcts describe ./libmine.so\nExit code: 4 if it cannot be loaded or its JSON is faulty");
  sub->callback([adapter, &command] { command = [adapter] { return describe(*adapter); }; });
}

}  // namespace qkcts::cli
