// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/scale.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace qkcts::cuda {

namespace {

double head_scale(const qkcts_contract& terms, const qkcts_shape& shape, const std::vector<double>& learned,
                  std::int64_t h) {
  const qkcts_score& score = terms.score;
  switch (score.scale_form) {
    case QKCTS_SCALE_CONSTANT:
      return score.scale_value;
    case QKCTS_SCALE_INV_SQRT_SCALAR:
      return 1 / std::sqrt(score.scale_value);
    case QKCTS_SCALE_LEARNED_SCALAR: {
      const double entry =
          learned.at(static_cast<std::size_t>(terms.logits.scale_axes == QKCTS_SCALE_PER_HEAD ? h : 0));
      const double cap = terms.logits.scale_exp_cap;
      return cap == 0 ? entry : std::exp(std::min(entry, cap));
    }
    default:
      return 1 / std::sqrt(static_cast<double>(shape.head_dim));
  }
}

double query_factor(const qkcts_logits& logits, std::int32_t position) {
  const double steps = (static_cast<double>(position) + logits.query_shift) / logits.query_period;
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_LOG_RATIO)
    return 1 + logits.query_alpha * std::log(std::max(steps, 1.0));
  // In whole numbers: a quotient of doubles might be rounded up to the next one.
  const auto shifted = position + static_cast<std::int64_t>(logits.query_shift);
  const auto period = static_cast<std::int64_t>(logits.query_period);
  const std::int64_t whole = shifted / period - (shifted % period < 0 ? 1 : 0);
  return 1 + logits.query_alpha * std::log1p(static_cast<double>(whole));
}

// Where the ramp of YaRN has its end for this number of turns.
double ramp_end(const qkcts_rope& rope, const qkcts_rotation& rotation, double rotated, double turns) {
  const double wavelengths = rotation.original_length / (2 * std::numbers::pi * turns);
  return rotated * std::log(wavelengths) / (2 * std::log(rope.theta));
}

double yarn_frequency(const qkcts_rope& rope, const qkcts_rotation& rotation, double rotated, double i, double plain) {
  double begin = ramp_end(rope, rotation, rotated, rotation.high),
         end = ramp_end(rope, rotation, rotated, rotation.low);
  if (rotation.untruncated == 0) {
    begin = std::floor(begin);
    end = std::ceil(end);
  }
  begin = std::max(begin, 0.0);
  end = std::min(end, rotated - 1);
  if (begin == end) end += 0.001;
  const double slowed = std::clamp((i - begin) / (end - begin), 0.0, 1.0);
  return slowed * plain / rotation.factor + (1 - slowed) * plain;
}

double llama3_frequency(const qkcts_rotation& rotation, double plain) {
  const double turns = rotation.original_length * plain / (2 * std::numbers::pi);  // within the original length
  if (turns > rotation.high) return plain;
  if (turns < rotation.low) return plain / rotation.factor;
  const double kept = (turns - rotation.low) / (rotation.high - rotation.low);
  return (1 - kept) * plain / rotation.factor + kept * plain;
}

}  // namespace

std::vector<double> row_scales(const qkcts_contract& terms, const qkcts_shape& shape,
                               const std::vector<double>& learned, const std::vector<std::int32_t>& positions) {
  const double temperature = terms.score.temperature == 0 ? 1 : terms.score.temperature;
  const bool by_query = terms.logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE;
  std::vector<double> scales;
  for (std::int64_t b = 0; b < shape.batch; ++b)
    for (std::int64_t h = 0; h < shape.q_heads; ++h) {
      const double scale = head_scale(terms, shape, learned, h) / temperature;
      for (std::int64_t t = 0; t < shape.q_len; ++t) {
        const auto token = static_cast<std::size_t>(b * shape.q_len + t);
        scales.push_back(by_query ? scale * query_factor(terms.logits, positions.at(token)) : scale);
      }
    }
  return scales;
}

std::vector<double> pair_frequencies(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t rotated) {
  const auto lanes = static_cast<double>(rotated);
  double theta = rope.theta;
  if (rotation.scaling == QKCTS_SCALING_NTK) theta *= std::pow(rotation.factor, lanes / (lanes - 2));
  std::vector<double> frequencies;
  for (std::int64_t pair = 0; pair < rotated / 2; ++pair) {
    const auto i = static_cast<double>(pair);
    double f = std::pow(theta, -2 * i / lanes);
    if (rotation.scaling == QKCTS_SCALING_LINEAR) f /= rotation.factor;
    if (rotation.scaling == QKCTS_SCALING_YARN) f = yarn_frequency(rope, rotation, lanes, i, f);
    if (rotation.scaling == QKCTS_SCALING_LLAMA3) f = llama3_frequency(rotation, f);
    if (rotation.scaling == QKCTS_SCALING_PROPORTIONAL && i >= std::floor(rotation.factor * lanes / 2)) f = 0;
    frequencies.push_back(f);
  }
  return frequencies;
}

}  // namespace qkcts::cuda
