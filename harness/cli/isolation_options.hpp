// SPDX-License-Identifier: Apache-2.0
// Flags of `run` that say how an adapter is run: how often, with which limits, and which share of the cases.
#pragma once

#include <string>

#include "harness/run_session.hpp"

namespace CLI {
class App;
}

namespace qkcts::cli {

struct IsolationArguments {
  double timeout = 60;
  double processor_time = 0;
  int memory_mib = 0, address_space_mib = 0;
  int respawns = WorkerLimits{}.respawns;
  int repeat = 1;
  int jobs = 1;
  std::string variants = "all";
  std::string shard;
  bool in_process = false;
};

void add_isolation_options(CLI::App& command, IsolationArguments& given);

// Throws UsageError.
void apply_isolation(const IsolationArguments& given, RunRequest& request);

}  // namespace qkcts::cli
