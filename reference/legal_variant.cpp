// SPDX-License-Identifier: Apache-2.0
#include "reference/legal_variant.hpp"

#include <fmt/format.h>

#include "reference/legal_variant_attention.hpp"
#include "reference/legal_variant_operand.hpp"

namespace qkcts {
namespace {

template <typename T>
class LegalPipeline {
 public:
  LegalPipeline(const Case& c, const ExactStages& exact, const Profile& profile, const LegalVariant& variant)
      : case_(c), exact_(exact), variant_(variant), machine_(profile, variant_), terms_(c.contract.terms) {
    if (terms_.score.softcap > 0 || terms_.score.bias_order != QKCTS_BIAS_NONE ||
        variant_.scale == LegalVariant::Scale::divide) {
      folds_base_ = false;
      if (variant_.base == LegalVariant::Base::two_folded) {
        variant_.base = LegalVariant::Base::two_scaled;
      }
    }
  }

  StageValues run() {
    const qkcts_shape& s = case_.shape;
    using Side = LegalOperand<T>;
    Side q_side(case_, machine_,
                {Input::q, Input::q_gain, Input::q_bias, Input::q_position_ids, QKCTS_STAGE_Q_NORM, QKCTS_STAGE_Q_ROPE,
                 s.q_heads, s.q_len, terms_.q_norm});
    Side k_side(case_, machine_,
                {Input::k, Input::k_gain, Input::k_bias, Input::k_position_ids, QKCTS_STAGE_K_NORM, QKCTS_STAGE_K_ROPE,
                 s.kv_heads, s.k_len, terms_.k_norm});
    q_ = q_side.run(out_);
    k_ = k_side.run(out_);
    for (const double value : case_.inputs.at(Input::v).values()) {
      v_.push_back(machine_.read(value));
    }
    const Visibility visibility(case_);
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < s.q_heads; ++h) {
        for (std::int64_t t = 0; t < s.q_len; ++t) {
          row(b, h, t, visibility);
        }
      }
    }
    return std::move(out_);
  }

 private:
  // tau as a constant of the accumulator format, times `factor` (log2 e where it is folded).
  T tau() const {
    const qkcts_score& score = terms_.score;
    T value = T(0);
    switch (score.scale_form) {
      case QKCTS_SCALE_INV_SQRT_HEAD_DIM:
        value = inverse_root(static_cast<T>(case_.shape.head_dim));
        break;
      case QKCTS_SCALE_INV_SQRT_SCALAR:
        value = inverse_root(static_cast<T>(score.scale_value));
        break;
      case QKCTS_SCALE_CONSTANT:
        value = static_cast<T>(score.scale_value);
        break;
      default:
        value = machine_.read(case_.inputs.at(Input::scale).value(0));
    }
    return value;
  }

  T inverse_root(T x) const {
    return variant_.root == LegalVariant::Root::reciprocal_root ? machine_.rsqrt(x)
                                                                : machine_.div(T(1), machine_.sqrt(x));
  }

  T temperature() const { return static_cast<T>(terms_.score.temperature > 0 ? terms_.score.temperature : 1); }

  // Dot product with the scale where the variant puts it; `factor` is 1 or log2 e.
  T scaled_dot(const T* q, const T* k, T factor) const {
    const auto n = static_cast<std::size_t>(case_.shape.head_dim);
    T scale = tau();
    if (temperature() != T(1)) {
      scale = machine_.quotient(scale, temperature());
    }
    if (factor != T(1)) {
      scale = machine_.mul(scale, factor);
    }
    std::vector<T> left(q, q + n), right(k, k + n);
    switch (variant_.scale) {
      case LegalVariant::Scale::into_q:
        for (T& x : left) {
          x = machine_.mul(x, scale);
        }
        return machine_.dot(left.data(), right.data(), n);
      case LegalVariant::Scale::into_both: {
        if (scale < T(0)) {
          break;
        }
        const T root = machine_.sqrt(scale);
        for (T& x : left) {
          x = machine_.mul(x, root);
        }
        for (T& x : right) {
          x = machine_.mul(x, root);
        }
        return machine_.dot(left.data(), right.data(), n);
      }
      case LegalVariant::Scale::divide: {
        if (terms_.score.scale_form != QKCTS_SCALE_INV_SQRT_HEAD_DIM) {
          break;
        }
        const T dot = machine_.dot(left.data(), right.data(), n);
        const T s = machine_.quotient(dot, machine_.sqrt(static_cast<T>(n)));
        return temperature() != T(1) ? machine_.quotient(s, temperature()) : s;
      }
      default:
        break;
    }
    return machine_.mul(machine_.dot(left.data(), right.data(), n), scale);
  }

  T capped(T s, T bias) const {
    const bool has_bias = terms_.score.bias_order != QKCTS_BIAS_NONE;
    if (terms_.score.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP) {
      s = machine_.add(s, bias);
    }
    if (terms_.score.softcap > 0) {
      const T c = static_cast<T>(terms_.score.softcap);
      s = machine_.mul(machine_.tanh(machine_.quotient(s, c)), c);
    }
    if (has_bias && terms_.score.bias_order == QKCTS_BIAS_AFTER_SOFTCAP) {
      s = machine_.add(s, bias);
    }
    return s;
  }

  T bias_at(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t key) const {
    if (terms_.score.bias_order == QKCTS_BIAS_NONE) {
      return T(0);
    }
    const Tensor& bias = case_.inputs.at(Input::bias);
    const std::int64_t bb = bias.shape[0] == 1 ? 0 : b;
    const std::int64_t hh = bias.shape[1] == 1 ? 0 : h;
    return machine_.read(
        bias.value(static_cast<std::size_t>(((bb * bias.shape[1] + hh) * bias.shape[2] + t) * bias.shape[3] + key)));
  }

  void row(std::int64_t b, std::int64_t h, std::int64_t t, const Visibility& visibility) {
    const qkcts_shape& s = case_.shape;
    const std::int64_t kv = h / (s.q_heads / s.kv_heads);
    const T* q = q_.data() + ((b * s.q_heads + h) * s.q_len + t) * s.head_dim;
    const auto row_index = static_cast<std::size_t>((b * s.q_heads + h) * s.q_len + t);
    const bool folds = folds_base_ && variant_.base == LegalVariant::Base::two_folded;
    const T log2_e = static_cast<T>(1.44269504088896340735992468100189214L);
    std::vector<std::int64_t> visible;
    std::vector<T> softmax_scores;
    std::vector<const T*> values;
    std::vector<int> directions;
    const double* o = exact_.values[QKCTS_STAGE_OUTPUT].data() + row_index * static_cast<std::size_t>(s.v_head_dim);
    const auto target = static_cast<std::size_t>(variant_.target % static_cast<std::uint32_t>(s.v_head_dim));
    for (std::int64_t key = 0; key < s.k_len; ++key) {
      const T* k = k_.data() + ((b * s.kv_heads + kv) * s.k_len + key) * s.head_dim;
      const T score = scaled_dot(q, k, T(1));
      const bool seen = visibility.visible(b, h, t, key);
      const T after = seen ? capped(score, bias_at(b, h, t, key)) : T(0);
      observe(QKCTS_STAGE_SCORES, score);
      observe(QKCTS_STAGE_CAPPED, after);
      observe(QKCTS_STAGE_MASKED, seen ? after : -std::numeric_limits<T>::infinity());
      const T* v = v_.data() + ((b * s.kv_heads + kv) * s.k_len + key) * s.v_head_dim;
      if (seen) {
        visible.push_back(key);
        softmax_scores.push_back(folds ? scaled_dot(q, k, log2_e) : after);
        values.push_back(v);
        directions.push_back(static_cast<double>(v[target]) >= o[target] ? 1 : -1);
      }
    }
    finish_row(visible, std::move(softmax_scores), std::move(values), std::move(directions), b, kv);
  }

  void finish_row(std::vector<std::int64_t> visible, std::vector<T> scores, std::vector<const T*> values,
                  std::vector<int> directions, std::int64_t b, std::int64_t kv) {
    const qkcts_shape& s = case_.shape;
    const bool empty = visible.empty();
    if (empty && terms_.mask.empty_row != QKCTS_EMPTY_UNIFORM) {
      const T value = terms_.mask.empty_row == QKCTS_EMPTY_NAN ? std::numeric_limits<T>::quiet_NaN() : T(0);
      for (std::int64_t key = 0; key < s.k_len; ++key) {
        observe(QKCTS_STAGE_PROBS, value);
      }
      observe(QKCTS_STAGE_LSE, std::isnan(value) ? value : -std::numeric_limits<T>::infinity());
      for (std::int64_t d = 0; d < s.v_head_dim; ++d) {
        observe(QKCTS_STAGE_OUTPUT, value);
      }
      return;
    }
    for (std::int64_t key = 0; empty && key < s.k_len; ++key) {
      visible.push_back(key);
      scores.push_back(T(0));
      values.push_back(v_.data() + ((b * s.kv_heads + kv) * s.k_len + key) * s.v_head_dim);
      directions.push_back(1);
    }
    LegalRow<T> softmax(machine_, std::move(scores), std::move(values), static_cast<std::size_t>(s.v_head_dim),
                        std::move(directions));
    softmax.run();
    std::size_t next = 0;
    for (std::int64_t key = 0; key < s.k_len; ++key) {
      const bool seen = next < visible.size() && visible[next] == key;
      observe(QKCTS_STAGE_PROBS, seen ? softmax.probabilities()[next++] : T(0));
    }
    observe(QKCTS_STAGE_LSE, empty ? -std::numeric_limits<T>::infinity() : softmax.lse());
    for (const T value : softmax.output()) {
      observe(QKCTS_STAGE_OUTPUT, value);
    }
  }

  void observe(qkcts_stage stage, T value) {
    if ((stages_of(terms_) & bit(stage)) != 0) {
      out_[stage].push_back(static_cast<double>(machine_.store(value, stage_format(stage, case_.inputs.format))));
    }
  }

  const Case& case_;
  const ExactStages& exact_;
  LegalVariant variant_;
  LegalMachine<T> machine_;
  const qkcts_contract& terms_;
  bool folds_base_ = true;
  std::vector<T> q_, k_, v_;
  StageValues out_;
};

}  // namespace

StageValues run_legal_variant(const Case& c, const ExactStages& exact, const Profile& profile,
                              const LegalVariant& variant) {
  if (profile.accumulator == Format::binary64) {
    return LegalPipeline<double>(c, exact, profile, variant).run();
  }
  return LegalPipeline<float>(c, exact, profile, variant).run();
}

std::string LegalVariant::text() const {
  return fmt::format(
      "sum={} variance={} root={} association={} scale={} base={} softmax={} order={} normalise={} quotient={} "
      "row_sum={} functions={} block={} lazy={} store={} target={}",
      static_cast<int>(sum), static_cast<int>(variance), static_cast<int>(root), static_cast<int>(association),
      static_cast<int>(scale), static_cast<int>(base), static_cast<int>(softmax), static_cast<int>(order),
      static_cast<int>(normalise), static_cast<int>(quotient), static_cast<int>(row_sum), static_cast<int>(functions),
      block, lazy, store_weights, target);
}

}  // namespace qkcts
