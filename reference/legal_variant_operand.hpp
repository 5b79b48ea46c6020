// SPDX-License-Identifier: Apache-2.0
// Projection, norm and rotation of one side in the arithmetic of a legal variant.
#pragma once

#include <algorithm>
#include <vector>

#include "conformance/parameter_place.hpp"
#include "reference/legal_variant_angle.hpp"
#include "reference/legal_variant_machine.hpp"
#include "reference/legal_variant_norm.hpp"
#include "reference/legal_variant_projection.hpp"

namespace qkcts {

template <typename T>
class LegalOperand {
 public:
  struct Settings {
    Input values, gain, bias, positions;
    qkcts_stage projection_stage, norm_stage, rope_stage;  // QKCTS_STAGE_COUNT: none
    std::int64_t heads, length, head_dim;
    const qkcts_norm& norm;
    const qkcts_norm_range& range;
    const qkcts_vector_rounding& points;
    typename LegalProjection<T>::Inputs projection;  // where the contract has one
  };

  LegalOperand(const Case& c, const LegalMachine<T>& machine, const Settings& settings)
      : case_(c),
        m_(machine),
        s_(settings),
        head_dim_(settings.head_dim),
        order_(settings.rope_stage == QKCTS_STAGE_COUNT ? static_cast<std::uint32_t>(QKCTS_ROPE_NONE)
                                                        : c.contract.terms.rope.order) {}

  // All rows [B, H, L, D] after the last stage; observed stages are stored into `out`.
  std::vector<T> run(StageValues& out) {
    std::vector<T> x;
    if (projects()) {
      x = LegalProjection<T>(case_, m_, s_.projection).run(s_.heads, s_.length, head_dim_);
      round_all(x, s_.points.projection);
      observe(x, s_.projection_stage, out);
    } else {
      x = read(s_.values);
    }
    if (order_ == QKCTS_ROPE_THEN_NORM) {
      rotate(x);
      observe(x, s_.rope_stage, out);
    }
    if (transforms(s_.norm, s_.range)) {
      transform(x);
      round_all(x, s_.points.norm);
      observe(x, s_.norm_stage, out);
    }
    if (order_ == QKCTS_NORM_THEN_ROPE) {
      rotate(x);
      observe(x, s_.rope_stage, out);
    }
    return x;
  }

 private:
  bool projects() const {
    return s_.projection_stage != QKCTS_STAGE_COUNT && case_.contract.terms.projection.form == QKCTS_PROJECTION_LINEAR;
  }

  std::vector<T> read(Input input) const {
    std::vector<T> values;
    for (const double value : case_.inputs.at(input).values()) {
      values.push_back(m_.read(value));
    }
    return values;
  }

  void observe(const std::vector<T>& x, qkcts_stage stage, StageValues& out) const {
    const Format format = stage_format(stage, case_.inputs.format);
    for (const T value : x) {
      out[stage].push_back(static_cast<double>(m_.store(value, format)));
    }
  }

  bool saturates() const { return case_.contract.terms.rounding.saturate != 0; }
  T at_point(T value, std::uint32_t point) const { return m_.point(value, point, saturates()); }
  void round_all(std::vector<T>& x, std::uint32_t point) const {
    for (T& value : x) {
      value = at_point(value, point);
    }
  }

  // Clamps and constant factor, around a norm or without one.
  void transform(std::vector<T>& x) const {
    clamp(x, s_.range.clip_before);
    if (s_.norm.applied != 0) {
      normalise(x);
    } else if (scaled()) {
      for (T& value : x) {
        value = m_.mul(value, factor());
      }
    }
    clamp(x, s_.range.clip_after);
  }

  void clamp(std::vector<T>& x, double bound) const {
    if (bound > 0) {
      const T c = m_.constant(bound);
      for (T& value : x) {
        value = std::min(std::max(value, -c), c);
      }
    }
  }

  bool scaled() const { return s_.range.multiplier != 0 && s_.range.multiplier != 1; }
  T factor() const { return m_.constant(s_.range.multiplier); }

  void rotate(std::vector<T>& x) const {
    const qkcts_contract& terms = case_.contract.terms;
    const qkcts_rope& rope = terms.rope;
    const bool computed = terms.rotation.angles == QKCTS_ANGLES_COMPUTED;
    const std::vector<T> cos = computed ? std::vector<T>{} : read(Input::cos);
    const std::vector<T> sin = computed ? std::vector<T>{} : read(Input::sin);
    const Tensor& ids = case_.inputs.at(s_.positions);
    const std::int64_t pairs = (rope.rotated == 0 ? head_dim_ : static_cast<std::int64_t>(rope.rotated)) / 2;
    const std::int64_t first = rope.span == QKCTS_SPAN_LAST ? head_dim_ - 2 * pairs : 0;
    const LegalAngles<T> angles(m_, rope, terms.rotation, 2 * pairs);
    std::vector<T> span(static_cast<std::size_t>(2 * pairs));
    for (std::int64_t row = 0; row < case_.shape.batch * s_.heads * s_.length; ++row) {
      const std::int64_t b = row / (s_.heads * s_.length);
      const std::int64_t t = row % s_.length;
      const auto position = static_cast<std::int64_t>(ids.value(static_cast<std::size_t>(b * s_.length + t)));
      T* lanes = x.data() + row * head_dim_ + first;
      for (std::int64_t i = 0; i < pairs; ++i) {
        const bool interleaved = rope.pairing == QKCTS_INTERLEAVED;
        const std::int64_t a = interleaved ? 2 * i : i;
        const std::int64_t z = interleaved ? 2 * i + 1 : i + pairs;
        std::pair<T, T> wave;
        if (computed) {
          wave = angles.wave(position, i);
        } else {
          const auto rows = static_cast<std::int64_t>(cos.size()) / (pairs * case_.shape.q_heads);
          const std::int64_t first_row =
              terms.rotation.tables == QKCTS_TABLES_PER_HEAD ? row / s_.length % s_.heads * rows : 0;
          const auto at = static_cast<std::size_t>((first_row + position) * pairs + i);
          wave = {cos[at], sin[at]};
        }
        const T s = terms.rotation.sense == QKCTS_SENSE_NEGATIVE ? -wave.second : wave.second;
        const bool apart = terms.rotation.layout == QKCTS_LAYOUT_DEINTERLEAVED;
        turn(lanes[a], lanes[z], wave.first, s, span[static_cast<std::size_t>(apart ? i : a)],
             span[static_cast<std::size_t>(apart ? i + pairs : z)]);
      }
      std::copy(span.begin(), span.end(), lanes);
    }
  }

  void turn(T a, T z, T c, T s, T& turned_a, T& turned_z) const {
    if (const std::uint32_t product = s_.points.rope_product; product != 0) {
      turned_a = m_.sub(at_point(m_.mul(a, c), product), at_point(m_.mul(z, s), product));
      turned_z = m_.add(at_point(m_.mul(z, c), product), at_point(m_.mul(a, s), product));
    } else if (m_.variant().sum == LegalVariant::Sum::fused) {
      turned_a = m_.fma(a, c, -m_.mul(z, s));
      turned_z = m_.fma(z, c, m_.mul(a, s));
    } else {
      turned_a = m_.sub(m_.mul(a, c), m_.mul(z, s));
      turned_z = m_.add(m_.mul(z, c), m_.mul(a, s));
    }
    turned_a = at_point(turned_a, s_.points.rope);
    turned_z = at_point(turned_z, s_.points.rope);
  }

  void normalise(std::vector<T>& x) const {
    const std::vector<T> gain = s_.norm.gain != QKCTS_GAIN_NONE ? read(s_.gain) : std::vector<T>{};
    const std::vector<T> bias = s_.norm.bias_axes != QKCTS_AXES_NONE ? read(s_.bias) : std::vector<T>{};
    const LegalNorm<T> norm(m_, s_.norm, scaled() ? factor() : T(1), s_.points, saturates());
    const bool full_width = s_.norm.axis == QKCTS_AXIS_FULL_WIDTH;
    for (std::int64_t b = 0; b < case_.shape.batch; ++b) {
      for (std::int64_t t = 0; t < s_.length; ++t) {
        for (std::int64_t h = 0; h < (full_width ? 1 : s_.heads); ++h) {
          std::vector<std::size_t> places;
          std::vector<T> values, gains, biases;
          for (std::int64_t head = h; head < (full_width ? s_.heads : h + 1); ++head) {
            for (std::int64_t d = 0; d < head_dim_; ++d) {
              places.push_back(static_cast<std::size_t>(((b * s_.heads + head) * s_.length + t) * head_dim_ + d));
              values.push_back(x[places.back()]);
              if (!gain.empty()) {
                gains.push_back(gain[parameter_place(s_.norm.gain_axes, head, d, head_dim_)]);
              }
              if (!bias.empty()) {
                biases.push_back(bias[parameter_place(s_.norm.bias_axes, head, d, head_dim_)]);
              }
            }
          }
          const std::vector<T> result = norm.apply(values, gains, biases);
          for (std::size_t i = 0; i < places.size(); ++i) {
            x[places[i]] = result[i];
          }
        }
      }
    }
  }

  const Case& case_;
  const LegalMachine<T>& m_;
  Settings s_;
  std::int64_t head_dim_;
  std::uint32_t order_;
};

}  // namespace qkcts
