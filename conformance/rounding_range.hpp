// SPDX-License-Identifier: Apache-2.0
// Which numbers the rounding points of a contract (QK-ROUND) can hold.
#pragma once

#include <qkcts/contract.h>

#include "conformance/format.hpp"

namespace qkcts {

// Some point does not saturate, and its range ends before that of `format`: what is finite may overflow there.
bool rounding_ends_before(const qkcts_rounding& rounding, Format format);

}  // namespace qkcts
