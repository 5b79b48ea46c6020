// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace qkcts {

// ln 2 in two parts; the high part has 32 bits, so k * ln2_high is exact for |k| < 2^20. Together they are off by less
// than 2^-86.
constexpr double ln2_high = 0x1.62e42feep-1;
constexpr double ln2_low = 0x1.a39ef35793c76p-33;

}  // namespace qkcts
