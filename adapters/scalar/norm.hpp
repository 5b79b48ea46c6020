// SPDX-License-Identifier: Apache-2.0
// Clauses QK-NORM, QK-EPS, QK-GAIN and QK-VAR: c = x - mean, t = statistic(c), y = gain * c / root(t, eps) + bias.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <qkcts/contract.h>

namespace qkcts::scalar {

// A gain or bias tensor, flattened in memory order; which element belongs to (head, lane) is said by the axes alone.
template <class Real>
struct NormParameter {
  std::uint32_t axes = QKCTS_AXES_NONE;
  std::vector<Real> values;

  Real at(std::int64_t head, std::int64_t lane, std::int64_t head_dim) const {
    switch (axes) {
      case QKCTS_AXES_SCALAR:
        return values[0];
      case QKCTS_AXES_HEAD:
        return values[static_cast<std::size_t>(head)];
      case QKCTS_AXES_HEAD_DIM:
        return values[static_cast<std::size_t>(lane)];
      default:
        return values[static_cast<std::size_t>(head * head_dim + lane)];
    }
  }
};

// t over one group of n = x.size() lanes. `mean` is 0 unless the contract centres.
template <class Real>
Real statistic(const qkcts_norm& norm, std::span<const Real> x, Real mean);

// d(t, eps) of the contract's epsilon placement.
template <class Real>
Real root(std::uint32_t placement, Real t, Real eps);

// d of one group of lanes with the given mean.
template <class Real>
using Divisor = std::function<Real(std::span<const Real> group, Real mean)>;

template <class Real>
Real contract_divisor(const qkcts_norm& norm, std::span<const Real> group, Real mean);

// The normalised entry before the gain, from the centred one and d: c / d, or as QK-ROUND has it.
template <class Real>
using Unit = std::function<Real(Real centred, Real d)>;

template <class Real>
Real quotient(Real centred, Real d) {
  return centred / d;
}

// Normalises all heads of one token in place; `token` is [heads, head_dim].
template <class Real>
void normalise(const qkcts_norm& norm, const NormParameter<Real>& gain, const NormParameter<Real>& bias,
               std::int64_t head_dim, const Divisor<Real>& divisor, const Unit<Real>& unit, std::span<Real> token);

}  // namespace qkcts::scalar
