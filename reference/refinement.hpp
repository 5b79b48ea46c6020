// SPDX-License-Identifier: Apache-2.0
// The refinement loop: what the double-word tier leaves open at 128 bits; what does not round alike at both ends again
// at the next precision; from the second on, exact-case rules first; after the last, refusal.
#pragma once

#include <cstddef>
#include <span>

#include "reference/attention.hpp"
#include "reference/double_word_kernels.hpp"
#include "reference/real.hpp"

namespace qkcts {

struct RefinementLimits {
  std::size_t levels = level_count;  // how many of level_digits may be used, >= 1; fewer only to test the refusal
  Tier tier = Tier::automatic;
  std::span<const Kernels> kernels = all_kernels();  // of the double-word tier, which takes the first; none: MPFR
};

ReferenceResult refine(const Case& c, const StageRows& rows, const RefinementLimits& limits);

}  // namespace qkcts
