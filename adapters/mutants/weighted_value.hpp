// SPDX-License-Identifier: Apache-2.0
// One term of the product of weights and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "adapters/scalar/attention.hpp"

namespace qkcts::mutants {

template <class Real>
void add_weighted(scalar::QueryRow<Real>& row, std::int64_t k, std::span<const Real> v) {
  for (std::size_t d = 0; d < v.size(); ++d) row.output[d] += row.probs[k] * v[d];
}

}  // namespace qkcts::mutants
