// SPDX-License-Identifier: Apache-2.0
// Norm and rotation of one side in the arithmetic of a legal variant.
#pragma once

#include <algorithm>
#include <vector>

#include "reference/legal_variant_angle.hpp"
#include "reference/legal_variant_machine.hpp"

namespace qkcts {

template <typename T>
class LegalOperand {
 public:
  struct Settings {
    Input values, gain, bias, positions;
    qkcts_stage norm_stage, rope_stage;
    std::int64_t heads, length;
    const qkcts_norm& norm;
    const qkcts_norm_range& range;
  };

  LegalOperand(const Case& c, const LegalMachine<T>& machine, const Settings& settings)
      : case_(c), m_(machine), s_(settings), head_dim_(c.shape.head_dim) {}

  // All rows [B, H, L, D] after the last stage; observed stages are stored into `out`.
  std::vector<T> run(StageValues& out) {
    std::vector<T> x = read(s_.values);
    const qkcts_rope& rope = case_.contract.terms.rope;
    if (rope.order == QKCTS_ROPE_THEN_NORM) {
      rotate(x);
      observe(x, s_.rope_stage, out);
    }
    if (transforms(s_.norm, s_.range)) {
      transform(x);
      observe(x, s_.norm_stage, out);
    }
    if (rope.order == QKCTS_NORM_THEN_ROPE) {
      rotate(x);
      observe(x, s_.rope_stage, out);
    }
    return x;
  }

 private:
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
          const auto at = static_cast<std::size_t>(position * pairs + i);
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
    if (m_.variant().sum == LegalVariant::Sum::fused) {
      turned_a = m_.fma(a, c, -m_.mul(z, s));
      turned_z = m_.fma(z, c, m_.mul(a, s));
    } else {
      turned_a = m_.sub(m_.mul(a, c), m_.mul(z, s));
      turned_z = m_.add(m_.mul(z, c), m_.mul(a, s));
    }
  }

  // Element (h, d) of a parameter tensor.
  static T parameter(const std::vector<T>& values, std::uint32_t axes, std::int64_t head_dim, std::int64_t h,
                     std::int64_t d) {
    switch (axes) {
      case QKCTS_AXES_SCALAR:
        return values[0];
      case QKCTS_AXES_HEAD_DIM:
        return values[static_cast<std::size_t>(d)];
      case QKCTS_AXES_HEAD:
        return values[static_cast<std::size_t>(h)];
      default:
        return values[static_cast<std::size_t>(h * head_dim + d)];
    }
  }

  void normalise(std::vector<T>& x) const {
    const std::vector<T> gain = s_.norm.gain != QKCTS_GAIN_NONE ? read(s_.gain) : std::vector<T>{};
    const std::vector<T> bias = s_.norm.bias_axes != QKCTS_AXES_NONE ? read(s_.bias) : std::vector<T>{};
    const bool full_width = s_.norm.axis == QKCTS_AXIS_FULL_WIDTH;
    for (std::int64_t b = 0; b < case_.shape.batch; ++b) {
      for (std::int64_t t = 0; t < s_.length; ++t) {
        for (std::int64_t h = 0; h < (full_width ? 1 : s_.heads); ++h) {
          std::vector<std::size_t> places;
          for (std::int64_t head = h; head < (full_width ? s_.heads : h + 1); ++head) {
            for (std::int64_t d = 0; d < head_dim_; ++d) {
              places.push_back(static_cast<std::size_t>(((b * s_.heads + head) * s_.length + t) * head_dim_ + d));
            }
          }
          normalise_vector(x, places, h, gain, bias);
        }
      }
    }
  }

  T mean_of(T sum, T n) const {
    return m_.variant().quotient == LegalVariant::Quotient::reciprocal ? m_.mul(sum, m_.div(T(1), n)) : m_.div(sum, n);
  }

  struct Moments {
    T mean, statistic;
  };

  Moments moments(const std::vector<T>& x) const {
    const auto n = static_cast<T>(x.size());
    const bool mean_square = s_.norm.statistic == QKCTS_MEAN_SQUARE;
    if (s_.norm.center == 0) {
      const T sum = m_.dot(x.data(), x.data(), x.size());
      return {T(0), mean_square ? mean_of(sum, n) : sum};
    }
    Moments result{mean_of(m_.sum(x), n), T(0)};
    T squares = T(0);
    switch (m_.variant().variance) {
      case LegalVariant::Variance::welford:
        running(x.data(), x.size(), result.mean, squares);
        break;
      case LegalVariant::Variance::chan:
        merged(x, result.mean, squares);
        break;
      case LegalVariant::Variance::one_pass: {
        if (s_.norm.variance == QKCTS_VARIANCE_ONE_PASS_CLIPPED) {
          const T mean_of_squares = mean_of(m_.dot(x.data(), x.data(), x.size()), n);
          const T difference = m_.sub(mean_of_squares, m_.mul(result.mean, result.mean));
          result.statistic = std::max(T(0), difference);
          if (!mean_square) {
            result.statistic = m_.mul(result.statistic, n);
          }
          return result;
        }
        [[fallthrough]];
      }
      default: {
        std::vector<T> c(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          c[i] = m_.sub(x[i], result.mean);
        }
        squares = m_.dot(c.data(), c.data(), c.size());
      }
    }
    result.statistic = mean_square ? mean_of(squares, n) : squares;
    return result;
  }

  void running(const T* x, std::size_t n, T& mean, T& squares) const {
    mean = x[0];
    squares = T(0);
    for (std::size_t k = 1; k < n; ++k) {
      const T difference = m_.sub(x[k], mean);
      mean = m_.add(mean, m_.div(difference, static_cast<T>(k + 1)));
      squares = m_.add(squares, m_.mul(difference, m_.sub(x[k], mean)));
    }
  }

  // Four running parts, merged one after another into the larger side.
  void merged(const std::vector<T>& x, T& mean, T& squares) const {
    const std::size_t part = std::max<std::size_t>(1, x.size() / 4);
    std::size_t count = std::min(part, x.size());
    running(x.data(), count, mean, squares);
    while (count < x.size()) {
      const std::size_t next = std::min(part, x.size() - count);
      T other_mean, other_squares;
      running(x.data() + count, next, other_mean, other_squares);
      const auto total = static_cast<T>(count + next);
      const T difference = m_.sub(other_mean, mean);
      const T weight = m_.div(static_cast<T>(next), total);
      mean = m_.add(mean, m_.mul(difference, weight));
      const T square = m_.mul(m_.mul(difference, difference), m_.mul(static_cast<T>(count), weight));
      squares = m_.add(m_.add(squares, other_squares), square);
      count += next;
    }
  }

  T root_of(T t, bool& inverse) const {
    const T eps = m_.read(s_.norm.eps);
    const bool inside = s_.norm.root == QKCTS_INSIDE_ROOT || s_.norm.root == QKCTS_MAX_INSIDE;
    inverse = false;
    if (inside) {
      const T a = s_.norm.root == QKCTS_INSIDE_ROOT ? m_.add(t, eps) : std::max(t, eps);
      if (m_.variant().root == LegalVariant::Root::reciprocal_root) {
        inverse = true;
        return m_.rsqrt(a);
      }
      return m_.sqrt(a);
    }
    const T root = m_.sqrt(t);
    return s_.norm.root == QKCTS_OUTSIDE_ROOT ? m_.add(root, eps) : std::max(root, eps);
  }

  void normalise_vector(std::vector<T>& x, const std::vector<std::size_t>& places, std::int64_t first_head,
                        const std::vector<T>& gain, const std::vector<T>& bias) const {
    std::vector<T> values;
    values.reserve(places.size());
    for (const std::size_t place : places) {
      values.push_back(x[place]);
    }
    const Moments moment = moments(values);
    bool inverse = false;
    T d = root_of(moment.statistic, inverse);
    if (!inverse && m_.variant().root == LegalVariant::Root::reciprocal) {
      d = m_.div(T(1), d);
      inverse = true;
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::int64_t h = first_head + static_cast<std::int64_t>(i) / head_dim_;
      const std::int64_t lane = static_cast<std::int64_t>(i) % head_dim_;
      T c = s_.norm.center != 0 ? m_.sub(values[i], moment.mean) : values[i];
      T y = T(0);
      // The constant factor with one of the others; a bias comes before it.
      using Factor = LegalVariant::Factor;
      Factor place = scaled() ? m_.variant().factor : Factor::with_input;
      if (!bias.empty() || (place == Factor::with_gain && gain.empty())) {
        place = Factor::last;
      }
      T root = d;
      const bool multiplies = inverse || (scaled() && place == Factor::with_root);
      if (scaled() && place == Factor::with_input) {
        c = m_.mul(c, factor());
      } else if (scaled() && place == Factor::with_root) {
        root = inverse ? m_.mul(d, factor()) : m_.div(factor(), d);
      }
      if (gain.empty()) {
        y = multiplies ? m_.mul(c, root) : m_.div(c, root);
      } else {
        T g = parameter(gain, s_.norm.gain_axes, head_dim_, h, lane);
        if (s_.norm.gain == QKCTS_GAIN_ONE_PLUS_W) {
          g = m_.add(T(1), g);
        }
        if (scaled() && place == Factor::with_gain) {
          g = m_.mul(g, factor());
        }
        switch (m_.variant().association) {
          case LegalVariant::Association::gain_first:
            y = multiplies ? m_.mul(m_.mul(c, g), root) : m_.div(m_.mul(c, g), root);
            break;
          case LegalVariant::Association::gain_and_root:
            y = m_.mul(c, multiplies ? m_.mul(root, g) : m_.div(g, root));
            break;
          default:
            y = m_.mul(multiplies ? m_.mul(c, root) : m_.div(c, root), g);
        }
      }
      if (!bias.empty()) {
        y = m_.add(y, parameter(bias, s_.norm.bias_axes, head_dim_, h, lane));
      }
      if (scaled() && place == Factor::last) {
        y = m_.mul(y, factor());
      }
      x[places[i]] = y;
    }
  }

  const Case& case_;
  const LegalMachine<T>& m_;
  Settings s_;
  std::int64_t head_dim_;
};

}  // namespace qkcts
