// SPDX-License-Identifier: Apache-2.0
// Rounding to a narrow format of numbers that binary64 rounds to one and the same h.
#pragma once

#include <cstdint>

#include "conformance/format.hpp"

namespace qkcts {

struct Word;

// All z in [w.h + w.l - error, w.h + w.l + error] have RN64(z) = w.h. True, and the bits, if they round alike.
bool encode_near(Format format, const Word& w, double error, std::uint64_t& expected);

}  // namespace qkcts
