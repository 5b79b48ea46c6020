// SPDX-License-Identifier: Apache-2.0
// The source tree that this program was built from, asked of git at every build by source_state.cmake.
#pragma once

#include <string>

namespace qkcts {

std::string source_commit();  // empty where there was no git, or no repository
std::string source_tree();    // git's digest of everything in the commit
int source_changes();         // files that differed from the commit; -1: unknown

}  // namespace qkcts
