// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace qkcts {

// How far a plain unfused evaluation in the same format is off at one stage of one case (docs/report_format.md),
// measured as an adapter is. Infinite where it has another class: a score that overflows in binary16.
struct PlainError {
  double max_ulp = 0, p99_ulp = 0, mean_ulp = 0;
  double max_ratio = 0;
};

}  // namespace qkcts
