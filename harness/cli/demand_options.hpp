// SPDX-License-Identifier: Apache-2.0
// What `run` and `check` may be asked for beside verdicts: own limits, known failures, demands on the run.
#pragma once

#include <string>

#include "harness/run_session.hpp"

namespace CLI {
class App;
}

namespace qkcts::cli {

struct DemandArguments {
  std::string limits, known_failures, require;
  Demands demands;
};

void add_demand_options(CLI::App& command, DemandArguments& given);
// Throws InputError for a file that is none of its kind.
void apply_demands(const DemandArguments& given, RunRequest& request);

}  // namespace qkcts::cli
