// SPDX-License-Identifier: Apache-2.0
// Processes that an adapter started and left behind, also those that moved to a session of their own.
#pragma once

#include <set>

#include <sys/types.h>

namespace qkcts {

// Orphans among our descendants become our children instead of those of init. Once per process is enough.
void adopt_orphans();

std::set<pid_t> children_of_this_process();
// The process, its children, theirs, and so on.
std::set<pid_t> with_descendants(pid_t pid);

// Kills and reaps every child that is not in `known`, until no new one turns up.
void end_children_except(const std::set<pid_t>& known);

}  // namespace qkcts
