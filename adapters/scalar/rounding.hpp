// SPDX-License-Identifier: Apache-2.0
// Clause QK-ROUND: the number of a format nearest to a value, for any format that may stand at a rounding point.
#pragma once

#include <cstdint>

namespace qkcts::scalar {

enum class Overflow : std::uint8_t { saturates, to_infinity };

// roundTiesToEven to `format` (qkcts_format), subnormals included. Beyond the largest finite number, as an infinity is:
// that number, or an infinity (NaN in e4m3fn, which has none). A NaN stays one.
double nearest(std::uint32_t format, Overflow overflow, double value);

}  // namespace qkcts::scalar
