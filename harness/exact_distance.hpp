// SPDX-License-Identifier: Apache-2.0
// |got - z| against Delta without losing a bit: the one place where a verdict's arithmetic happens.
#pragma once

#include <cstdint>

namespace qkcts {

// The exact value as it is stored: z = hi + lo/256 * ulp64(hi).
struct StoredValue {
  double hi = 0;
  std::int16_t lo = 0;
};

struct Distance {
  bool within = false;  // |got - z| <= delta, decided exactly
  double error = 0;     // got - z, within a few ulp of binary64
  double scaled = 0;    // the same times 2^scale, free of underflow
  int scale = 0;

  // |got - z| / unit for a positive finite unit.
  double in_units_of(double unit) const;
};

// got, z.hi and delta are finite, delta >= 0 and at most the largest binary32 number.
Distance distance(double got, StoredValue z, double delta);

// Does direction * z + delta reach threshold (> 0, finite, at most 2^1024 written as largest + ulp/2)? direction is +1
// or -1. threshold_low is added to threshold, so that largest + half an ulp of binary64 can be given exactly.
bool reaches(double direction, StoredValue z, double delta, double threshold, double threshold_low);

}  // namespace qkcts
