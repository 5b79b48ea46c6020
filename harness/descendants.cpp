// SPDX-License-Identifier: Apache-2.0
#include "harness/descendants.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <sys/prctl.h>
#include <sys/wait.h>

namespace qkcts {

void adopt_orphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

std::set<pid_t> children_of_this_process() {
  std::set<pid_t> children;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream list(task.path() / "children");
    for (pid_t child = 0; list >> child;) children.insert(child);
  }
  return children;
}

void end_children_except(const std::set<pid_t>& known) {
  // A killed process may have had children, which come to us next; the bound only guards against a fork bomb.
  for (int round = 0; round < 100; ++round) {
    std::set<pid_t> strays = children_of_this_process();
    for (const pid_t pid : known) strays.erase(pid);
    if (strays.empty()) return;
    for (const pid_t pid : strays) kill(pid, SIGKILL);
    for (const pid_t pid : strays) waitpid(pid, nullptr, 0);
  }
}

}  // namespace qkcts
