// SPDX-License-Identifier: Apache-2.0
// Scores, softmax and product with v of one row in the arithmetic of a legal variant.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reference/legal_variant_machine.hpp"
#include "reference/legal_variant_score.hpp"

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

  // `scores` as the softmax sees them (in the other base where the variant folds it in), `v` one pointer per key.
  // `directions`: sign of the error of exp for each key. A sink of its own column is the last of the keys.
  LegalRow(const LegalMachine<T>& machine, const qkcts_contract& terms, std::vector<T> scores, std::vector<const T*> v,
           std::size_t length, std::vector<int> directions)
      : m_(machine),
        softmax_(terms.softmax),
        rounding_(terms.rounding),
        convert_(other_base_factor(machine, terms)),
        s_(std::move(scores)),
        v_(std::move(v)),
        length_(length),
        directions_(std::move(directions)) {}

  void run() {
    const LegalVariant& variant = m_.variant();
    afresh_ = variant.afresh && (variant.softmax == Softmax::online || variant.softmax == Softmax::split_renormalised);
    if (afresh_ && variant.functions == LegalVariant::Functions::towards) {
      directions_.assign(directions_.size(), -1);  // the row sum low, the weights that are formed later high
    }
    entered_.resize(s_.size());
    sink_apart_ = softmax_.sink == QKCTS_SINK_COLUMN && s_.size() > 1 && variant.sink == LegalVariant::Sink::apart &&
                  variant.softmax != Softmax::split_lse;
    std::vector<std::size_t> order(s_.size() - (sink_apart_ ? 1 : 0));
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
    if (rounding_.probs != 0) {
      round_probabilities();
    }
  }

  const std::vector<T>& output() const { return output_; }
  const std::vector<T>& probabilities() const { return probabilities_; }
  // In the base of the contract's weights, and in that of its log-sum-exp.
  T lse() const { return lse_; }
  T returned_lse() const {
    if (softmax_.base == softmax_.lse_base) {
      return lse_;
    }
    if (folded_lse_) {
      return *folded_lse_;
    }
    return m_.variant().converts_by_quotient ? m_.quotient(lse_, back()) : m_.mul(lse_, convert_);
  }

 private:
  bool base_two() const { return softmax_.base == QKCTS_BASE_TWO; }
  // From the other base back to that of the contract.
  T back() const { return base_two() ? m_.log2_e() : m_.ln_2(); }
  // Exponential and logarithm in the base of the contract, and in the other one.
  T own_exp(T x, int direction) const { return base_two() ? m_.exp2(x, direction) : m_.exp(x, direction); }
  T other_exp(T x, int direction) const { return base_two() ? m_.exp(x, direction) : m_.exp2(x, direction); }
  T own_log(T x) const { return base_two() ? m_.sum_log2(x) : m_.sum_log(x); }
  T other_log(T x) const { return base_two() ? m_.sum_log(x) : m_.sum_log2(x); }

  // e^(a - b), or 2^(a - b), as the variant forms it. `direction` is the sign of the function's error.
  T weight(T a, T b, int direction) const {
    switch (m_.variant().base) {
      case Base::natural:
        return own_exp(m_.sub(a, b), direction);
      case Base::two_difference:
        return other_exp(m_.mul(m_.sub(a, b), convert_), direction);
      case Base::two_scaled:
        return other_exp(m_.sub(m_.mul(a, convert_), m_.mul(b, convert_)), direction);
      case Base::two_contracted:
        return other_exp(m_.fma(a, convert_, -m_.mul(b, convert_)), direction);
      default:
        return other_exp(m_.sub(a, b), direction);
    }
  }

  // The row sum with a sink that is left out of the maximum.
  T closed(T sum, T shift) const {
    return sink_apart_ ? m_.add(sum, weight(s_.back(), shift, directions_.back())) : sum;
  }

  T stored(T weight) const {
    if (!m_.variant().store_weights) {
      return weight;
    }
    return m_.fed(m_.profile().probability_storage ? m_.store(weight, *m_.profile().probability_storage) : weight,
                  m_.profile().u_p);
  }

  // What enters the row sum.
  T summed(T weight) const {
    return m_.variant().row_sum == LegalVariant::RowSum::stored && !afresh_ ? stored(weight) : weight;
  }

  // The weight of a key as it enters the row sum.
  T entering(std::size_t key, T shift) {
    const T w = weight(s_[key], shift, directions_[key]);
    entered_[key] = {shift, w};
    return w;
  }

  // And once more, when the final shift is known: the same number where that was the shift before.
  T formed_afresh(std::size_t key, T shift) const {
    const auto& [before, w] = entered_[key];
    return before == shift ? w : weight(s_[key], shift, -directions_[key]);
  }

  T rescaling(T from, T to, int direction) const { return afresh_ && from == to ? T(1) : weight(from, to, direction); }

  std::vector<T> product(const std::vector<std::size_t>& keys, const std::vector<T>& weights) const {
    std::vector<T> values(length_);
    std::vector<T> column(keys.size());
    for (std::size_t d = 0; d < length_; ++d) {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        column[i] = v_[keys[i]][d];
      }
      values[d] = m_.product(weights.data(), column.data(), keys.size(), m_.profile().u_p, m_.profile().u_v);
    }
    return values;
  }

  LegalPart<T> offline(const std::vector<std::size_t>& keys) {
    LegalPart<T> part;
    part.shift = s_[keys[0]];
    for (const std::size_t key : keys) {
      part.shift = std::max(part.shift, s_[key]);
    }
    // Weights that are normalised before the product are stored once, as such.
    const bool first = m_.variant().normalise == LegalVariant::Normalise::first && whole(keys);
    std::vector<T> weights, sums;
    for (const std::size_t key : keys) {
      const T w = entering(key, part.shift);
      sums.push_back(first ? w : summed(w));
      weights.push_back(w);
    }
    part.sum = m_.sum(sums);
    if (whole(keys)) {
      part.sum = closed(part.sum, part.shift);
    }
    for (T& w : weights) {
      w = stored(first ? m_.quotient(w, part.sum) : w);
    }
    part.values = product(keys, weights);
    return part;
  }

  bool whole(const std::vector<std::size_t>& keys) const {
    return m_.variant().softmax == Softmax::offline && keys.size() + (sink_apart_ ? 1 : 0) == s_.size();
  }

  LegalPart<T> online(const std::vector<std::size_t>& keys, std::size_t block) {
    LegalPart<T> part;
    part.values.assign(length_, T(0));
    // The slack of the profile is a natural logarithm; scores are in base 2 in one of two cases.
    const bool in_two = base_two() != (m_.variant().base == Base::two_folded);
    const T slack = m_.variant().lazy ? static_cast<T>(m_.profile().shift_slack * (in_two ? 1.442 : 0.999)) : T(0);
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
        const T w = entering(keys[i], maximum);
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
      const T alpha = rescaling(part.shift, maximum, directions_[keys[first - 1]]);
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
      const T scale = rescaling(part.shift, whole.shift, afresh_ ? -1 : 1);
      whole.sum = m_.add(whole.sum, m_.mul(part.sum, scale));
      for (std::size_t d = 0; d < length_; ++d) {
        whole.values[d] = m_.add(whole.values[d], m_.mul(part.values[d], scale));
      }
    }
    return whole;
  }

  // Log-sum-exp of a part in the base of the contract: a folded shift leaves the other base by a product.
  T lse_of(const LegalPart<T>& part) const {
    if (m_.variant().base == Base::two_folded) {
      return m_.mul(m_.add(part.shift, other_log(part.sum)), back());
    }
    return m_.add(part.shift, own_log(part.sum));
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
    const bool other = m_.variant().base != Base::natural;
    const auto merge_weight = [&](T a, T b, int direction) {
      return other ? other_exp(m_.fma(a, convert_, -m_.mul(b, convert_)), direction) : own_exp(m_.sub(a, b), direction);
    };
    for (const T l : lse) {
      scales.push_back(merge_weight(l, top, 1));
    }
    lse_ = m_.add(top, own_log(m_.sum(scales)));
    output_.assign(length_, T(0));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const T scale = merge_weight(lse[i], lse_, -1);
      for (std::size_t d = 0; d < length_; ++d) {
        output_[d] = m_.add(output_[d], m_.mul(scale, m_.quotient(parts[i].values[d], parts[i].sum)));
      }
    }
    const T shift = m_.variant().base == Base::two_folded ? m_.mul(lse_, convert_) : lse_;
    for (std::size_t j = 0; j < s_.size(); ++j) {
      probabilities_.push_back(weight(s_[j], shift, directions_[j]));
    }
  }

  // The output of rounded probabilities; a sink, the last of the keys, has none.
  void round_probabilities() {
    std::vector<std::size_t> keys(probabilities_.size() - (softmax_.sink == QKCTS_SINK_COLUMN ? 1 : 0));
    std::vector<T> weights;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      keys[i] = m_.variant().order == LegalVariant::Order::ascending ? i : keys.size() - 1 - i;
      T& p = probabilities_[keys[i]];
      p = m_.point(p, rounding_.probs, rounding_.saturate != 0);
      weights.push_back(p);
    }
    output_ = product(keys, weights);
  }

  void finish_afresh(const LegalPart<T>& part) {
    const bool first = m_.variant().normalise == LegalVariant::Normalise::first;
    std::vector<std::size_t> keys(s_.size() - (softmax_.sink == QKCTS_SINK_COLUMN ? 1 : 0));
    std::vector<T> weights;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      keys[i] = m_.variant().order == LegalVariant::Order::ascending ? i : keys.size() - 1 - i;
      const T w = formed_afresh(keys[i], part.shift);
      weights.push_back(stored(first ? m_.quotient(w, part.sum) : w));
    }
    output_ = product(keys, weights);
    for (std::size_t d = 0; d < length_ && !first; ++d) {
      output_[d] = m_.quotient(output_[d], part.sum);
    }
  }

  void finish(LegalPart<T> part) {
    if (m_.variant().softmax != Softmax::offline) {
      part.sum = closed(part.sum, part.shift);
    }
    if (afresh_) {
      finish_afresh(part);
    }
    for (std::size_t d = 0; d < length_ && !afresh_; ++d) {
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
    if (m_.variant().base == Base::two_folded) {
      folded_lse_ = m_.add(part.shift, other_log(part.sum));
    }
  }

  const LegalMachine<T>& m_;
  const qkcts_softmax& softmax_;
  const qkcts_rounding& rounding_;
  T convert_;  // to the other base
  std::vector<T> s_;
  std::vector<const T*> v_;
  std::size_t length_;
  std::vector<int> directions_;
  std::vector<T> output_, probabilities_;
  T lse_ = T(0);
  std::optional<T> folded_lse_;  // in the other base, where it was formed there
  bool sink_apart_ = false;
  bool afresh_ = false;
  std::vector<std::pair<T, T>> entered_;  // of every key: the shift when it came in, and its weight then
};

}  // namespace qkcts
