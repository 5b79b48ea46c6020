// SPDX-License-Identifier: Apache-2.0
// A command adapter as a process: lines to its stdin, lines from its stdout, and how it ended if it did. There is no
// deadline here: the worker that owns the command has one.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sys/types.h>

#include "harness/worker_process.hpp"

namespace qkcts {

constexpr std::size_t longest_line = std::size_t{1} << 20;

class CommandProcess {
 public:
  // The process stays in the group of this one and dies with it; its stderr is ours. Throws std::system_error.
  CommandProcess(const std::string& program, const std::vector<std::string>& words);
  ~CommandProcess();  // kills it
  CommandProcess(const CommandProcess&) = delete;
  CommandProcess& operator=(const CommandProcess&) = delete;

  // Sends a line, waits for one; both without the line end. After a death the object is spent.
  std::variant<std::string, WorkerDeath> ask(std::string_view line);
  // Of the line that was returned last, counted from 1.
  int line_number() const { return lines_; }
  // Sends a last line, to which no answer is due, closes its stdin and waits a little for its end.
  void part(std::string_view line);

 private:
  bool take_line(std::string& line);
  bool receive_some();
  bool has_ended() const;
  WorkerDeath death();

  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  std::string received_;
  int lines_ = 0;
};

}  // namespace qkcts
