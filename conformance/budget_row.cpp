// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/budget_rounded_output.hpp"
#include "conformance/budget_sink.hpp"
#include "conformance/budget_softmax.hpp"
#include "conformance/key_runs.hpp"

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double ln_2 = 0x1.62e42fefa39efp-1;

// Which block of `size` neighbouring keys holds each of the keys; blocks without one are not counted.
void set_block_indices(const std::vector<std::int64_t>& keys, std::int64_t size, std::vector<std::size_t>& indices) {
  indices.clear();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool opens = i > 0 && keys[i] / size != keys[i - 1] / size;
    indices.push_back(i == 0 ? 0 : indices.back() + (opens ? 1 : 0));
  }
}

// How many there are: of a run of neighbours, those from the first to the last.
double blocks_of(const std::vector<std::int64_t>& keys, std::int64_t size) {
  if (size == 1 || keys.empty()) {
    return static_cast<double>(keys.size());
  }
  if (keys.back() - keys.front() + 1 == static_cast<std::int64_t>(keys.size())) {
    return static_cast<double>(keys.back() / size - keys.front() / size + 1);
  }
  std::vector<std::size_t> indices;
  set_block_indices(keys, size, indices);
  return static_cast<double>(indices.back() + 1);
}

// What an output could be at all: the hull of its values, or, where they are equal, its own size.
double size_of(double z, double hull) {
  return z == 0 ? 0 : (hull > 0 ? hull : std::fabs(z));
}

}  // namespace

RowBudget::RowBudget(const Case& c, const ExactStages& exact, const BudgetArithmetic& arithmetic, BudgetWriter& writer)
    : case_(c),
      terms_(c.contract.terms),
      exact_(exact),
      arithmetic_(arithmetic),
      writer_(writer),
      probs_(BudgetTerm::rounding_point, terms_.rounding.probs, terms_.rounding.saturate != 0, arithmetic),
      factors_(BudgetTerm::rounding_weight, terms_.rounding.probs, terms_.rounding.saturate != 0, arithmetic),
      output_(BudgetTerm::rounding_point, terms_.rounding.output, terms_.rounding.saturate != 0, arithmetic),
      unit_(terms_.softmax.base == QKCTS_BASE_TWO ? ln_2 : 1),
      lse_unit_(terms_.softmax.lse_base == QKCTS_BASE_TWO ? ln_2 : 1) {}

void RowBudget::put(std::uint32_t row, const RowCoordinates& at, const HeadData& data,
                    const std::vector<std::int64_t>& visible, const std::vector<double>& errors) {
  Keys& keys = keys_;
  keys.visible = visible;
  const bool empty = keys.visible.empty();
  const bool column = terms_.softmax.sink == QKCTS_SINK_COLUMN;
  keys.uniform = empty && !column && terms_.mask.empty_row == QKCTS_EMPTY_UNIFORM;
  if (empty && !column && !keys.uniform) {
    put_empty(row, data);
    return;
  }
  set_keys(row, errors, keys);
  softmax_stages(row, at, data, keys);
}

void RowBudget::put_empty(std::uint32_t row, const HeadData& data) {
  for (const qkcts_stage stage : {QKCTS_STAGE_PROBS, QKCTS_STAGE_LSE, QKCTS_STAGE_OUTPUT}) {
    if (stage == QKCTS_STAGE_OUTPUT && data.v_domain && writer_.wants(stage, row)) {
      put_output_domain(row);
    } else if (writer_.wants(stage, row)) {
      writer_.put_exact(stage, row_length(stage, case_.shape));
    }
  }
}

void RowBudget::set_keys(std::uint32_t row, const std::vector<double>& errors, Keys& keys) const {
  const auto k_len = static_cast<std::size_t>(case_.shape.k_len);
  for (std::vector<double>* list : {&keys.rounded, &keys.rounded_errors, &keys.product_errors}) {
    list->clear();
  }
  for (std::int64_t key = 0; keys.uniform && key < case_.shape.k_len; ++key) {
    keys.visible.push_back(key);
  }
  const std::size_t count = keys.visible.size();
  for (std::vector<double>* list : {&keys.scores, &keys.errors, &keys.probabilities}) {
    list->resize(count);
  }
  const qkcts_stage last = writer_.exists(QKCTS_STAGE_CAPPED) ? QKCTS_STAGE_CAPPED : QKCTS_STAGE_SCORES;
  const std::span<const double> exact_scores = exact_.row(last, row, k_len);
  const std::span<const double> exact_probs = exact_.unrounded_row(QKCTS_STAGE_PROBS, row, k_len);
  for_each_run(keys.visible, [&](std::size_t at, std::int64_t key, std::size_t length) {
    const auto first = static_cast<std::size_t>(key);
    for (std::size_t j = 0; j < length; ++j) {
      keys.scores[at + j] = keys.uniform ? 0 : exact_scores[first + j] * unit_;
      keys.errors[at + j] = keys.uniform ? 0 : errors[first + j] * unit_;
      keys.probabilities[at + j] = exact_probs[first + j];
    }
  });
}

// Appends the sink; returns how far it stands above every score.
double RowBudget::add_sink(const RowCoordinates& at, double lse, Keys& keys) const {
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

void RowBudget::softmax_stages(std::uint32_t row, const RowCoordinates& at, const HeadData& data, Keys& keys) {
  const bool column = terms_.softmax.sink == QKCTS_SINK_COLUMN;
  const double observed = exact_.row(QKCTS_STAGE_LSE, row, 1)[0];
  const double lse = keys.uniform ? log_upper(static_cast<double>(keys.visible.size())) : observed * lse_unit_;
  SoftmaxKeys softmax;
  softmax.above = column ? add_sink(at, lse, keys) : 0;
  softmax.scores = keys.scores;
  softmax.errors = keys.errors;
  softmax.probabilities = keys.probabilities;
  softmax.lse = lse;
  softmax.blocks = blocks_of(keys.visible, arithmetic_.online_block()) + (column ? 1 : 0);
  if (arithmetic_.online_block() > 1) {
    set_block_indices(keys.visible, arithmetic_.online_block(), blocks_);
    blocks_.resize(keys.scores.size(), blocks_.empty() ? 0 : blocks_.back() + 1);  // a sink is one of its own
    softmax.block_of = blocks_;
  }
  const double slots = blocks_of(keys.visible, matrix_block) * matrix_block;
  softmax.slots = slots + (column ? matrix_block : 0);
  softmax.points = has_rounding_points(terms_.rounding);
  if (arithmetic_.lanes() > 0) {
    softmax.in_lane = blocks_of(keys.visible, arithmetic_.lanes()) + (column ? 1 : 0);
  }
  row_weights(softmax, arithmetic_, softmax_, weights_);
  const RowWeights& weights = weights_;

  if (probs_.exists() || writer_.wants(QKCTS_STAGE_PROBS, row)) {
    std::vector<double>& errors = probability_errors_;
    if (weights.domain) {
      errors.assign(keys.probabilities.size(), infinity);
    } else {
      probability_errors(weights, arithmetic_, softmax_, errors);
    }
    if (probs_.exists()) {
      round_probabilities(row, keys, errors);
    }
    if (writer_.wants(QKCTS_STAGE_PROBS, row)) {
      put_probabilities(keys, probs_.exists() ? keys.rounded_errors : errors);
    }
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
  if (data.v_domain) {
    put_output_domain(row);
  } else if (keys.visible.empty()) {
    writer_.put_exact(QKCTS_STAGE_OUTPUT, case_.shape.v_head_dim);
  } else if (weights.domain) {
    put_output_domain(row);
  } else if (terms_.softmax.sink == QKCTS_SINK_POST_SCALE && !keys.uniform) {
    put_scaled_output(row, at, data, keys, slots, lse, lse_moved);
  } else {
    put_output(row, at, data, keys, slots);
  }
}

// A computed probability is never negative.
void RowBudget::round_probabilities(std::uint32_t row, Keys& keys, const std::vector<double>& errors) const {
  const std::span<const double> after = exact_.row(QKCTS_STAGE_PROBS, row, static_cast<std::size_t>(case_.shape.k_len));
  for (std::size_t j = 0; j < keys.visible.size(); ++j) {
    const double before = keys.probabilities[j];
    const double rounded = after[static_cast<std::size_t>(keys.visible[j])];
    const double blur = before * 0x1p-50;
    keys.rounded.push_back(rounded);
    keys.rounded_errors.push_back(probs_.moved(before, blur, errors[j], rounded, 0));
    keys.product_errors.push_back(factors_.moved(before, blur, errors[j], rounded, 0));
  }
}

void RowBudget::put_probabilities(const Keys& keys, const std::vector<double>& errors) {
  const std::vector<double>& p = probs_.exists() ? keys.rounded : keys.probabilities;
  sizes_.resize(keys.visible.size());
  for (std::size_t j = 0; j < sizes_.size(); ++j) {
    sizes_[j] = p[j] == 0 ? 0 : std::max(p[j], 1 - p[j]);
  }
  std::int64_t done = 0;
  for_each_run(keys.visible, [&](std::size_t first, std::int64_t key, std::size_t count) {
    writer_.put_exact(QKCTS_STAGE_PROBS, key - done);
    writer_.put(QKCTS_STAGE_PROBS, std::span(p).subspan(first, count), std::span(errors).subspan(first, count),
                std::span(sizes_).subspan(first, count));
    done = key + static_cast<std::int64_t>(count);
  });
  writer_.put_exact(QKCTS_STAGE_PROBS, case_.shape.k_len - done);
}

// Values of the keys of the row, a sink's last.
void RowBudget::set_values(const RowCoordinates& at, const HeadData& data, const Keys& keys) {
  ValueRows& values = values_;
  values.v.clear();
  values.blur = {};
  values.length = static_cast<std::size_t>(case_.shape.v_head_dim);
  values.base = data.v.data();
  values.inexact = data.v_computed ? 0x1p-50 : 0;
  values.error = data.v_error.empty() ? nullptr : data.v_error.data();
  for (const std::int64_t key : keys.visible) {
    values.v.push_back(data.v.data() + static_cast<std::size_t>(key) * values.length);
  }
  if (keys.scores.size() > keys.visible.size()) {
    values.v.push_back(data.v.data() + data.v.size() - values.length);
  }
  values.extent = probs_.exists() ? nullptr : extent_of(at, keys, values);
}

// Rows of one query head come one after another: where each sees neighbouring keys from the same one on, what was
// summed over the keys of the last one goes on.
const ValueExtent* RowBudget::extent_of(const RowCoordinates& at, const Keys& keys, const ValueRows& values) {
  const std::size_t count = keys.visible.size();
  if (count == 0 || keys.visible.back() - keys.visible.front() + 1 != static_cast<std::int64_t>(count)) {
    return nullptr;
  }
  const std::int64_t first = keys.visible.front();
  const bool goes_on =
      seen_ && seen_->b == at.b && seen_->h == at.h && seen_->first == first && seen_->extent.keys() <= count;
  if (!goes_on) {
    seen_ = SeenValues{at.b, at.h, first, ValueExtent(values.length)};
  }
  ValueExtent& extent = seen_->extent;
  while (extent.keys() < count) {
    const double* v = values.v[extent.keys()];
    extent.add(v, values.error_of(v));
  }
  if (values.v.size() == count) {
    return &extent;
  }
  with_sink_ = extent;
  with_sink_->add(values.v.back(), values.error_of(values.v.back()));
  return &*with_sink_;
}

std::span<const double> RowBudget::exact_output(std::uint32_t row) const {
  return exact_.unrounded_row(QKCTS_STAGE_OUTPUT, row, static_cast<std::size_t>(case_.shape.v_head_dim));
}

void RowBudget::set_product_errors(const Keys& keys, const ValueRows& values, std::span<const double> exact,
                                   double slots) {
  if (!probs_.exists()) {
    return output_errors(weights_, values, exact, slots, arithmetic_, sums_, product_);
  }
  const double in_lane = arithmetic_.lanes() > 0 ? blocks_of(keys.visible, arithmetic_.lanes()) : 0;
  product_ = rounded_output_errors(keys.rounded, keys.product_errors, values, exact, slots, in_lane, arithmetic_);
}

// `error` is that of the accumulator, before the point of the output; `hull` what the element could be at all.
void RowBudget::put_output_element(double before, double z, double error, double hull) {
  writer_.put(QKCTS_STAGE_OUTPUT, z, output_.moved(before, std::fabs(before) * 0x1p-50, error, z), size_of(z, hull));
}

void RowBudget::put_output_domain(std::uint32_t row) {
  for (const double value : exact_output(row)) {
    writer_.put(QKCTS_STAGE_OUTPUT, value, infinity, 0);
  }
}

void RowBudget::put_output(std::uint32_t row, const RowCoordinates& at, const HeadData& data, const Keys& keys,
                           double slots) {
  const std::span<const double> before = exact_output(row);
  const std::span<const double> z = exact_.row(QKCTS_STAGE_OUTPUT, row, before.size());
  set_values(at, data, keys);
  set_product_errors(keys, values_, before, slots);
  if (!output_.exists()) {
    for (std::size_t d = 0; d < z.size(); ++d) {
      product_.hull[d] = size_of(z[d], product_.hull[d]);
    }
    writer_.put(QKCTS_STAGE_OUTPUT, z, product_.error, product_.hull);
    return;
  }
  for (std::size_t d = 0; d < z.size(); ++d) {
    put_output_element(before[d], z[d], product_.error[d], product_.hull[d]);
  }
}

// The mean of the values as such, and then the factor of a sink. The mean is formed anew: it is no stage.
void RowBudget::put_scaled_output(std::uint32_t row, const RowCoordinates& at, const HeadData& data, const Keys& keys,
                                  double slots, double lse, double lse_moved) {
  const std::span<const double> before = exact_output(row);
  const std::span<const double> z = exact_.row(QKCTS_STAGE_OUTPUT, row, before.size());
  set_values(at, data, keys);
  ValueRows& values = values_;
  std::vector<double> mean(z.size()), blur(z.size());
  const std::vector<double>& p = probs_.exists() ? keys.rounded : keys.probabilities;
  for (std::size_t j = 0; j < p.size(); ++j) {
    for (std::size_t d = 0; d < z.size(); ++d) {
      mean[d] += p[j] * values.v[j][d];
      blur[d] += p[j] * std::fabs(values.v[j][d]);
    }
  }
  for (double& value : blur) {
    value = value * (static_cast<double>(values.v.size()) + 8) * 0x1p-50 + 0x1p-1070;
  }
  values.blur = blur;
  set_product_errors(keys, values, mean, slots);
  const double logit = case_.inputs.at(Input::sink).value(static_cast<std::size_t>(at.h));
  const SinkFactor factor =
      sink_factor_terms(logit, arithmetic_.operand_error(logit, case_.inputs.format), lse, lse_moved, arithmetic_);
  for (std::size_t d = 0; d < z.size(); ++d) {
    const double moved = factor.moved(std::fabs(mean[d]) + blur[d], product_.error[d], arithmetic_);
    put_output_element(before[d], z[d], std::isfinite(product_.error[d]) ? moved : infinity,
                       product_.hull[d] * factor.size);
  }
}

}  // namespace qkcts
