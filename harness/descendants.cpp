// SPDX-License-Identifier: Apache-2.0
#include "harness/descendants.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <sys/prctl.h>
#include <sys/wait.h>

namespace qkcts {

void adopt_orphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

namespace {

std::set<pid_t> children_of(const std::string& process) {
  std::set<pid_t> children;
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/" + process + "/task", error), end; !error && task != end;
       task.increment(error)) {
    std::ifstream list(task->path() / "children");
    for (pid_t child = 0; list >> child;) children.insert(child);
  }
  return children;
}

}  // namespace

std::set<pid_t> children_of_this_process() {
  return children_of("self");
}

std::set<pid_t> with_descendants(pid_t pid) {
  std::set<pid_t> all = {pid}, fresh = all;
  while (!fresh.empty()) {
    std::set<pid_t> next;
    for (const pid_t parent : fresh)
      for (const pid_t child : children_of(std::to_string(parent)))
        if (all.insert(child).second) next.insert(child);
    fresh = std::move(next);
  }
  return all;
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
