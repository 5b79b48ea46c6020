// SPDX-License-Identifier: Apache-2.0
// Scores, softmax and product with v of one row in the arithmetic of a legal variant.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "reference/legal_variant_machine.hpp"

namespace qkcts {

// Part of a row: weights relative to a shift, their sum, and the product with v.
template <typename T>
struct LegalPart {
  T shift = T(0);  // in the units in which the exponents are formed
  T sum = T(0);
  std::vector<T> values;
};

template <typename T>
class LegalRow {
 public:
  using Base = LegalVariant::Base;
  using Softmax = LegalVariant::Softmax;

  // `scores` as the softmax sees them (times log2 e where the variant folds it in), `v` one pointer per key.
  // `directions`: sign of the error of exp for each key.
  LegalRow(const LegalMachine<T>& machine, std::vector<T> scores, std::vector<const T*> v, std::size_t length,
           std::vector<int> directions)
      : m_(machine), s_(std::move(scores)), v_(std::move(v)), length_(length), directions_(std::move(directions)) {}

  void run() {
    const LegalVariant& variant = m_.variant();
    std::vector<std::size_t> order(s_.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = variant.order == LegalVariant::Order::ascending ? i : order.size() - 1 - i;
    }
    const auto block = static_cast<std::size_t>(variant.block);
    if (variant.softmax == Softmax::offline) {
      finish(offline(order));
    } else if (variant.softmax == Softmax::online) {
      finish(online(order, block));
    } else {
      std::vector<LegalPart<T>> parts;
      for (std::size_t first = 0; first < order.size(); first += block) {
        const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first);
        const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), first + block));
        parts.push_back(offline(std::vector<std::size_t>(begin, end)));
      }
      variant.softmax == Softmax::split_renormalised ? finish(renormalised(parts)) : merged(parts);
    }
  }

  const std::vector<T>& output() const { return output_; }
  const std::vector<T>& probabilities() const { return probabilities_; }
  T lse() const { return lse_; }

 private:
  static T log2_e() { return static_cast<T>(1.44269504088896340735992468100189214L); }
  static T ln_2() { return static_cast<T>(0.693147180559945309417232121458176568L); }

  // e^(a - b) as the variant forms it. `direction` is the sign of the function's error.
  T weight(T a, T b, int direction) const {
    switch (m_.variant().base) {
      case Base::natural:
        return m_.exp(m_.sub(a, b), direction);
      case Base::two_difference:
        return m_.exp2(m_.mul(m_.sub(a, b), log2_e()), direction);
      case Base::two_scaled:
        return m_.exp2(m_.sub(m_.mul(a, log2_e()), m_.mul(b, log2_e())), direction);
      case Base::two_contracted:
        return m_.exp2(m_.fma(a, log2_e(), -m_.mul(b, log2_e())), direction);
      default:
        return m_.exp2(m_.sub(a, b), direction);
    }
  }

  T stored(T weight) const {
    return m_.profile().probability_storage && m_.variant().store_weights
               ? m_.store(weight, *m_.profile().probability_storage)
               : weight;
  }

  // What enters the row sum.
  T summed(T weight) const { return m_.variant().row_sum == LegalVariant::RowSum::stored ? stored(weight) : weight; }

  std::vector<T> product(const std::vector<std::size_t>& keys, const std::vector<T>& weights) const {
    std::vector<T> values(length_);
    std::vector<T> column(keys.size());
    for (std::size_t d = 0; d < length_; ++d) {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        column[i] = v_[keys[i]][d];
      }
      values[d] = m_.dot(weights.data(), column.data(), keys.size());
    }
    return values;
  }

  LegalPart<T> offline(const std::vector<std::size_t>& keys) const {
    LegalPart<T> part;
    part.shift = s_[keys[0]];
    for (const std::size_t key : keys) {
      part.shift = std::max(part.shift, s_[key]);
    }
    std::vector<T> weights, sums;
    for (const std::size_t key : keys) {
      const T w = weight(s_[key], part.shift, directions_[key]);
      sums.push_back(summed(w));
      weights.push_back(w);
    }
    part.sum = m_.sum(sums);
    for (T& w : weights) {
      w = stored(m_.variant().normalise == LegalVariant::Normalise::first && whole(keys) ? m_.quotient(w, part.sum)
                                                                                         : w);
    }
    part.values = product(keys, weights);
    return part;
  }

  bool whole(const std::vector<std::size_t>& keys) const {
    return m_.variant().softmax == Softmax::offline && keys.size() == s_.size();
  }

  LegalPart<T> online(const std::vector<std::size_t>& keys, std::size_t block) const {
    LegalPart<T> part;
    part.values.assign(length_, T(0));
    const T slack = m_.variant().lazy ? static_cast<T>(m_.profile().shift_slack * 0.999) *
                                            (m_.variant().base == Base::two_folded ? log2_e() : T(1))
                                      : T(0);
    for (std::size_t first = 0; first < keys.size(); first += block) {
      const std::size_t last = std::min(keys.size(), first + block);
      T maximum = first == 0 ? s_[keys[0]] : part.shift;
      for (std::size_t i = first; i < last; ++i) {
        maximum = std::max(maximum, s_[keys[i]]);
      }
      if (first > 0 && maximum <= part.shift + slack) {
        maximum = part.shift;
      }
      std::vector<T> weights, sums;
      std::vector<std::size_t> here;
      for (std::size_t i = first; i < last; ++i) {
        const T w = weight(s_[keys[i]], maximum, directions_[keys[i]]);
        sums.push_back(summed(w));
        weights.push_back(stored(w));
        here.push_back(keys[i]);
      }
      const std::vector<T> values = product(here, weights);
      const T sum = m_.sum(sums);
      if (first == 0) {
        part = {maximum, sum, values};
        continue;
      }
      const T alpha = weight(part.shift, maximum, directions_[keys[first - 1]]);
      part.shift = maximum;
      part.sum = m_.add(m_.mul(part.sum, alpha), sum);
      for (std::size_t d = 0; d < length_; ++d) {
        part.values[d] = m_.add(m_.mul(part.values[d], alpha), values[d]);
      }
    }
    return part;
  }

  LegalPart<T> renormalised(const std::vector<LegalPart<T>>& parts) const {
    LegalPart<T> whole{parts[0].shift, T(0), std::vector<T>(length_, T(0))};
    for (const LegalPart<T>& part : parts) {
      whole.shift = std::max(whole.shift, part.shift);
    }
    for (const LegalPart<T>& part : parts) {
      const T scale = weight(part.shift, whole.shift, 1);
      whole.sum = m_.add(whole.sum, m_.mul(part.sum, scale));
      for (std::size_t d = 0; d < length_; ++d) {
        whole.values[d] = m_.add(whole.values[d], m_.mul(part.values[d], scale));
      }
    }
    return whole;
  }

  // Natural log-sum-exp of a part: its shift leaves base 2 by a product with ln 2.
  T lse_of(const LegalPart<T>& part) const {
    switch (m_.variant().base) {
      case Base::two_folded:
        return m_.mul(m_.add(part.shift, m_.log2(part.sum)), ln_2());
      default:
        return m_.add(part.shift, m_.log(part.sum));
    }
  }

  // Every part is normalised and stored with its log-sum-exp; weights are e^(L_i - L).
  void merged(const std::vector<LegalPart<T>>& parts) {
    std::vector<T> lse, scales;
    lse.reserve(parts.size());
    scales.reserve(parts.size());
    for (const LegalPart<T>& part : parts) {
      lse.push_back(lse_of(part));
    }
    const T top = *std::max_element(lse.begin(), lse.end());
    const bool base_two = m_.variant().base != Base::natural;
    const auto merge_weight = [&](T a, T b, int direction) {
      return base_two ? m_.exp2(m_.fma(a, log2_e(), -m_.mul(b, log2_e())), direction) : m_.exp(m_.sub(a, b), direction);
    };
    for (const T l : lse) {
      scales.push_back(merge_weight(l, top, 1));
    }
    lse_ = m_.add(top, m_.log(m_.sum(scales)));
    output_.assign(length_, T(0));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const T scale = merge_weight(lse[i], lse_, -1);
      for (std::size_t d = 0; d < length_; ++d) {
        output_[d] = m_.add(output_[d], m_.mul(scale, m_.quotient(parts[i].values[d], parts[i].sum)));
      }
    }
    const T shift = m_.variant().base == Base::two_folded ? m_.mul(lse_, log2_e()) : lse_;
    for (std::size_t j = 0; j < s_.size(); ++j) {
      probabilities_.push_back(weight(s_[j], shift, directions_[j]));
    }
  }

  void finish(const LegalPart<T>& part) {
    for (std::size_t d = 0; d < length_; ++d) {
      const bool done =
          m_.variant().normalise == LegalVariant::Normalise::first && m_.variant().softmax == Softmax::offline;
      output_.push_back(done ? part.values[d] : m_.quotient(part.values[d], part.sum));
    }
    for (std::size_t j = 0; j < s_.size(); ++j) {
      const T w = weight(s_[j], part.shift, directions_[j]);
      probabilities_.push_back(
          m_.quotient(m_.variant().row_sum == LegalVariant::RowSum::stored ? stored(w) : w, part.sum));
    }
    lse_ = lse_of(part);
  }

  const LegalMachine<T>& m_;
  std::vector<T> s_;
  std::vector<const T*> v_;
  std::size_t length_;
  std::vector<int> directions_;
  std::vector<T> output_, probabilities_;
  T lse_ = T(0);
};

}  // namespace qkcts
