// SPDX-License-Identifier: Apache-2.0
// Numbers as reports print them.
#pragma once

#include <cstdint>
#include <string>

#include "conformance/format.hpp"
#include "harness/exact_distance.hpp"

namespace qkcts {

// "0x3f800000", as many digits as the format has.
std::string bits_text(Format format, std::uint64_t pattern);

// Enough decimal digits to tell neighbours of the format apart.
std::string decimal_text(Format format, double value);

// hi + lo/256 ulp64(hi) to 19 significant digits, which the pair carries.
std::string exact_text(StoredValue value);

// At most three significant digits and at most seven characters: "0.412", "1.4e+05", "inf".
std::string short_text(double value);

// "1 case", "2 cases".
std::string counted(std::uint64_t count, std::string_view one, std::string_view many);

}  // namespace qkcts
