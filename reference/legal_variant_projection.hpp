// SPDX-License-Identifier: Apache-2.0
// Rows of q or k as a matrix makes them, in the arithmetic of a legal variant.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/legal_variant_norm.hpp"

namespace qkcts {

template <typename T>
class LegalProjection {
 public:
  struct Inputs {
    Input rows, weight, weight_bias, gain, bias;
    const qkcts_norm* norm;
    const qkcts_input_rounding* points;
    double row_operand, weight_operand;  // what a matrix unit may drop of either
  };

  LegalProjection(const Case& c, const LegalMachine<T>& machine, const Inputs& inputs)
      : case_(c),
        m_(machine),
        inputs_(inputs),
        norm_(machine, *inputs.norm, T(1), unit_point(*inputs.points), c.contract.terms.rounding.saturate != 0),
        width_(static_cast<std::size_t>(c.inputs.at(inputs.rows).shape.back())),
        x_(read(inputs.rows)),
        weight_(read(inputs.weight)) {
    if (c.contract.terms.projection.bias != 0) {
      weight_bias_ = read(inputs.weight_bias);
    }
    if (normed() && inputs.norm->gain != QKCTS_GAIN_NONE) {
      gains_ = spread(read(inputs.gain));
    }
    if (normed() && inputs.norm->bias_axes != QKCTS_AXES_NONE) {
      biases_ = spread(read(inputs.bias));
    }
    fold_gain();
  }

  // [B, heads, length, D].
  std::vector<T> run(std::int64_t heads, std::int64_t length, std::int64_t head_dim) const {
    const auto columns = static_cast<std::size_t>(heads * head_dim);
    std::vector<T> result(x_.size() / width_ * columns);
    std::vector<T> column(width_);
    for (std::size_t row = 0; row < x_.size() / width_; ++row) {
      const std::vector<T> x(x_.begin() + static_cast<std::ptrdiff_t>(row * width_),
                             x_.begin() + static_cast<std::ptrdiff_t>((row + 1) * width_));
      typename LegalNorm<T>::Shared shared;
      const std::vector<T> entries = normed() ? normalised(x, shared) : x;
      const auto b = static_cast<std::int64_t>(row) / length;
      const auto t = static_cast<std::int64_t>(row) % length;
      for (std::size_t j = 0; j < columns; ++j) {
        for (std::size_t e = 0; e < width_; ++e) {
          column[e] = weight_[e * columns + j];
        }
        const auto h = static_cast<std::int64_t>(j) / head_dim;
        const auto place = ((b * heads + h) * length + t) * head_dim + static_cast<std::int64_t>(j) % head_dim;
        result[static_cast<std::size_t>(place)] = element(entries, column, shared, j);
      }
    }
    return result;
  }

 private:
  using Fold = LegalVariant::Fold;

  bool normed() const { return inputs_.norm->applied != 0; }
  // A bias of the norm stands between the factors and the matrix, and so does a rounding point.
  Fold fold() const {
    return normed() && biases_.empty() && inputs_.points->norm == 0 ? m_.variant().fold : Fold::none;
  }
  bool folds_gain() const { return (fold() == Fold::gain || fold() == Fold::both) && !gains_.empty(); }
  bool root_last() const { return fold() == Fold::root || fold() == Fold::both; }

  static qkcts_vector_rounding unit_point(const qkcts_input_rounding& points) {
    qkcts_vector_rounding inner{};
    inner.unit = points.unit;
    return inner;
  }

  std::vector<T> read(Input input) const {
    std::vector<T> values;
    for (const double value : case_.inputs.at(input).values()) {
      values.push_back(m_.read(value));
    }
    return values;
  }

  // A scalar parameter stands for all entries of a row.
  std::vector<T> spread(std::vector<T> parameter) const {
    return parameter.size() == 1 ? std::vector<T>(width_, parameter[0]) : parameter;
  }

  // The gain multiplied into the matrix when it is loaded.
  void fold_gain() {
    const std::size_t columns = weight_.size() / width_;
    for (std::size_t i = 0; folds_gain() && i < weight_.size(); ++i) {
      weight_[i] = m_.mul(weight_[i], norm_.gain(gains_[i / columns]));
    }
  }

  std::vector<T> normalised(const std::vector<T>& x, typename LegalNorm<T>::Shared& shared) const {
    const std::vector<T> gains = folds_gain() ? std::vector<T>{} : gains_;
    if (!root_last()) {
      std::vector<T> entries = norm_.apply(x, gains, biases_);
      for (T& y : entries) {
        y = m_.point(y, inputs_.points->norm, case_.contract.terms.rounding.saturate != 0);
      }
      return entries;
    }
    shared = norm_.shared(x);
    std::vector<T> entries;
    for (std::size_t e = 0; e < x.size(); ++e) {
      const T c = norm_.centred(x[e], shared);
      entries.push_back(gains.empty() ? c : m_.mul(c, norm_.gain(gains[e])));
    }
    return entries;
  }

  T element(const std::vector<T>& entries, const std::vector<T>& column, const typename LegalNorm<T>::Shared& shared,
            std::size_t j) const {
    const bool starts = !weight_bias_.empty() && m_.variant().weight_bias == LegalVariant::WeightBias::first &&
                        m_.variant().sum != LegalVariant::Sum::matrix && inputs_.row_operand == 0 && !root_last();
    if (starts) {
      // The sum starts from the bias.
      std::vector<T> left = entries, right = column;
      left.insert(left.begin(), weight_bias_[j]);
      right.insert(right.begin(), T(1));
      return m_.dot(left.data(), right.data(), left.size());
    }
    T y = m_.product(entries.data(), column.data(), entries.size(), inputs_.row_operand, inputs_.weight_operand);
    if (root_last()) {
      y = norm_.over_root(y, shared);
    }
    return weight_bias_.empty() ? y : m_.add(y, weight_bias_[j]);
  }

  const Case& case_;
  const LegalMachine<T>& m_;
  Inputs inputs_;
  LegalNorm<T> norm_;
  std::size_t width_;
  std::vector<T> x_, weight_, weight_bias_, gains_, biases_;
};

}  // namespace qkcts
