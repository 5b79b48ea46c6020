// SPDX-License-Identifier: Apache-2.0
// Error of one vector of q or k: an own part per element and a factor that all elements share.
#pragma once

#include <cstdint>
#include <vector>

namespace qkcts {

// A computed vector is x' = (1 + r)(x + xi), |r| <= common, |xi_i| <= error_i. Keeping r apart matters: it multiplies
// the score, not the sum of the magnitudes of the products (docs/budgets.md, S1).
struct VectorError {
  std::vector<double> magnitude;  // |x|, exact to 2^-50
  std::vector<double> error;
  double common = 0;
  bool domain = false;  // not judged, nor anything that depends on it
  // Format (qkcts_format) of the rounding point whose numbers a lane holds, 0: none. Empty: no lane passed a point.
  std::vector<std::uint32_t> held;

  double total(std::size_t i) const { return common * magnitude[i] + (1 + common) * error[i]; }
};

}  // namespace qkcts
