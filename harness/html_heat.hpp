// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// One picture per stage: where in its worst case the errors stand.
std::string heat_figures(const RunRecord& record);

}  // namespace qkcts
