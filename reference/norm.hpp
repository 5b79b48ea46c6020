// SPDX-License-Identifier: Apache-2.0
// Normalization over the reals: c = x - mean or x, t = sum c^2 (or its mean), d = root(t, eps), y = gain c/d + bias;
// around it a clamp before, a constant factor and a clamp after, which also stand where no norm is applied.
//
// Written once for any number type that encloses or equals a real number: the refinement loop uses enclosures, the
// exact-case rules use rationals (all but the root).
#pragma once

#include <cstdint>
#include <vector>

#include "reference/case_values.hpp"
#include "reference/real.hpp"

namespace qkcts {

// x - mean(x) under `center`, else x.
template <class Number>
void center(std::vector<Number>& x, const qkcts_norm& norm) {
  if (norm.center == 0) return;
  Number sum(0);
  for (const Number& entry : x) sum += entry;
  const Number mean = sum / static_cast<unsigned long>(x.size());
  for (Number& entry : x) entry -= mean;
}

template <class Number>
Number statistic(const std::vector<Number>& centred, const qkcts_norm& norm) {
  Number sum(0);
  Number square;
  for (const Number& entry : centred) {
    square = entry;
    square *= square;
    sum += square;
  }
  if (norm.statistic == QKCTS_MEAN_SQUARE) sum /= static_cast<unsigned long>(centred.size());
  return sum;
}

// The factor and the offset of every lane of a group.
template <class Number>
struct NormParameters {
  std::vector<Number> factor;  // empty: 1
  std::vector<Number> offset;  // empty: 0
};

template <class Number>
NormParameters<Number> norm_parameters(const SideValues& side, std::int64_t group) {
  NormParameters<Number> result;
  const qkcts_norm& norm = side.norm;
  const std::int64_t first = side.first_head(group);
  for (std::int64_t h = first; h < first + side.heads_in_group(); ++h) {
    for (std::int64_t lane = 0; lane < side.head_dim; ++lane) {
      if (norm.gain != QKCTS_GAIN_NONE) {
        Number factor(SideValues::parameter(side.gain, norm.gain_axes, h, lane, side.head_dim));
        if (norm.gain == QKCTS_GAIN_ONE_PLUS_W) factor += 1ul;
        result.factor.push_back(factor);
      }
      if (norm.bias_axes != QKCTS_AXES_NONE)
        result.offset.push_back(Number(SideValues::parameter(side.bias, norm.bias_axes, h, lane, side.head_dim)));
    }
  }
  return result;
}

// d as an enclosure. A sum of squares is never negative, whatever its enclosure says.
template <unsigned Digits>
Enclosure<Digits> root(const Enclosure<Digits>& t, const qkcts_norm& norm) {
  const Enclosure<Digits> eps(norm.eps);
  switch (norm.root) {
    case QKCTS_OUTSIDE_ROOT:
      return sqrt_of_nonnegative(t) + eps;
    case QKCTS_MAX_ROOT:
      return maximum(sqrt_of_nonnegative(t), eps);
    case QKCTS_MAX_INSIDE:
      return sqrt_of_nonnegative(maximum(t, eps));
    default:
      return sqrt_of_nonnegative(Enclosure<Digits>(t + eps));
  }
}

// In place: x becomes its normalised form. False if the enclosure of d reaches 0, so that nothing can be said.
template <unsigned Digits>
bool normalise(std::vector<Enclosure<Digits>>& x, const SideValues& side, std::int64_t group) {
  center(x, side.norm);
  const Enclosure<Digits> d = root(statistic(x, side.norm), side.norm);
  if (!is_surely_positive(d)) return false;
  const NormParameters<Enclosure<Digits>> parameters = norm_parameters<Enclosure<Digits>>(side, group);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!parameters.factor.empty()) x[i] *= parameters.factor[i];
    x[i] /= d;
    if (!parameters.offset.empty()) x[i] += parameters.offset[i];
  }
  return true;
}

// In place: everything that the stages q_norm and k_norm stand for.
template <unsigned Digits>
bool transform(std::vector<Enclosure<Digits>>& x, const SideValues& side, std::int64_t group) {
  const qkcts_norm_range& range = side.range;
  if (range.clip_before != 0)
    for (Enclosure<Digits>& entry : x) clamp(entry, range.clip_before);
  if (side.norm.applied != 0 && !normalise(x, side, group)) return false;
  if (range.multiplier != 0 && range.multiplier != 1)
    for (Enclosure<Digits>& entry : x) entry *= Enclosure<Digits>(range.multiplier);
  if (range.clip_after != 0)
    for (Enclosure<Digits>& entry : x) clamp(entry, range.clip_after);
  return true;
}

}  // namespace qkcts
