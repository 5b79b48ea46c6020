// SPDX-License-Identifier: Apache-2.0
// The rows of attention of a case, with the keys that each of them sees.
#pragma once

#include <vector>

#include "reference/case_values.hpp"

namespace qkcts {

// In the order of the rows of [B,Hq,Lq].
std::vector<RowPlace> all_rows(const Case& c);

}  // namespace qkcts
