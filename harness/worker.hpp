// SPDX-License-Identifier: Apache-2.0
// The worker's side: a process that loads one adapter and does what the host says until the host hangs up.
#pragma once

#include "harness/command_session.hpp"
#include "harness/worker_protocol.hpp"

namespace qkcts {

// One adapter, opened once; used by the worker and by in-process runs alike. Neither call throws: what goes wrong is in
// the answer.
class AdapterSession {
 public:
  OpenAnswer open(const OpenOrder& order);
  RunAnswer run(const RunOrder& order) const;
  // Says goodbye to a command. A library stays loaded.
  void close() { command_.reset(); }

 private:
  std::unique_ptr<AdapterLibrary> library_;
  std::unique_ptr<CommandSession> command_;
};

// Whole life of a worker process; returns its exit status.
int worker_main();

}  // namespace qkcts
