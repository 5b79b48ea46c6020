// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_extent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkcts {

ValueExtent::ValueExtent(std::size_t length)
    : total_(length),
      worst_read_(length),
      lowest_(length, std::numeric_limits<double>::infinity()),
      highest_(length, -std::numeric_limits<double>::infinity()) {}

void ValueExtent::add(const double* v, const double* error) {
  ++keys_;
  const std::size_t length = total_.size();
  // No two of them overlap; told so, the compiler turns the loop into vector instructions.
  double* __restrict total = total_.data();
  double* __restrict lowest = lowest_.data();
  double* __restrict highest = highest_.data();
  for (std::size_t d = 0; d < length; ++d) {
    total[d] += std::fabs(v[d]);
    lowest[d] = v[d] < lowest[d] ? v[d] : lowest[d];
    highest[d] = v[d] > highest[d] ? v[d] : highest[d];
  }
  for (std::size_t d = 0; error != nullptr && d < length; ++d) {
    total[d] += error[d];
    worst_read_[d] = std::max(worst_read_[d], error[d]);
  }
}

}  // namespace qkcts
