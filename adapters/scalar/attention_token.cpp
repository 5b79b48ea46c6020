// SPDX-License-Identifier: Apache-2.0
// What happens to one token of q, k or v: projection, norm and rotation.
#include <algorithm>
#include <cmath>

#include "adapters/scalar/attention.hpp"

namespace qkcts::scalar {

namespace {

struct StagesOfSide {
  qkcts_stage projected, normalised, rotated;
};

StagesOfSide stages_of(Side side) {
  if (side == Side::query) return {QKCTS_STAGE_Q_PROJ, QKCTS_STAGE_Q_NORM, QKCTS_STAGE_Q_ROPE};
  if (side == Side::key) return {QKCTS_STAGE_K_PROJ, QKCTS_STAGE_K_NORM, QKCTS_STAGE_K_ROPE};
  return {QKCTS_STAGE_COUNT, QKCTS_STAGE_V_NORM, QKCTS_STAGE_COUNT};  // the others of v do not exist
}

// QK-CLIP; a bound of 0 says that there is none. A NaN stays one.
template <class Real>
void clamp(double bound, std::span<Real> token) {
  if (bound == 0) return;
  const Real c = static_cast<Real>(bound);
  for (Real& x : token) x = std::min(std::max(x, -c), c);
}

}  // namespace

template <class Real>
void Attention<Real>::prepare_vectors(Side side) {
  const std::int64_t heads = heads_of(side), length = length_of(side), width = width_of(side);
  const StagesOfSide stages = stages_of(side);
  std::vector<Real>& vectors = vectors_[side];
  vectors.resize(static_cast<std::size_t>(shape_.batch * heads * length * width));
  std::vector<Real> token(static_cast<std::size_t>(heads * width));
  for (std::int64_t b = 0; b < shape_.batch; ++b) {
    for (std::int64_t t = 0; t < length; ++t) {
      if (projection_[side].present()) {
        project_token(side, b, t, token);
        if (observed(stages.projected)) store_token(stages.projected, b, t, token);
      } else {
        for (std::int64_t h = 0; h < heads; ++h)
          for (std::int64_t d = 0; d < width; ++d) token[h * width + d] = raw(side, b, h, t, d);
      }
      if (rotates(side) && terms_.rope.order == QKCTS_ROPE_THEN_NORM) {
        rotate_token(side, b, t, token);
        if (observed(stages.rotated)) store_token(stages.rotated, b, t, token);
      }
      transform_token(side, token);
      if (observed(stages.normalised)) store_token(stages.normalised, b, t, token);
      if (rotates(side) && terms_.rope.order == QKCTS_NORM_THEN_ROPE) {
        rotate_token(side, b, t, token);
        if (observed(stages.rotated)) store_token(stages.rotated, b, t, token);
      }
      for (std::int64_t h = 0; h < heads; ++h)
        std::copy_n(token.begin() + h * width, width, vectors.begin() + ((b * heads + h) * length + t) * width);
    }
  }
}

template <class Real>
Real Attention<Real>::raw(Side side, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) const {
  return vectors_in_[side].template load<Real>(b, h, t, d);
}

template <class Real>
void Attention<Real>::project_token(Side side, std::int64_t b, std::int64_t t, std::span<Real> token) const {
  const Projection<Real>& projection = projection_[side];
  std::vector<Real> x(static_cast<std::size_t>(projection.x.extent(2)));
  for (std::size_t e = 0; e < x.size(); ++e) x[e] = projection.x.template load<Real>(b, t, e);
  normalise_row(side, x);
  multiply_row(side, x, token);
  for (std::size_t j = 0; j < token.size(); ++j) {
    if (!projection.bias.empty()) token[j] += projection.bias[j];
    token[j] = rounded(points_of(side).projection, token[j]);
  }
}

// The norm before the projection: the row is one head of E lanes.
template <class Real>
void Attention<Real>::normalise_row(Side side, std::span<Real> x) const {
  const qkcts_norm& norm = input_norm_of(side);
  if (norm.applied == 0) return;
  const Projection<Real>& projection = projection_[side];
  const auto divisor = [&](std::span<const Real> row, Real mean) { return contract_divisor(norm, row, mean); };
  const qkcts_input_rounding& points = input_points_of(side);
  const auto unit = [&](Real centred, Real d) { return rounded(points.unit, centred / d); };
  normalise<Real>(norm, projection.norm_gain, projection.norm_bias, static_cast<std::int64_t>(x.size()), divisor, unit,
                  x);
  for (Real& y : x) y = rounded(points.norm, y);
}

template <class Real>
void Attention<Real>::multiply_row(Side side, std::span<const Real> x, std::span<Real> token) const {
  const Real* weight = projection_[side].weight.data();
  std::fill(token.begin(), token.end(), Real{0});
  for (const Real entry : x) {
    for (Real& sum : token) sum += entry * *weight++;
  }
}

template <class Real>
void Attention<Real>::transform_token(Side side, std::span<Real> token) {
  const qkcts_norm_range& range = range_of(side);
  clamp(range.clip_before, token);
  if (norm_of(side).applied != 0) normalise_token(side, token);
  if (range.multiplier != 0) {
    for (Real& x : token) x *= static_cast<Real>(range.multiplier);
  }
  clamp(range.clip_after, token);
  for (Real& x : token) x = rounded(points_of(side).norm, x);
}

template <class Real>
void Attention<Real>::normalise_token(Side side, std::span<Real> token) {
  const auto divisor = [&](std::span<const Real> group, Real mean) {
    return rounded(points_of(side).root, divisor_of(side, group, mean));
  };
  const auto unit = [&](Real centred, Real d) { return unit_of(side, centred, d); };
  normalise<Real>(norm_of(side), gain_[side], bias_[side], width_of(side), divisor, unit, token);
}

template <class Real>
Real Attention<Real>::divisor_of(Side side, std::span<const Real> group, Real mean) const {
  return contract_divisor(norm_of(side), group, mean);
}

template <class Real>
Real Attention<Real>::unit_of(Side side, Real centred, Real d) const {
  const qkcts_vector_rounding& points = points_of(side);
  const Real unit = points.reciprocal == 0 ? centred / d : centred * rounded(points.reciprocal, 1 / d);
  return rounded(points.unit, unit);
}

template <class Real>
std::int64_t Attention<Real>::position_of(Side side, std::int64_t b, std::int64_t t) const {
  return position_[static_cast<std::size_t>(side)].template load<std::int64_t>(b, t);
}

template <class Real>
Turn<Real> Attention<Real>::turn_at(Side /*side*/, std::int64_t h, std::int64_t position) const {
  // Tables hold the factor of QK-ROPE-11 already.
  const double factor = terms_.rotation.attention_factor == 0 ? 1 : terms_.rotation.attention_factor;
  const bool computed = terms_.rotation.angles == QKCTS_ANGLES_COMPUTED;
  const bool per_head = terms_.rotation.tables == QKCTS_TABLES_PER_HEAD;
  const auto entry = [&](const TensorView& table, std::int64_t i) {
    return per_head ? table.load<Real>(h, position, i) : table.load<Real>(position, i);
  };
  Turn<Real> turn;
  for (std::int64_t i = 0; i < rotated_lanes(terms_.rope, shape_.head_dim) / 2; ++i) {
    const double angle = computed ? static_cast<double>(position) * frequencies_[i] : 0;
    turn.cosine.push_back(computed ? static_cast<Real>(factor * std::cos(angle)) : entry(cos_, i));
    turn.sine.push_back(computed ? static_cast<Real>(factor * std::sin(angle)) : entry(sin_, i));
  }
  return turn;
}

template <class Real>
void Attention<Real>::rotate_token(Side side, std::int64_t b, std::int64_t t, std::span<Real> token) const {
  const std::int64_t position = position_of(side, b, t);
  const bool per_head = terms_.rotation.tables == QKCTS_TABLES_PER_HEAD;
  Turn<Real> turn;
  for (std::int64_t h = 0; h < heads_of(side); ++h) {
    if (h == 0 || per_head) turn = turn_at(side, h, position);
    rotate_head(side, turn, token.subspan(h * width_of(side), width_of(side)));
  }
}

template <class Real>
void Attention<Real>::rotate_head(Side side, const Turn<Real>& turn, std::span<Real> head) const {
  const qkcts_vector_rounding& points = points_of(side);
  const TurnRounding<Real> round{[&](Real product) { return rounded(points.rope_product, product); },
                                 [&](Real sum) { return rounded(points.rope, sum); }};
  rotate(terms_.rope, terms_.rotation, turn, round, head);
}

template <class Real>
void Attention<Real>::store_token(qkcts_stage stage, std::int64_t b, std::int64_t t, std::span<const Real> token) {
  const std::int64_t width = stage == QKCTS_STAGE_V_NORM ? shape_.v_head_dim : shape_.head_dim;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    stages_[stage].store(token[i], b, place / width, t, place % width);
  }
}

template class Attention<float>;
template class Attention<double>;

}  // namespace qkcts::scalar
