// SPDX-License-Identifier: Apache-2.0
#include "adapters/scalar/norm.hpp"

#include <algorithm>
#include <cmath>

namespace qkcts::scalar {

template <class Real>
Real statistic(const qkcts_norm& norm, std::span<const Real> x, Real mean) {
  const Real n = static_cast<Real>(x.size());
  Real sum = 0;
  if (norm.center != 0 && norm.variance == QKCTS_VARIANCE_ONE_PASS_CLIPPED) {
    for (const Real value : x) sum += value * value;
    const Real variance = std::max(Real{0}, sum / n - mean * mean);
    return norm.statistic == QKCTS_SUM_SQUARE ? variance * n : variance;
  }
  for (const Real value : x) sum += (value - mean) * (value - mean);
  return norm.statistic == QKCTS_SUM_SQUARE ? sum : sum / n;
}

template <class Real>
Real root(std::uint32_t placement, Real t, Real eps) {
  switch (placement) {
    case QKCTS_OUTSIDE_ROOT:
      return std::sqrt(t) + eps;
    case QKCTS_MAX_ROOT:
      return std::max(std::sqrt(t), eps);
    case QKCTS_MAX_INSIDE:
      return std::sqrt(std::max(t, eps));
    default:
      return std::sqrt(t + eps);
  }
}

template <class Real>
Real contract_divisor(const qkcts_norm& norm, std::span<const Real> group, Real mean) {
  return root(norm.root, statistic(norm, group, mean), static_cast<Real>(norm.eps));
}

template <class Real>
void normalise(const qkcts_norm& norm, const NormParameter<Real>& gain, const NormParameter<Real>& bias,
               std::int64_t head_dim, const Divisor<Real>& divisor, const Unit<Real>& unit, std::span<Real> token) {
  const std::size_t width = norm.axis == QKCTS_AXIS_FULL_WIDTH ? token.size() : static_cast<std::size_t>(head_dim);
  for (std::size_t first = 0; first < token.size(); first += width) {
    const std::span<Real> group = token.subspan(first, width);
    Real mean = 0;
    if (norm.center != 0) {
      for (const Real value : group) mean += value;
      mean /= static_cast<Real>(width);
    }
    const Real d = divisor(group, mean);
    for (std::size_t i = 0; i < width; ++i) {
      const auto position = static_cast<std::int64_t>(first + i);
      const std::int64_t head = position / head_dim;
      const std::int64_t lane = position % head_dim;
      Real y = unit(group[i] - mean, d);
      if (norm.gain == QKCTS_GAIN_W) y *= gain.at(head, lane, head_dim);
      if (norm.gain == QKCTS_GAIN_ONE_PLUS_W) y *= Real{1} + gain.at(head, lane, head_dim);
      if (norm.bias_axes != QKCTS_AXES_NONE) y += bias.at(head, lane, head_dim);
      group[i] = y;
    }
  }
}

template float statistic(const qkcts_norm&, std::span<const float>, float);
template double statistic(const qkcts_norm&, std::span<const double>, double);
template float root(std::uint32_t, float, float);
template double root(std::uint32_t, double, double);
template float contract_divisor(const qkcts_norm&, std::span<const float>, float);
template double contract_divisor(const qkcts_norm&, std::span<const double>, double);
template void normalise(const qkcts_norm&, const NormParameter<float>&, const NormParameter<float>&, std::int64_t,
                        const Divisor<float>&, const Unit<float>&, std::span<float>);
template void normalise(const qkcts_norm&, const NormParameter<double>&, const NormParameter<double>&, std::int64_t,
                        const Divisor<double>&, const Unit<double>&, std::span<double>);

}  // namespace qkcts::scalar
