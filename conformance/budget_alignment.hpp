// SPDX-License-Identifier: Apache-2.0
// Products that a matrix unit aligns by the exponents with which their factors are stored: docs/budgets.md, M2.
#pragma once

#include <algorithm>

namespace qkcts {

// A factor of such a product: how large it may be as the unit reads it, and as how large it counts where it is
// subnormal.
struct UnitFactor {
  double most, smallest;
};

// A number up to `size`, which reading moves by up to `read` unless it is 0, as it is below `least`.
inline UnitFactor unit_factor(double size, double read, double smallest, double least) {
  return {size < least ? 0 : size + read, smallest};
}

// As how large the product may count. Where neither factor can be subnormal this is no more than the size of the
// product, so that a maximum with a sum of sizes need not ask.
inline double stored_size(const UnitFactor& a, const UnitFactor& b) {
  return a.most > 0 && b.most > 0 ? std::max(a.most, a.smallest) * std::max(b.most, b.smallest) : 0;
}

}  // namespace qkcts
