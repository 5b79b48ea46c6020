// SPDX-License-Identifier: Apache-2.0
// The size of rows beside the epsilon of a norm: what the families that draw such rows have in common.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <qkcts/contract.h>

#include "conformance/format.hpp"

namespace qkcts {

// Multiples of the balanced rms, by token: where epsilon decides, far to both sides, and a row of zeros.
inline constexpr std::array<double, 6> edge_levels = {1, 0.1, 10, 0.01, 100, 0};

// rms of `width` numbers whose statistic, their mean square or sum of squares, is the square of `root`.
double rms_with_root(const qkcts_norm& norm, double root, std::int64_t width);
// rms of `width` numbers of which epsilon takes as much as they do.
double balanced_rms(const qkcts_norm& norm, std::int64_t width);
// How many numbers share a statistic.
std::int64_t norm_width(const qkcts_norm& norm, std::int64_t lanes, std::int64_t heads);

// Why rows of this rms, and of `most` times it, do not fit the format; empty if they do.
std::string rms_fault(double rms, double most, Format format);
// How the `count` numbers of a token, whose squares sum to `squares`, miss the rms that was promised by more than five
// standard errors (Var x^2 = 1.9 for a kurtosis of 2.9); empty if they do not.
std::string rms_broken(std::int64_t token, double squares, std::int64_t count, double wanted, Format format);

}  // namespace qkcts
