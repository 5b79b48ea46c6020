// SPDX-License-Identifier: Apache-2.0
#include "reference/attention.hpp"

#include "reference/refinement.hpp"

namespace qkcts {

ReferenceResult evaluate(const Case& c, const StageRows& rows, Tier tier) {
  RefinementLimits limits;
  limits.tier = tier;
  return refine(c, rows, limits);
}

}  // namespace qkcts
