// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// Each contract of the run, clause by clause; with another one beside it, differing fields first and marked.
std::string contract_details(const RunRecord& record, const std::optional<Contract>& against);

}  // namespace qkcts
