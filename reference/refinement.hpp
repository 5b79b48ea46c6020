// SPDX-License-Identifier: Apache-2.0
// The refinement loop: every element at 128 bits; what does not round alike at both ends again at the next precision;
// from the second on, exact-case rules first; after the last, refusal.
#pragma once

#include <cstddef>

#include "reference/attention.hpp"
#include "reference/real.hpp"

namespace qkcts {

struct RefinementLimits {
  std::size_t levels = level_count;  // how many of level_digits may be used, >= 1; fewer only to test the refusal
};

ReferenceResult refine(const Case& c, const StageRows& rows, const RefinementLimits& limits);

}  // namespace qkcts
