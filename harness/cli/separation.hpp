// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "vectors/golden_case.hpp"

namespace qkcts::cli {

// One line per neighbouring contract: by which stage, and how surely, the case tells the two apart under each profile.
void print_separations(const GoldenCase& golden);

}  // namespace qkcts::cli
