// SPDX-License-Identifier: Apache-2.0
// Composition: errors flow from stage to stage in the accumulator format; an observed stage adds its storage rounding.
#include "conformance/budget.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "conformance/budget_cap.hpp"
#include "conformance/budget_head.hpp"
#include "conformance/budget_operand.hpp"
#include "conformance/budget_output.hpp"
#include "conformance/budget_score.hpp"
#include "conformance/budget_sink.hpp"
#include "conformance/budget_softmax.hpp"
#include "conformance/budget_writer.hpp"

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double ln_2 = 0x1.62e42fefa39efp-1;

struct RowCoordinates {
  std::int64_t b, h, t;
};

RowCoordinates coordinates(std::uint32_t row, std::int64_t heads, std::int64_t length) {
  const auto r = static_cast<std::int64_t>(row);
  return {r / (heads * length), r / length % heads, r % length};
}

// Blocks of `size` neighbouring keys that hold one of the keys.
double blocks_of(const std::vector<std::int64_t>& keys, std::int64_t size) {
  std::int64_t count = 0;
  std::int64_t last = -1;
  for (const std::int64_t key : keys) {
    if (key / size != last) {
      last = key / size;
      ++count;
    }
  }
  return static_cast<double>(count);
}

// What the softmax of one row is made of.
struct RowKeys {
  std::vector<std::int64_t> visible;
  std::vector<double> scores, errors, probabilities;  // in natural units; a sink comes after the visible keys
  bool uniform = false;
};

class Composition {
 public:
  Composition(const Case& c, const ExactStages& exact, const StageRows& rows, const Profile& profile, TermSet terms)
      : case_(c),
        terms_(c.contract.terms),
        exact_(exact),
        arithmetic_(profile, terms),
        writer_(c, rows, arithmetic_),
        visibility_(c),
        tokens_(c),
        q_(c, exact, OperandSide::q, arithmetic_),
        k_(c, exact, OperandSide::k, arithmetic_),
        cap_(cap_terms(c, arithmetic_)),
        unit_(terms_.softmax.base == QKCTS_BASE_TWO ? ln_2 : 1),
        lse_unit_(terms_.softmax.lse_base == QKCTS_BASE_TWO ? ln_2 : 1) {
    for (std::int64_t h = 0; h < c.shape.q_heads; ++h) {
      scales_.push_back(scale_terms(c, h, arithmetic_));
    }
  }

  std::array<StageBudget, QKCTS_STAGE_COUNT> run() {
    operand_stages(q_, QKCTS_STAGE_Q_NORM, QKCTS_STAGE_Q_ROPE);
    operand_stages(k_, QKCTS_STAGE_K_NORM, QKCTS_STAGE_K_ROPE);
    attention_rows();
    return writer_.take();
  }

 private:
  void operand_stages(OperandBudget& side, qkcts_stage norm_stage, qkcts_stage rope_stage) {
    const std::array stages = {norm_stage, rope_stage};
    const auto exact_row = [&](qkcts_stage stage, std::uint32_t row) {
      return exact_.values[stage].data() + static_cast<std::int64_t>(row) * case_.shape.head_dim;
    };
    for (const std::uint32_t row : writer_.rows_of(stages)) {
      const RowCoordinates at = coordinates(row, side.heads(), side.length());
      if (norm_stage == QKCTS_STAGE_K_NORM && !tokens_.seen(at.b, at.t)) {
        for (const qkcts_stage stage : stages) {
          if (writer_.wants(stage, row)) {
            writer_.put_exact(stage, case_.shape.head_dim);
          }
        }
        continue;
      }
      const OperandRow operand = side.row(at.b, at.h, at.t);
      if (writer_.wants(norm_stage, row)) {
        writer_.put_vector(norm_stage, exact_row(norm_stage, row), *operand.norm);
      }
      if (writer_.wants(rope_stage, row)) {
        writer_.put_vector(rope_stage, exact_row(rope_stage, row), *operand.rope);
      }
    }
  }

  void attention_rows() {
    constexpr std::array stages = {QKCTS_STAGE_SCORES, QKCTS_STAGE_CAPPED, QKCTS_STAGE_MASKED,
                                   QKCTS_STAGE_PROBS,  QKCTS_STAGE_LSE,    QKCTS_STAGE_OUTPUT};
    // Ascending rows visit the query heads of one batch entry one after another; those that share keys and values are
    // neighbours where heads share them in blocks, else all heads of the entry are kept.
    const bool blocks = terms_.heads.mapping == QKCTS_HEADS_BLOCK;
    std::vector<std::optional<HeadData>> held(static_cast<std::size_t>(case_.shape.kv_heads));
    std::int64_t last_b = -1, last_head = -1;
    for (const std::uint32_t row : writer_.rows_of(stages)) {
      const RowCoordinates at = coordinates(row, case_.shape.q_heads, case_.shape.q_len);
      const std::int64_t kv_head = kv_head_of(terms_, case_.shape, at.h);
      if (at.b != last_b || (blocks && kv_head != last_head)) {
        std::fill(held.begin(), held.end(), std::nullopt);
      }
      last_b = at.b;
      last_head = kv_head;
      std::optional<HeadData>& data = held[static_cast<std::size_t>(kv_head)];
      if (!data) {
        data = head_data(case_, at.b, kv_head, k_, tokens_, arithmetic_);
      }
      attention_row(row, at, *data);
    }
  }

  Addend bias(const RowCoordinates& at, std::int64_t key) const {
    if (terms_.score.bias_order == QKCTS_BIAS_NONE) {
      return {};
    }
    const Tensor& bias = case_.inputs.at(Input::bias);
    const std::int64_t b = bias.shape[0] == 1 ? 0 : at.b;
    const std::int64_t h = bias.shape[1] == 1 ? 0 : at.h;
    const double value =
        bias.value(static_cast<std::size_t>(((b * bias.shape[1] + h) * bias.shape[2] + at.t) * bias.shape[3] + key));
    return {value, arithmetic_.operand_error(value, case_.inputs.format)};
  }

  Addend linear_bias(const RowCoordinates& at, std::int64_t key) const {
    if (terms_.logits.alibi == QKCTS_ALIBI_NONE) {
      return {};
    }
    const double slope = case_.inputs.at(Input::alibi_slopes).value(static_cast<std::size_t>(at.h));
    const std::int64_t from =
        terms_.logits.alibi == QKCTS_ALIBI_LAST_KEY ? case_.shape.k_len - 1 : at.t + visibility_.offset(at.b);
    auto distance = static_cast<double>(key - from);
    if (terms_.logits.alibi == QKCTS_ALIBI_SYMMETRIC) {
      distance = -std::fabs(distance);
    }
    return linear_bias_errors(slope, accumulator_format(case_.inputs.format), distance, arithmetic_);
  }

  ScoreScale scale(const RowCoordinates& at) const {
    const ScoreScale& scale = scales_[static_cast<std::size_t>(at.h)];
    if (terms_.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE) {
      return scale;
    }
    const auto token = static_cast<std::size_t>(at.b * case_.shape.q_len + at.t);
    return scale_at_position(scale, terms_.logits, case_.inputs.at(Input::q_position_ids).value(token), arithmetic_);
  }

  void attention_row(std::uint32_t row, const RowCoordinates& at, const HeadData& data) {
    const std::int64_t k_len = case_.shape.k_len;
    RowKeys keys_of_row;
    std::vector<std::int64_t>& visible = keys_of_row.visible;
    for (std::int64_t key = 0; key < k_len; ++key) {
      if (visibility_.visible(at.b, at.h, at.t, key)) {
        visible.push_back(key);
      }
    }
    const bool empty = visible.empty();
    const bool capped_exists = writer_.exists(QKCTS_STAGE_CAPPED);
    const auto keys = static_cast<std::size_t>(k_len);
    const auto offset = static_cast<std::size_t>(row) * keys;
    const std::span<const double> scores{exact_.values[QKCTS_STAGE_SCORES].data() + offset, keys};
    std::vector<double> score_error(keys), capped(keys), softmax_error(keys);
    if (!empty) {
      const VectorError q = q_.row(at.b, at.h, at.t).product;
      score_errors(q, data.keys, scale(at), scores, visible.front(), visible.back() + 1, arithmetic_, score_error);
    }
    softmax_error = score_error;
    if (capped_exists) {
      const double* exact_capped = exact_.values[QKCTS_STAGE_CAPPED].data() + offset;
      for (const std::int64_t key : visible) {
        const auto i = static_cast<std::size_t>(key);
        const CappedError error = capped_error(cap_, scores[i], score_error[i], bias(at, key), linear_bias(at, key),
                                               exact_capped[i], arithmetic_);
        capped[i] = error.error;
        softmax_error[i] = error.softmax_error;
      }
    }
    put_score_stage(QKCTS_STAGE_SCORES, row, visible, score_error);
    put_score_stage(QKCTS_STAGE_CAPPED, row, visible, capped);
    put_score_stage(QKCTS_STAGE_MASKED, row, visible, capped_exists ? capped : score_error);

    const bool column = terms_.softmax.sink == QKCTS_SINK_COLUMN;
    keys_of_row.uniform = empty && !column && terms_.mask.empty_row == QKCTS_EMPTY_UNIFORM;
    if (empty && !column && !keys_of_row.uniform) {
      put_empty(row);
      return;
    }
    set_keys(row, softmax_error, keys_of_row);
    softmax_stages(row, at, data, keys_of_row);
  }

  void put_score_stage(qkcts_stage stage, std::uint32_t row, const std::vector<std::int64_t>& visible,
                       const std::vector<double>& errors) {
    if (!writer_.wants(stage, row)) {
      return;
    }
    const double* z = exact_.values[stage].data() + static_cast<std::size_t>(row) * errors.size();
    std::size_t next = 0;
    for (std::size_t key = 0; key < errors.size(); ++key) {
      if (next < visible.size() && visible[next] == static_cast<std::int64_t>(key)) {
        writer_.put(stage, z[key], errors[key], std::fabs(z[key]));
        ++next;
      } else {
        writer_.put_exact(stage);
      }
    }
  }

  void put_empty(std::uint32_t row) {
    for (const qkcts_stage stage : {QKCTS_STAGE_PROBS, QKCTS_STAGE_LSE, QKCTS_STAGE_OUTPUT}) {
      if (writer_.wants(stage, row)) {
        writer_.put_exact(stage, row_length(stage, case_.shape));
      }
    }
  }

  void set_keys(std::uint32_t row, const std::vector<double>& errors, RowKeys& keys) const {
    const auto k_len = static_cast<std::size_t>(case_.shape.k_len);
    for (std::int64_t key = 0; keys.uniform && key < case_.shape.k_len; ++key) {
      keys.visible.push_back(key);
    }
    const qkcts_stage last = writer_.exists(QKCTS_STAGE_CAPPED) ? QKCTS_STAGE_CAPPED : QKCTS_STAGE_SCORES;
    const double* exact_scores = exact_.values[last].data() + static_cast<std::size_t>(row) * k_len;
    const double* exact_probs = exact_.values[QKCTS_STAGE_PROBS].data() + static_cast<std::size_t>(row) * k_len;
    for (const std::int64_t key : keys.visible) {
      const auto i = static_cast<std::size_t>(key);
      keys.scores.push_back(keys.uniform ? 0 : exact_scores[i] * unit_);
      keys.errors.push_back(keys.uniform ? 0 : errors[i] * unit_);
      keys.probabilities.push_back(exact_probs[i]);
    }
  }

  // Appends the sink; returns how far it stands above every score.
  double add_sink(const RowCoordinates& at, double lse, RowKeys& keys) const {
    const Tensor& tensor = case_.inputs.at(Input::sink);
    const double logit = tensor.value(static_cast<std::size_t>(at.h));
    const double read = arithmetic_.operand_error(logit, case_.inputs.format);
    double above = 0;
    double shift = 0;
    if (!keys.scores.empty()) {
      above = std::max(0.0, logit * unit_ - *std::max_element(keys.scores.begin(), keys.scores.end()));
      shift = *std::max_element(keys.errors.begin(), keys.errors.end()) + arithmetic_.shift_slack();
    }
    const SinkKey sink = sink_key(logit, read, unit_, lse, above, shift, arithmetic_);
    keys.scores.push_back(sink.score);
    keys.errors.push_back(sink.error);
    keys.probabilities.push_back(sink.probability);
    return above;
  }

  void softmax_stages(std::uint32_t row, const RowCoordinates& at, const HeadData& data, RowKeys& keys) {
    const bool column = terms_.softmax.sink == QKCTS_SINK_COLUMN;
    const double observed = exact_.values[QKCTS_STAGE_LSE][row];
    const double lse = keys.uniform ? log_upper(static_cast<double>(keys.visible.size())) : observed * lse_unit_;
    SoftmaxRow softmax;
    softmax.above = column ? add_sink(at, lse, keys) : 0;
    softmax.scores = keys.scores;
    softmax.errors = keys.errors;
    softmax.probabilities = keys.probabilities;
    softmax.lse = lse;
    softmax.blocks = blocks_of(keys.visible, arithmetic_.online_block()) + (column ? 1 : 0);
    const double slots = blocks_of(keys.visible, matrix_block) * matrix_block;
    softmax.slots = slots + (column ? matrix_block : 0);
    const RowWeights weights = row_weights(softmax, arithmetic_);

    if (writer_.wants(QKCTS_STAGE_PROBS, row)) {
      put_probabilities(keys, weights);
    }
    const bool converts = unit_ != 1 || lse_unit_ != 1;
    const double lse_moved = weights.domain ? infinity : lse_error(weights, lse, converts, arithmetic_);
    if (writer_.wants(QKCTS_STAGE_LSE, row)) {
      if (keys.uniform) {
        writer_.put_exact(QKCTS_STAGE_LSE);
      } else {
        const double size = observed == 0 ? 0 : std::max(1.0, std::fabs(observed));
        writer_.put(QKCTS_STAGE_LSE, observed, lse_moved / lse_unit_, size);
      }
    }
    if (!writer_.wants(QKCTS_STAGE_OUTPUT, row)) {
      return;
    }
    if (keys.visible.empty()) {
      writer_.put_exact(QKCTS_STAGE_OUTPUT, case_.shape.v_head_dim);
    } else if (weights.domain) {
      put_output_domain(row);
    } else if (terms_.softmax.sink == QKCTS_SINK_POST_SCALE && !keys.uniform) {
      put_scaled_output(row, at, data, keys, slots, weights, lse, lse_moved);
    } else {
      put_output(row, data, keys, slots, weights);
    }
  }

  void put_probabilities(const RowKeys& keys, const RowWeights& weights) {
    const std::vector<double>& p = keys.probabilities;
    std::vector<double> errors(p.size(), infinity);
    if (!weights.domain) {
      errors = probability_errors(weights, arithmetic_);
    }
    std::size_t next = 0;
    for (std::int64_t key = 0; key < case_.shape.k_len; ++key) {
      if (next < keys.visible.size() && keys.visible[next] == key) {
        const double size = p[next] == 0 ? 0 : std::max(p[next], 1 - p[next]);
        writer_.put(QKCTS_STAGE_PROBS, p[next], errors[next], size);
        ++next;
      } else {
        writer_.put_exact(QKCTS_STAGE_PROBS);
      }
    }
  }

  // Values of the keys of the row, a sink's last.
  ValueRows values_of(const HeadData& data, const RowKeys& keys) const {
    ValueRows values;
    values.length = static_cast<std::size_t>(case_.shape.v_head_dim);
    values.base = data.v.data();
    values.error = data.v_error.empty() ? nullptr : data.v_error.data();
    for (const std::int64_t key : keys.visible) {
      values.v.push_back(data.v.data() + static_cast<std::size_t>(key) * values.length);
    }
    if (keys.scores.size() > keys.visible.size()) {
      values.v.push_back(data.v.data() + data.v.size() - values.length);
    }
    return values;
  }

  std::span<const double> exact_output(std::uint32_t row) const {
    const auto length = static_cast<std::size_t>(case_.shape.v_head_dim);
    return {exact_.values[QKCTS_STAGE_OUTPUT].data() + row * length, length};
  }

  void put_output_domain(std::uint32_t row) {
    for (const double value : exact_output(row)) {
      writer_.put(QKCTS_STAGE_OUTPUT, value, infinity, 0);
    }
  }

  void put_output(std::uint32_t row, const HeadData& data, const RowKeys& keys, double slots,
                  const RowWeights& weights) {
    const std::span<const double> z = exact_output(row);
    const OutputError output = output_errors(weights, values_of(data, keys), z, slots, arithmetic_);
    for (std::size_t d = 0; d < z.size(); ++d) {
      const double size = z[d] == 0 ? 0 : (output.hull[d] > 0 ? output.hull[d] : std::fabs(z[d]));
      writer_.put(QKCTS_STAGE_OUTPUT, z[d], output.domain[d] ? infinity : output.error[d], size);
    }
  }

  // The mean of the values as such, and then the factor of a sink. The mean is formed anew: it is no stage.
  void put_scaled_output(std::uint32_t row, const RowCoordinates& at, const HeadData& data, const RowKeys& keys,
                         double slots, const RowWeights& weights, double lse, double lse_moved) {
    const std::span<const double> z = exact_output(row);
    ValueRows values = values_of(data, keys);
    std::vector<double> mean(z.size()), blur(z.size());
    for (std::size_t j = 0; j < values.v.size(); ++j) {
      for (std::size_t d = 0; d < z.size(); ++d) {
        mean[d] += keys.probabilities[j] * values.v[j][d];
        blur[d] += keys.probabilities[j] * std::fabs(values.v[j][d]);
      }
    }
    for (double& value : blur) {
      value = value * (static_cast<double>(values.v.size()) + 8) * 0x1p-50 + 0x1p-1070;
    }
    values.blur = blur;
    const OutputError output = output_errors(weights, values, mean, slots, arithmetic_);
    const double logit = case_.inputs.at(Input::sink).value(static_cast<std::size_t>(at.h));
    const SinkFactor factor =
        sink_factor_terms(logit, arithmetic_.operand_error(logit, case_.inputs.format), lse, lse_moved, arithmetic_);
    for (std::size_t d = 0; d < z.size(); ++d) {
      const double hull = output.hull[d] * factor.size;
      const double size = z[d] == 0 ? 0 : (hull > 0 ? hull : std::fabs(z[d]));
      const double error =
          output.domain[d] ? infinity : factor.moved(std::fabs(mean[d]) + blur[d], output.error[d], arithmetic_);
      writer_.put(QKCTS_STAGE_OUTPUT, z[d], error, size);
    }
  }

  const Case& case_;
  const qkcts_contract& terms_;
  const ExactStages& exact_;
  BudgetArithmetic arithmetic_;
  BudgetWriter writer_;
  Visibility visibility_;
  SeenTokens tokens_;
  OperandBudget q_, k_;
  std::vector<ScoreScale> scales_;  // per query head
  CapTerms cap_;
  double unit_, lse_unit_;  // logarithms of the bases of weights and of the log-sum-exp
};

}  // namespace

std::array<StageBudget, QKCTS_STAGE_COUNT> stage_budgets(const Case& c, const ExactStages& exact, const StageRows& rows,
                                                         const Profile& profile, TermSet terms) {
  return Composition(c, exact, rows, profile, terms).run();
}

}  // namespace qkcts
