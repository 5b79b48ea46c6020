// SPDX-License-Identifier: Apache-2.0
// QK-SPECIAL in a proven result: classes in the place of what the stand-in has.
#pragma once

#include "conformance/special_values.hpp"
#include "reference/attention.hpp"

namespace qkcts {

// Overwrites the stored elements that special values reach, and the statistics of rows whose weights they reach.
// `result.exact` keeps the numbers of the stand-in: budgets are made of them.
void put_special_values(const SpecialValues& special, ReferenceResult& result);

}  // namespace qkcts
