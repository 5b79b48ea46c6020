// SPDX-License-Identifier: Apache-2.0
// The cases of a corpus as requests: what a kernel is given, and nothing of what is expected of it.
#pragma once

#include <cstddef>
#include <string>

#include "conformance/contract.hpp"

namespace qkcts {

struct ExportSelection {
  std::string case_glob = "*";
  std::string profile;             // only cases that hold its budgets; empty: all
  StageSet stages = ~StageSet{0};  // to be asked for, as far as they exist
};

// Returns the number of requests; none: nothing is written. Throws InputError and WriteError.
std::size_t export_requests(const std::string& corpus, const ExportSelection& selection, const std::string& path);

}  // namespace qkcts
