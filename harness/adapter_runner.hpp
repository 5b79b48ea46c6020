// SPDX-License-Identifier: Apache-2.0
// The host's view of an adapter: open it, run requests, survive what it does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/worker_process.hpp"
#include "harness/worker_protocol.hpp"

namespace qkcts {

// How an adapter is named on the command line: a bundled name or a path, then "?key=value,key=value"; or "cmd:" and a
// command.
struct AdapterSpec {
  std::string given;    // as typed
  std::string path;     // of the shared library, of the command's program, or of the file of results
  std::string options;  // what follows the question mark; of a command all that follows "cmd:"
  AdapterKind kind = AdapterKind::library;
  Strictness strictness = Strictness::what_matters;  // of a command's messages and of results
  std::string wrong_contract;  // of `mutants`: the entry of the catalogue whose contract is asked for, or empty
};

// Throws AdapterError if there is no such bundled adapter, file or program. Bundled libraries are looked for beside the
// program:
// ../lib (build tree) and ../lib/qkcts (installed).
AdapterSpec resolve_adapter(const std::string& given);

// Bundled adapters that exist beside the program.
std::vector<std::string> bundled_adapters();
// Whether it is the name of one, built or not.
bool is_bundled_adapter(const std::string& name);

struct RunOutcome {
  RunAnswer answer;               // valid if `death` is pass
  Verdict death = Verdict::pass;  // else what ended the worker (a fresh one takes the next request)
  std::string death_detail;
  std::string output;  // tail of what the adapter printed meanwhile
};

class AdapterRunner {
 public:
  virtual ~AdapterRunner() = default;
  // Loads, describes, probes and, on request, prepares. Throws AdapterError, also if the worker dies of it.
  virtual OpenAnswer open(bool prepare) = 0;
  virtual RunOutcome run(const RunOrder& order) = 0;
};

// In a worker process; `limits` hold for each call.
std::unique_ptr<AdapterRunner> worker_runner(const AdapterSpec& spec, const WorkerLimits& limits);
// Whose workers are used up (WorkerLimits::respawns): whatever it is given is not_run.
std::unique_ptr<AdapterRunner> spent_runner(int respawns);
// In this process, for debuggers: a crash is the end of the program, there is no timeout.
std::unique_ptr<AdapterRunner> in_process_runner(const AdapterSpec& spec);

}  // namespace qkcts
