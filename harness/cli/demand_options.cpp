// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/demand_options.hpp"

#include <CLI/CLI.hpp>

#include "conformance/file.hpp"

namespace qkcts::cli {

void add_demand_options(CLI::App& command, DemandArguments& given) {
  command.add_option("--limits", given.limits, "Own tolerances (JSON), judged beside the proven budgets")
      ->type_name("FILE");
  command
      .add_option("--known-failures", given.known_failures,
                  "Failures (JSON) that do not fail the run, each with a reason and a last day")
      ->type_name("FILE");
  command.add_option("--require", given.require, "full: a case that is declared unsupported fails the run")
      ->check(CLI::IsMember({"full"}).description(""))
      ->type_name("full");
  command
      .add_option("--require-implementation", given.demands.implementation,
                  "What ran must match this glob: no fallback passes unseen")
      ->type_name("GLOB");
  command.add_flag("--allow-not-run", given.demands.allow_not_run,
                   "Cases that were not run do not fail the run: for machines without the device");
}

void apply_demands(const DemandArguments& given, RunRequest& request) {
  if (!given.limits.empty()) request.options.limits = limits_from_json(read_text_file(given.limits), given.limits);
  if (!given.known_failures.empty())
    request.known_failures = known_failures_from_json(read_text_file(given.known_failures), given.known_failures);
  request.demands = given.demands;
  request.demands.everything = !given.require.empty();
}

}  // namespace qkcts::cli
