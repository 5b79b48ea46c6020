// SPDX-License-Identifier: Apache-2.0
// Norm of one vector in the arithmetic of a legal variant.
#pragma once

#include <algorithm>
#include <vector>

#include "reference/legal_variant_machine.hpp"

namespace qkcts {

template <typename T>
class LegalNorm {
 public:
  // `factor`: the constant after the norm; 1: none. `points` are those that the norm passes before its end.
  LegalNorm(const LegalMachine<T>& machine, const qkcts_norm& norm, T factor, const qkcts_vector_rounding& points = {},
            bool saturates = false)
      : m_(machine), norm_(norm), factor_(factor), points_(points), saturates_(saturates) {}

  // What all elements of a vector share: the mean, and the root or its inverse.
  struct Shared {
    T mean = T(0), root = T(1);
    bool inverse = false;
  };
  Shared shared(const std::vector<T>& x) const {
    const Moments moment = moments(x);
    Shared result{moment.mean, T(0), false};
    result.root = m_.point(root_of(moment.statistic, result.inverse), points_.root, saturates_);
    const bool reciprocal = m_.variant().root == LegalVariant::Root::reciprocal || points_.reciprocal != 0;
    if (!result.inverse && reciprocal) {
      result.root = m_.div(T(1), result.root);
      result.inverse = true;
    }
    result.root = m_.point(result.root, points_.reciprocal, saturates_);
    return result;
  }

  T centred(T x, const Shared& shared) const { return norm_.center != 0 ? m_.sub(x, shared.mean) : x; }
  T over_root(T c, const Shared& shared) const {
    return shared.inverse ? m_.mul(c, shared.root) : m_.div(c, shared.root);
  }
  // The factor that a gain w stands for.
  T gain(T w) const { return norm_.gain == QKCTS_GAIN_ONE_PLUS_W ? m_.add(T(1), w) : w; }

  // Gains w and biases of every element; empty: none.
  std::vector<T> apply(const std::vector<T>& x, const std::vector<T>& gains, const std::vector<T>& biases) const {
    const Shared common = shared(x);
    std::vector<T> result;
    result.reserve(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const T* w = gains.empty() ? nullptr : &gains[i];
      const T* bias = biases.empty() ? nullptr : &biases[i];
      const T c = centred(x[i], common);
      if (points_.unit == 0) {
        result.push_back(entry(c, common, w, bias));
      } else {
        // Nothing is left to divide by behind a rounded unit.
        const T unit = m_.point(over_root(c, common), points_.unit, saturates_);
        result.push_back(entry(unit, {T(0), T(1), true}, w, bias));
      }
    }
    return result;
  }

 private:
  bool scaled() const { return factor_ != T(1); }

  T entry(T c, const Shared& common, const T* w, const T* bias) const {
    // The constant factor with one of the others; a bias comes before it.
    using Factor = LegalVariant::Factor;
    Factor place = scaled() ? m_.variant().factor : Factor::with_input;
    if (bias != nullptr || (place == Factor::with_gain && w == nullptr)) {
      place = Factor::last;
    }
    T root = common.root;
    const bool multiplies = common.inverse || (scaled() && place == Factor::with_root);
    if (scaled() && place == Factor::with_input) {
      c = m_.mul(c, factor_);
    } else if (scaled() && place == Factor::with_root) {
      root = common.inverse ? m_.mul(root, factor_) : m_.div(factor_, root);
    }
    const auto divided = [&](T x) { return multiplies ? m_.mul(x, root) : m_.div(x, root); };
    T y = T(0);
    if (w == nullptr) {
      y = divided(c);
    } else {
      T g = gain(*w);
      if (scaled() && place == Factor::with_gain) {
        g = m_.mul(g, factor_);
      }
      switch (m_.variant().association) {
        case LegalVariant::Association::gain_first:
          y = divided(m_.mul(c, g));
          break;
        case LegalVariant::Association::gain_and_root:
          y = m_.mul(c, multiplies ? m_.mul(root, g) : m_.div(g, root));
          break;
        default:
          y = m_.mul(divided(c), g);
      }
    }
    if (bias != nullptr) {
      y = m_.add(y, *bias);
    }
    return scaled() && place == Factor::last ? m_.mul(y, factor_) : y;
  }

  T mean_of(T sum, T n) const {
    return m_.variant().quotient == LegalVariant::Quotient::reciprocal ? m_.mul(sum, m_.div(T(1), n)) : m_.div(sum, n);
  }

  struct Moments {
    T mean, statistic;
  };

  Moments moments(const std::vector<T>& x) const {
    const T n = m_.constant(static_cast<double>(x.size()));
    const bool mean_square = norm_.statistic == QKCTS_MEAN_SQUARE;
    if (norm_.center == 0) {
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
        if (norm_.variance == QKCTS_VARIANCE_ONE_PASS_CLIPPED) {
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
      mean = m_.add(mean, m_.div(difference, m_.constant(static_cast<double>(k + 1))));
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
      const T total = m_.constant(static_cast<double>(count + next));
      const T difference = m_.sub(other_mean, mean);
      const T weight = m_.div(m_.constant(static_cast<double>(next)), total);
      mean = m_.add(mean, m_.mul(difference, weight));
      const T square = m_.mul(m_.mul(difference, difference), m_.mul(m_.constant(static_cast<double>(count)), weight));
      squares = m_.add(m_.add(squares, other_squares), square);
      count += next;
    }
  }

  T root_of(T t, bool& inverse) const {
    const T eps = m_.read(norm_.eps);
    const bool inside = norm_.root == QKCTS_INSIDE_ROOT || norm_.root == QKCTS_MAX_INSIDE;
    inverse = false;
    if (inside) {
      const T a = norm_.root == QKCTS_INSIDE_ROOT ? m_.add(t, eps) : std::max(t, eps);
      if (m_.variant().root == LegalVariant::Root::reciprocal_root && points_.root == 0) {
        inverse = true;
        return m_.rsqrt(a);
      }
      return m_.sqrt(a);
    }
    const T root = m_.sqrt(t);
    return norm_.root == QKCTS_OUTSIDE_ROOT ? m_.add(root, eps) : std::max(root, eps);
  }

  const LegalMachine<T>& m_;
  const qkcts_norm& norm_;
  T factor_;
  qkcts_vector_rounding points_;
  bool saturates_;
};

}  // namespace qkcts
