// SPDX-License-Identifier: Apache-2.0
#include "reference/attention.hpp"

#include "reference/refinement.hpp"

namespace qkcts {

ReferenceResult evaluate(const Case& c, const StageRows& rows) {
  return refine(c, rows, RefinementLimits{});
}

}  // namespace qkcts
