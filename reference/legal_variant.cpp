// SPDX-License-Identifier: Apache-2.0
#include "reference/legal_variant.hpp"

#include <fmt/format.h>

#include "reference/legal_variant_attention.hpp"
#include "reference/legal_variant_operand.hpp"
#include "reference/legal_variant_score.hpp"

namespace qkcts {
namespace {

template <typename T>
class LegalPipeline {
 public:
  LegalPipeline(const Case& c, const ExactStages& exact, const Profile& profile, const LegalVariant& variant)
      : case_(c),
        exact_(exact),
        variant_(variant),
        machine_(profile, variant_),
        score_(c, machine_, variant_),
        terms_(c.contract.terms) {
    const qkcts_rounding& rounding = terms_.rounding;
    if (rounding.probs != 0) {
      variant_.store_weights = false;  // the point says where weights are rounded
    }
    if (rounding.scaled_q != 0 || rounding.scores != 0 || rounding.capped != 0 || terms_.score.softcap > 0 ||
        terms_.score.bias_order != QKCTS_BIAS_NONE || terms_.logits.alibi != QKCTS_ALIBI_NONE ||
        variant_.scale == LegalVariant::Scale::divide) {
      folds_base_ = false;
      if (variant_.base == LegalVariant::Base::two_folded) {
        variant_.base = LegalVariant::Base::two_scaled;
      }
    }
  }

  StageValues run() {
    const qkcts_shape& s = case_.shape;
    q_ = LegalOperand<T>(
             case_, machine_,
             {Input::q,
              Input::q_gain,
              Input::q_bias,
              Input::q_position_ids,
              QKCTS_STAGE_Q_PROJ,
              QKCTS_STAGE_Q_NORM,
              QKCTS_STAGE_Q_ROPE,
              s.q_heads,
              s.q_len,
              s.head_dim,
              terms_.q_norm,
              terms_.q_range,
              terms_.rounding.q,
              {Input::q_x, Input::q_weight, Input::q_weight_bias, Input::q_x_gain, Input::q_x_bias,
               &terms_.projection.q_input, &terms_.rounding.q_input, machine_.profile().u_q, machine_.profile().u_k}})
             .run(out_);
    k_ = LegalOperand<T>(
             case_, machine_,
             {Input::k,
              Input::k_gain,
              Input::k_bias,
              Input::k_position_ids,
              QKCTS_STAGE_K_PROJ,
              QKCTS_STAGE_K_NORM,
              QKCTS_STAGE_K_ROPE,
              s.kv_heads,
              s.k_len,
              s.head_dim,
              terms_.k_norm,
              terms_.k_range,
              terms_.rounding.k,
              {Input::k_x, Input::k_weight, Input::k_weight_bias, Input::k_x_gain, Input::k_x_bias,
               &terms_.projection.k_input, &terms_.rounding.k_input, machine_.profile().u_q, machine_.profile().u_k}})
             .run(out_);
    v_ = LegalOperand<T>(case_, machine_,
                         {Input::v,
                          Input::v_gain,
                          Input::v_bias,
                          Input::k_position_ids,
                          QKCTS_STAGE_COUNT,
                          QKCTS_STAGE_V_NORM,
                          QKCTS_STAGE_COUNT,
                          s.kv_heads,
                          s.k_len,
                          s.v_head_dim,
                          terms_.v_norm,
                          terms_.v_range,
                          terms_.rounding.v,
                          {}})
             .run(out_);
    zeros_.assign(static_cast<std::size_t>(s.v_head_dim), T(0));
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

  T slope(std::int64_t h) const {
    return terms_.logits.alibi == QKCTS_ALIBI_NONE
               ? T(0)
               : machine_.read(case_.inputs.at(Input::alibi_slopes).value(static_cast<std::size_t>(h)));
  }

  std::int64_t distance(std::int64_t query, std::int64_t key) const {
    if (terms_.logits.alibi == QKCTS_ALIBI_LAST_KEY) {
      return key - (case_.shape.k_len - 1);
    }
    return terms_.logits.alibi == QKCTS_ALIBI_SYMMETRIC ? -std::abs(key - query) : key - query;
  }

  double position(std::int64_t b, std::int64_t t) const {
    return case_.inputs.has(Input::q_position_ids)
               ? case_.inputs.at(Input::q_position_ids).value(static_cast<std::size_t>(b * case_.shape.q_len + t))
               : 0;
  }

  void row(std::int64_t b, std::int64_t h, std::int64_t t, const Visibility& visibility) {
    const qkcts_shape& s = case_.shape;
    const std::int64_t kv = kv_head_of(terms_, s, h);
    const T* q = q_.data() + ((b * s.q_heads + h) * s.q_len + t) * s.head_dim;
    const auto row_index = static_cast<std::size_t>((b * s.q_heads + h) * s.q_len + t);
    const bool folds = folds_base_ && variant_.base == LegalVariant::Base::two_folded;
    const T other_base = other_base_factor(machine_, terms_);
    std::vector<std::int64_t> visible;
    std::vector<T> softmax_scores;
    std::vector<const T*> values;
    std::vector<int> directions;
    const double* o = exact_.values[QKCTS_STAGE_OUTPUT].data() + row_index * static_cast<std::size_t>(s.v_head_dim);
    const auto target = static_cast<std::size_t>(variant_.target % static_cast<std::uint32_t>(s.v_head_dim));
    for (std::int64_t key = 0; key < s.k_len; ++key) {
      const T* k = k_.data() + ((b * s.kv_heads + kv) * s.k_len + key) * s.head_dim;
      const T score = at_point(score_.scaled_dot(q, k, h, position(b, t), T(1)), terms_.rounding.scores);
      const bool seen = visibility.visible(b, h, t, key);
      const std::int64_t far = distance(t + visibility.offset(b), key);
      T after = seen ? score_.capped(score, bias_at(b, h, t, key), slope(h), far) : T(0);
      if ((stages_of(terms_) & bit(QKCTS_STAGE_CAPPED)) != 0) {
        after = at_point(after, terms_.rounding.capped);
      }
      observe(QKCTS_STAGE_SCORES, score);
      observe(QKCTS_STAGE_CAPPED, after);
      observe(QKCTS_STAGE_MASKED, seen ? after : -std::numeric_limits<T>::infinity());
      const T* v = v_.data() + ((b * s.kv_heads + kv) * s.k_len + key) * s.v_head_dim;
      if (seen) {
        visible.push_back(key);
        softmax_scores.push_back(folds ? score_.scaled_dot(q, k, h, position(b, t), other_base) : after);
        values.push_back(v);
        directions.push_back(static_cast<double>(v[target]) >= o[target] ? 1 : -1);
      }
    }
    T sink = T(0);
    if (terms_.softmax.sink != QKCTS_SINK_NONE) {
      sink = machine_.read(case_.inputs.at(Input::sink).value(static_cast<std::size_t>(h)));
    }
    if (terms_.softmax.sink == QKCTS_SINK_COLUMN) {
      softmax_scores.push_back(folds ? machine_.mul(sink, other_base) : sink);
      values.push_back(zeros_.data());
      directions.push_back(o[target] <= 0 ? 1 : -1);
    }
    finish_row(visible, std::move(softmax_scores), std::move(values), std::move(directions), b, kv, sink);
  }

  void finish_row(std::vector<std::int64_t> visible, std::vector<T> scores, std::vector<const T*> values,
                  std::vector<int> directions, std::int64_t b, std::int64_t kv, T sink) {
    const qkcts_shape& s = case_.shape;
    const bool empty = scores.empty();
    if (empty && terms_.mask.empty_row != QKCTS_EMPTY_UNIFORM) {
      const T value = terms_.mask.empty_row == QKCTS_EMPTY_NAN ? std::numeric_limits<T>::quiet_NaN() : T(0);
      for (std::int64_t key = 0; key < s.k_len; ++key) {
        observe(QKCTS_STAGE_PROBS, value);
      }
      observe(QKCTS_STAGE_LSE, std::isnan(value) ? value : -std::numeric_limits<T>::infinity());
      for (std::int64_t d = 0; d < s.v_head_dim; ++d) {
        observe(QKCTS_STAGE_OUTPUT, beside_hidden_values(value, visible, b, kv, d));
      }
      return;
    }
    for (std::int64_t key = 0; empty && key < s.k_len; ++key) {
      visible.push_back(key);
      scores.push_back(T(0));
      values.push_back(v_.data() + ((b * s.kv_heads + kv) * s.k_len + key) * s.v_head_dim);
      directions.push_back(1);
    }
    LegalRow<T> softmax(machine_, terms_, std::move(scores), std::move(values), static_cast<std::size_t>(s.v_head_dim),
                        std::move(directions));
    softmax.run();
    std::size_t next = 0;
    for (std::int64_t key = 0; key < s.k_len; ++key) {
      const bool seen = next < visible.size() && visible[next] == key;
      observe(QKCTS_STAGE_PROBS, seen ? softmax.probabilities()[next++] : T(0));
    }
    observe(QKCTS_STAGE_LSE, empty ? -std::numeric_limits<T>::infinity() : softmax.returned_lse());
    const bool scaled = terms_.softmax.sink == QKCTS_SINK_POST_SCALE && !empty;
    for (std::int64_t d = 0; d < s.v_head_dim; ++d) {
      const T value = beside_hidden_values(softmax.output()[static_cast<std::size_t>(d)], visible, b, kv, d);
      const T whole = scaled ? scaled_by_sink(value, sink, softmax.lse()) : value;
      observe(QKCTS_STAGE_OUTPUT, at_point(whole, terms_.rounding.output));
    }
  }

  // QK-HIDDEN `propagated`: 0 times the values of the keys that are not among `visible`.
  T beside_hidden_values(T value, const std::vector<std::int64_t>& visible, std::int64_t b, std::int64_t kv,
                         std::int64_t d) const {
    const qkcts_shape& s = case_.shape;
    if (terms_.softmax.hidden_values != QKCTS_HIDDEN_PROPAGATED) {
      return value;
    }
    for (std::int64_t key = 0; key < s.k_len; ++key) {
      if (!std::binary_search(visible.begin(), visible.end(), key)) {
        const auto at = static_cast<std::size_t>(((b * s.kv_heads + kv) * s.k_len + key) * s.v_head_dim + d);
        value = machine_.add(value, machine_.mul(T(0), v_[at]));
      }
    }
    return value;
  }

  T at_point(T value, std::uint32_t point) const { return machine_.point(value, point, terms_.rounding.saturate != 0); }

  // e^x as the variant forms exponents.
  T sink_exp(T a, T b) const {
    const T log2_e = machine_.log2_e();
    switch (variant_.base) {
      case LegalVariant::Base::natural:
        return machine_.exp(machine_.sub(a, b), 1);
      case LegalVariant::Base::two_scaled:
        return machine_.exp2(machine_.sub(machine_.mul(a, log2_e), machine_.mul(b, log2_e)), 1);
      case LegalVariant::Base::two_contracted:
        return machine_.exp2(machine_.fma(a, log2_e, -machine_.mul(b, log2_e)), -1);
      default:
        return machine_.exp2(machine_.mul(machine_.sub(a, b), log2_e), -1);
    }
  }

  T scaled_by_sink(T value, T sink, T lse) const {
    if (variant_.sink == LegalVariant::Sink::ratio) {
      const T e = sink_exp(lse, sink);
      if (std::isfinite(e)) {
        return machine_.mul(value, machine_.quotient(e, machine_.add(T(1), e)));
      }
    }
    const T divisor = machine_.add(T(1), sink_exp(sink, lse));
    return variant_.sink == LegalVariant::Sink::quotient ? machine_.quotient(value, divisor)
                                                         : machine_.mul(value, machine_.div(T(1), divisor));
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
  LegalScore<T> score_;
  const qkcts_contract& terms_;
  bool folds_base_ = true;
  std::vector<T> q_, k_, v_, zeros_;
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
      "row_sum={} factor={} frequency={} temperature={} biases={} sink={} functions={} block={} lazy={} "
      "scaled_positions={} converts_by_quotient={} store={} target={} matrix={},{} feed={} fold={} weight_bias={} "
      "logarithm_first={} afresh={} cut={} aligns_stored={}",
      static_cast<int>(sum), static_cast<int>(variance), static_cast<int>(root), static_cast<int>(association),
      static_cast<int>(scale), static_cast<int>(base), static_cast<int>(softmax), static_cast<int>(order),
      static_cast<int>(normalise), static_cast<int>(quotient), static_cast<int>(row_sum), static_cast<int>(factor),
      static_cast<int>(frequency), static_cast<int>(temperature), static_cast<int>(biases), static_cast<int>(sink),
      static_cast<int>(functions), block, lazy, scaled_positions, converts_by_quotient, store_weights, target,
      matrix_products, matrix_fraction, static_cast<int>(feed), static_cast<int>(fold), static_cast<int>(weight_bias),
      logarithm_first, afresh, cut_at_points, matrix_aligns_stored);
}

}  // namespace qkcts
