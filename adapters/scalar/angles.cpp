// SPDX-License-Identifier: Apache-2.0
#include "adapters/scalar/angles.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

namespace qkcts::scalar {

namespace {

using Frequency = std::function<double(std::int64_t pair)>;

// The pairs between a and b lie on the ramp: those before a keep f, those behind b turn slower by the factor.
Frequency yarn(const qkcts_rope& rope, const qkcts_rotation& rotation, double lanes, const Frequency& plain) {
  const auto end = [&](double turns) {
    return lanes * std::log(rotation.original_length / (2 * std::numbers::pi * turns)) / (2 * std::log(rope.theta));
  };
  double a = end(rotation.high), b = end(rotation.low);
  if (rotation.untruncated == 0) {
    a = std::floor(a);
    b = std::ceil(b);
  }
  a = std::max(a, 0.0);
  b = std::min(b, lanes - 1);
  if (a == b) b = a + 0.001;
  return [a, b, factor = rotation.factor, plain](std::int64_t i) {
    const double e = 1 - std::clamp((static_cast<double>(i) - a) / (b - a), 0.0, 1.0);
    return (1 - e) * plain(i) / factor + e * plain(i);
  };
}

double llama3(const qkcts_rotation& rotation, double f) {
  const double wavelength = 2 * std::numbers::pi / f;
  if (wavelength < rotation.original_length / rotation.high) return f;
  if (wavelength > rotation.original_length / rotation.low) return f / rotation.factor;
  const double m = (rotation.original_length / wavelength - rotation.low) / (rotation.high - rotation.low);
  return (1 - m) * f / rotation.factor + m * f;
}

Frequency scaled(const qkcts_rope& rope, const qkcts_rotation& rotation, double lanes) {
  const auto power = [lanes](double theta) {
    return [=](std::int64_t i) { return std::pow(theta, -2 * static_cast<double>(i) / lanes); };
  };
  Frequency plain = power(rope.theta);
  const double factor = rotation.factor;
  switch (rotation.scaling) {
    case QKCTS_SCALING_LINEAR:
      return [=](std::int64_t i) { return plain(i) / factor; };
    case QKCTS_SCALING_NTK:
      return power(rope.theta * std::pow(factor, lanes / (lanes - 2)));
    case QKCTS_SCALING_YARN:
      return yarn(rope, rotation, lanes, plain);
    case QKCTS_SCALING_LLAMA3:
      return [=](std::int64_t i) { return llama3(rotation, plain(i)); };
    case QKCTS_SCALING_PROPORTIONAL:
      return [=](std::int64_t i) { return static_cast<double>(i) < std::floor(factor * lanes / 2) ? plain(i) : 0.0; };
    default:
      return plain;
  }
}

}  // namespace

std::vector<double> frequencies(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t rotated) {
  const Frequency frequency = scaled(rope, rotation, static_cast<double>(rotated));
  std::vector<double> list;
  for (std::int64_t i = 0; i < rotated / 2; ++i) list.push_back(frequency(i));
  return list;
}

}  // namespace qkcts::scalar
