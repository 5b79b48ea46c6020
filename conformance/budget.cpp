// SPDX-License-Identifier: Apache-2.0
// Composition: errors flow from stage to stage in the accumulator format; an observed stage adds its storage rounding.
#include "conformance/budget.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "conformance/budget_operand.hpp"
#include "conformance/budget_output.hpp"
#include "conformance/budget_score.hpp"
#include "conformance/budget_softmax.hpp"
#include "conformance/budget_writer.hpp"

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct RowCoordinates {
  std::int64_t b, h, t;
};

RowCoordinates coordinates(std::uint32_t row, std::int64_t heads, std::int64_t length) {
  const auto r = static_cast<std::int64_t>(row);
  return {r / (heads * length), r / length % heads, r % length};
}

class Composition {
 public:
  Composition(const Case& c, const ExactStages& exact, const StageRows& rows, const Profile& profile, TermSet terms)
      : case_(c),
        exact_(exact),
        arithmetic_(profile, terms),
        writer_(c, rows, arithmetic_),
        visibility_(c),
        q_(c, exact, OperandSide::q, arithmetic_),
        k_(c, exact, OperandSide::k, arithmetic_),
        scale_(scale_terms(c, arithmetic_)),
        cap_(cap_terms(c, arithmetic_)) {}

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
      const OperandRow operand = side.row(at.b, at.h, at.t);
      if (writer_.wants(norm_stage, row)) {
        writer_.put_vector(norm_stage, exact_row(norm_stage, row), *operand.norm);
      }
      if (writer_.wants(rope_stage, row)) {
        writer_.put_vector(rope_stage, exact_row(rope_stage, row), *operand.rope);
      }
    }
  }

  // Keys and values of one key/value head, as the rows of its query heads need them.
  struct HeadData {
    HeadData(std::int64_t head_dim, std::int64_t k_len) : keys(head_dim, k_len) {}
    KeyPanel keys;
    std::vector<double> v;
    std::vector<double> v_error;  // empty if every value is read exactly
  };

  HeadData head_data(std::int64_t b, std::int64_t kv_head) {
    const qkcts_shape& shape = case_.shape;
    HeadData data(shape.head_dim, shape.k_len);
    for (std::int64_t key = 0; key < shape.k_len; ++key) {
      data.keys.set(key, k_.row(b, kv_head, key).product);
    }
    const Tensor& v = case_.inputs.at(Input::v);
    const std::int64_t elements = shape.k_len * shape.v_head_dim;
    const std::int64_t first = (b * shape.kv_heads + kv_head) * elements;
    bool exact = true;
    for (std::int64_t i = 0; i < elements; ++i) {
      data.v.push_back(v.value(static_cast<std::size_t>(first + i)));
      data.v_error.push_back(arithmetic_.operand_error(data.v.back(), case_.inputs.format));
      exact = exact && data.v_error.back() == 0;
    }
    if (exact) {
      data.v_error.clear();
    }
    return data;
  }

  void attention_rows() {
    constexpr std::array stages = {QKCTS_STAGE_SCORES, QKCTS_STAGE_CAPPED, QKCTS_STAGE_MASKED,
                                   QKCTS_STAGE_PROBS,  QKCTS_STAGE_LSE,    QKCTS_STAGE_OUTPUT};
    const std::int64_t group = case_.shape.q_heads / case_.shape.kv_heads;
    std::optional<HeadData> data;
    std::int64_t held = -1;
    // Ascending rows visit the query heads of one key/value head one after another.
    for (const std::uint32_t row : writer_.rows_of(stages)) {
      const RowCoordinates at = coordinates(row, case_.shape.q_heads, case_.shape.q_len);
      const std::int64_t kv_head = at.h / group;
      const std::int64_t id = at.b * case_.shape.kv_heads + kv_head;
      if (id != held) {
        data.emplace(head_data(at.b, kv_head));
        held = id;
      }
      attention_row(row, at, *data);
    }
  }

  double bias_value(const RowCoordinates& at, std::int64_t key) const {
    const Tensor& bias = case_.inputs.at(Input::bias);
    const std::int64_t b = bias.shape[0] == 1 ? 0 : at.b;
    const std::int64_t h = bias.shape[1] == 1 ? 0 : at.h;
    return bias.value(static_cast<std::size_t>(((b * bias.shape[1] + h) * bias.shape[2] + at.t) * bias.shape[3] + key));
  }

  void attention_row(std::uint32_t row, const RowCoordinates& at, const HeadData& data) {
    const std::int64_t k_len = case_.shape.k_len;
    std::vector<std::int64_t> visible;
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
      score_errors(q, data.keys, scale_, scores, visible.front(), visible.back() + 1, arithmetic_, score_error);
    }
    softmax_error = score_error;
    if (capped_exists) {
      const double* exact_capped = exact_.values[QKCTS_STAGE_CAPPED].data() + offset;
      const bool has_bias = case_.contract.terms.score.bias_order != QKCTS_BIAS_NONE;
      for (const std::int64_t key : visible) {
        const auto i = static_cast<std::size_t>(key);
        const double bias = has_bias ? bias_value(at, key) : 0;
        const double bias_error = has_bias ? arithmetic_.operand_error(bias, case_.inputs.format) : 0;
        const CappedError error =
            capped_error(cap_, scores[i], score_error[i], bias, bias_error, exact_capped[i], arithmetic_);
        capped[i] = error.error;
        softmax_error[i] = error.softmax_error;
      }
    }
    put_score_stage(QKCTS_STAGE_SCORES, row, visible, score_error);
    put_score_stage(QKCTS_STAGE_CAPPED, row, visible, capped);
    put_score_stage(QKCTS_STAGE_MASKED, row, visible, capped_exists ? capped : score_error);

    const bool uniform = empty && case_.contract.terms.mask.empty_row == QKCTS_EMPTY_UNIFORM;
    if (empty && !uniform) {
      put_empty(row);
      return;
    }
    softmax_stages(row, data, visible, softmax_error, uniform);
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

  // Blocks of `size` neighbouring keys that hold one of the keys.
  static double blocks_of(const std::vector<std::int64_t>& keys, std::int64_t size) {
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

  void softmax_stages(std::uint32_t row, const HeadData& data, std::vector<std::int64_t> visible,
                      const std::vector<double>& errors, bool uniform) {
    const auto keys = static_cast<std::size_t>(case_.shape.k_len);
    if (uniform) {
      for (std::int64_t key = 0; key < case_.shape.k_len; ++key) {
        visible.push_back(key);
      }
    }
    const qkcts_stage last = writer_.exists(QKCTS_STAGE_CAPPED) ? QKCTS_STAGE_CAPPED : QKCTS_STAGE_SCORES;
    const double* exact_scores = exact_.values[last].data() + static_cast<std::size_t>(row) * keys;
    const double* exact_probs = exact_.values[QKCTS_STAGE_PROBS].data() + static_cast<std::size_t>(row) * keys;
    std::vector<double> s, error, p;
    for (const std::int64_t key : visible) {
      const auto i = static_cast<std::size_t>(key);
      s.push_back(uniform ? 0 : exact_scores[i]);
      error.push_back(uniform ? 0 : errors[i]);
      p.push_back(exact_probs[i]);
    }
    SoftmaxRow softmax;
    softmax.scores = s;
    softmax.errors = error;
    softmax.probabilities = p;
    const double lse = exact_.values[QKCTS_STAGE_LSE][row];
    softmax.lse = uniform ? log_upper(static_cast<double>(visible.size())) : lse;
    softmax.blocks = blocks_of(visible, arithmetic_.online_block());
    softmax.slots = blocks_of(visible, matrix_block) * matrix_block;
    const RowWeights weights = row_weights(softmax, arithmetic_);

    if (writer_.wants(QKCTS_STAGE_PROBS, row)) {
      put_probabilities(visible, p, weights);
    }
    if (writer_.wants(QKCTS_STAGE_LSE, row)) {
      if (uniform) {
        writer_.put_exact(QKCTS_STAGE_LSE);
      } else {
        const double size = lse == 0 ? 0 : std::max(1.0, std::fabs(lse));
        writer_.put(QKCTS_STAGE_LSE, lse, weights.domain ? infinity : lse_error(weights, lse, arithmetic_), size);
      }
    }
    if (writer_.wants(QKCTS_STAGE_OUTPUT, row)) {
      put_output(row, data, visible, softmax.slots, weights);
    }
  }

  void put_probabilities(const std::vector<std::int64_t>& visible, const std::vector<double>& p,
                         const RowWeights& weights) {
    std::vector<double> errors(p.size(), infinity);
    if (!weights.domain) {
      errors = probability_errors(weights, arithmetic_);
    }
    std::size_t next = 0;
    for (std::int64_t key = 0; key < case_.shape.k_len; ++key) {
      if (next < visible.size() && visible[next] == key) {
        const double size = p[next] == 0 ? 0 : std::max(p[next], 1 - p[next]);
        writer_.put(QKCTS_STAGE_PROBS, p[next], errors[next], size);
        ++next;
      } else {
        writer_.put_exact(QKCTS_STAGE_PROBS);
      }
    }
  }

  void put_output(std::uint32_t row, const HeadData& data, const std::vector<std::int64_t>& visible, double slots,
                  const RowWeights& weights) {
    const auto length = static_cast<std::size_t>(case_.shape.v_head_dim);
    const std::span<const double> z{exact_.values[QKCTS_STAGE_OUTPUT].data() + row * length, length};
    if (weights.domain) {
      for (const double value : z) {
        writer_.put(QKCTS_STAGE_OUTPUT, value, infinity, 0);
      }
      return;
    }
    ValueRows values;
    values.length = length;
    values.base = data.v.data();
    values.error = data.v_error.empty() ? nullptr : data.v_error.data();
    for (const std::int64_t key : visible) {
      values.v.push_back(data.v.data() + static_cast<std::size_t>(key) * length);
    }
    const OutputError output = output_errors(weights, values, z, slots, arithmetic_);
    for (std::size_t d = 0; d < length; ++d) {
      const double size = z[d] == 0 ? 0 : (output.hull[d] > 0 ? output.hull[d] : std::fabs(z[d]));
      writer_.put(QKCTS_STAGE_OUTPUT, z[d], output.domain[d] ? infinity : output.error[d], size);
    }
  }

  const Case& case_;
  const ExactStages& exact_;
  BudgetArithmetic arithmetic_;
  BudgetWriter writer_;
  Visibility visibility_;
  OperandBudget q_, k_;
  ScoreScale scale_;
  CapTerms cap_;
};

}  // namespace

std::array<StageBudget, QKCTS_STAGE_COUNT> stage_budgets(const Case& c, const ExactStages& exact, const StageRows& rows,
                                                         const Profile& profile, TermSet terms) {
  return Composition(c, exact, rows, profile, terms).run();
}

}  // namespace qkcts
