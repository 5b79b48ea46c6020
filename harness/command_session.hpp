// SPDX-License-Identifier: Apache-2.0
// A command adapter from hello to stop, in the worker's process: orders become lines and files, answers executions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "harness/command_message.hpp"
#include "harness/command_process.hpp"
#include "harness/worker_protocol.hpp"

namespace qkcts {

class CommandSession {
 public:
  CommandSession() = default;
  ~CommandSession();  // stop, if it still listens
  CommandSession(const CommandSession&) = delete;
  CommandSession& operator=(const CommandSession&) = delete;

  // Neither call throws: what goes wrong is in the answer.
  OpenAnswer open(const OpenOrder& order);
  RunAnswer run(const RunOrder& order);

 private:
  std::variant<CommandReply, WorkerDeath> ask(ReplyTo what, const std::string& line);
  std::variant<Execution, WorkerDeath> call(const Case& asked, StageSet stages, const std::string& request);

  std::string folder_;
  Strictness strictness_ = Strictness::what_matters;
  std::unique_ptr<CommandProcess> process_;
  int seq_ = 0;
};

}  // namespace qkcts
