// SPDX-License-Identifier: Apache-2.0
#include "vectors/family_draft.hpp"

#include <algorithm>
#include <cmath>

namespace qkcts {
namespace {

std::size_t size_of(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d = 1) {
  return extent_product({a, b, c, d});
}

// A gaussian number; binary64 gets 20 further bits, since the sum of 12 words has only 36.
double gaussian(const Draft& draft, const RandomStream& stream, std::uint64_t index) {
  const double x = stream.gaussian(index);
  return draft.format == Format::binary64 ? x + stream.uniform(index) * 0x1p-33 : x;
}

std::vector<double> gaussians(const Draft& draft, Draw draw, std::size_t count) {
  const RandomStream stream = draft.stream(draw);
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = gaussian(draft, stream, i);
  return values;
}

std::size_t parameter_count(std::uint32_t axes, std::int64_t heads, std::int64_t head_dim) {
  switch (axes) {
    case QKCTS_AXES_NONE:
      return 0;
    case QKCTS_AXES_SCALAR:
      return 1;
    case QKCTS_AXES_HEAD_DIM:
      return static_cast<std::size_t>(head_dim);
    case QKCTS_AXES_HEAD:
      return static_cast<std::size_t>(heads);
    default:
      return static_cast<std::size_t>(heads * head_dim);
  }
}

// Lanes that are rotated together get gains on different sides of 1, whatever the pairing, or else the order of norm
// and rotation could not be seen: lane i differs from lane i^1 and from lane i + R/2.
bool upper_gain(const Draft& draft, std::size_t lane) {
  const std::int64_t rotated = draft.contract.terms.rope.rotated;
  const auto half = static_cast<std::size_t>((rotated == 0 ? draft.shape.head_dim : rotated) / 2);
  const std::size_t second_half = half != 0 && half % 2 == 0 ? lane / half : 0;
  return ((lane ^ second_half) & 1U) != 0;
}

std::vector<double> ordinary_gain(const Draft& draft, Side side) {
  const qkcts_norm& norm = draft.norm(side);
  if (norm.applied == 0 || norm.gain == QKCTS_GAIN_NONE) return {};
  const RandomStream stream = draft.stream(side == Side::query ? Draw::q_gain : Draw::k_gain);
  std::vector<double> gain(parameter_count(norm.gain_axes, draft.heads(side), draft.shape.head_dim));
  const bool of_lanes = norm.gain_axes != QKCTS_AXES_HEAD && norm.gain_axes != QKCTS_AXES_SCALAR;
  for (std::size_t i = 0; i < gain.size(); ++i) {
    const std::size_t lane = of_lanes ? i % static_cast<std::size_t>(draft.shape.head_dim) : i;
    gain[i] = upper_gain(draft, lane) ? stream.uniform(i, 1.125, 1.5) : stream.uniform(i, 0.5, 0.875);
  }
  return gain;
}

std::vector<double> ordinary_norm_bias(const Draft& draft, Side side) {
  const qkcts_norm& norm = draft.norm(side);
  if (norm.applied == 0) return {};
  std::vector<double> bias = gaussians(draft, side == Side::query ? Draw::q_bias : Draw::k_bias,
                                       parameter_count(norm.bias_axes, draft.heads(side), draft.shape.head_dim));
  for (double& x : bias) x *= 0.25;
  return bias;
}

// Different lengths in different batch entries, and a first entry that is not full.
std::vector<std::int32_t> ordinary_lengths(const Draft& draft) {
  const RandomStream stream = draft.stream(Draw::kv_len);
  const std::int64_t keys = draft.shape.k_len;
  std::vector<std::int32_t> lengths;
  for (std::int64_t b = 0; b < draft.shape.batch; ++b) {
    std::int64_t length = (2 * keys + 2) / 3;
    if (b == 1) length = keys;
    if (b > 1) length = 1 + static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(b), draft.shape.k_len));
    lengths.push_back(static_cast<std::int32_t>(length));
  }
  return lengths;
}

// A quarter of the keys is hidden, but never key 0 nor the one that stands where the query stands.
void draw_ordinary_mask(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  const RandomStream stream = draft.stream(Draw::mask);
  draft.mask.assign(size_of(draft.broadcast_batch, draft.broadcast_heads, s.q_len, s.k_len), 1);
  for (std::size_t i = 0; i < draft.mask.size(); ++i) {
    const auto key = static_cast<std::int64_t>(i) % s.k_len;
    const auto query = static_cast<std::int64_t>(i) / s.k_len % s.q_len;
    const bool kept = key == 0 || key == query || key == query + s.k_len - s.q_len;
    if (!kept && stream.below(i, 4) == 0) draft.mask[i] = 0;
  }
}

void draw_ordinary_positions(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  draft.first_position = 3;
  // Queries stand behind the keys they can see, and every batch entry starts elsewhere.
  const std::int64_t ahead = std::max<std::int64_t>(0, s.k_len - s.q_len) + 1;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t t = 0; t < s.q_len; ++t)
      draft.q_position_ids.push_back(static_cast<std::int32_t>(t + ahead + 2 * b));
    for (std::int64_t t = 0; t < s.k_len; ++t) draft.k_position_ids.push_back(static_cast<std::int32_t>(t + 2 * b));
  }
}

Tensor encoded(Format format, std::vector<std::int64_t> shape, const std::vector<double>& values) {
  Tensor tensor = Tensor::zeros(element_type(format), std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_pattern(i, encode(format, values[i]));
  return tensor;
}

Tensor integers(std::vector<std::int64_t> shape, const std::vector<std::int32_t>& values) {
  Tensor tensor = Tensor::zeros(ElementType::int32, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_pattern(i, static_cast<std::uint32_t>(values[i]));
  return tensor;
}

std::vector<double> stored_gain(const Draft& draft, Side side) {
  std::vector<double> gain = side == Side::query ? draft.q_gain : draft.k_gain;
  if (draft.norm(side).gain == QKCTS_GAIN_ONE_PLUS_W)
    for (double& factor : gain) factor -= 1;
  return gain;
}

}  // namespace

Draft::Draft(const Contract& the_contract, const qkcts_shape& the_shape, Format the_format, std::uint64_t the_seed)
    : contract(the_contract), shape(the_shape), format(the_format), seed(the_seed) {}

void Draft::draw_ordinary() {
  const qkcts_contract& terms = contract.terms;
  q = gaussians(*this, Draw::q, size_of(shape.batch, shape.q_heads, shape.q_len, shape.head_dim));
  k = gaussians(*this, Draw::k, size_of(shape.batch, shape.kv_heads, shape.k_len, shape.head_dim));
  v = gaussians(*this, Draw::v, size_of(shape.batch, shape.kv_heads, shape.k_len, shape.v_head_dim));
  q_gain = ordinary_gain(*this, Side::query);
  k_gain = ordinary_gain(*this, Side::key);
  q_bias = ordinary_norm_bias(*this, Side::query);
  k_bias = ordinary_norm_bias(*this, Side::key);
  scale = stream(Draw::scale).uniform(0, 5, 9);
  const std::uint64_t broadcast = stream(Draw::mask).bits(~std::uint64_t{0});
  broadcast_batch = (broadcast & 1U) != 0 ? shape.batch : 1;
  broadcast_heads = (broadcast & 2U) != 0 ? shape.q_heads : 1;
  if (terms.mask.boolean != 0) draw_ordinary_mask(*this);
  if (terms.score.bias_order != QKCTS_BIAS_NONE)
    bias = gaussians(*this, Draw::bias, size_of(broadcast_batch, broadcast_heads, shape.q_len, shape.k_len));
  if (terms.mask.kv_lengths != 0) kv_len = ordinary_lengths(*this);
  if (terms.rope.order != QKCTS_ROPE_NONE) draw_ordinary_positions(*this);
}

const qkcts_norm& Draft::norm(Side side) const {
  return side == Side::query ? contract.terms.q_norm : contract.terms.k_norm;
}

double* Draft::row(Side side, std::int64_t b, std::int64_t h, std::int64_t t) {
  return rows(side).data() + ((b * heads(side) + h) * tokens(side) + t) * shape.head_dim;
}

double* Draft::v_row(std::int64_t b, std::int64_t h, std::int64_t t) {
  return v.data() + ((b * shape.kv_heads + h) * shape.k_len + t) * shape.v_head_dim;
}

std::size_t Draft::mask_index(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t j) const {
  const std::int64_t b_index = broadcast_batch == 1 ? 0 : b;
  const std::int64_t h_index = broadcast_heads == 1 ? 0 : h;
  return static_cast<std::size_t>(((b_index * broadcast_heads + h_index) * shape.q_len + t) * shape.k_len + j);
}

void Draft::freeze_positions() {
  std::fill(q_position_ids.begin(), q_position_ids.end(), 2);
  std::fill(k_position_ids.begin(), k_position_ids.end(), 2);
}

void Draft::set_gain(Side side, double factor) {
  std::vector<double>& gain = side == Side::query ? q_gain : k_gain;
  std::vector<double>& norm_bias = side == Side::query ? q_bias : k_bias;
  std::fill(gain.begin(), gain.end(), factor);
  std::fill(norm_bias.begin(), norm_bias.end(), 0.0);
}

bool Draft::fit_score(double size) {
  const qkcts_score& score = contract.terms.score;
  const auto lanes = static_cast<double>(shape.head_dim);
  double unit = lanes / (score.temperature > 0 ? score.temperature : 1);  // aligned rows of rms 1
  if (score.scale_form == QKCTS_SCALE_INV_SQRT_HEAD_DIM) unit /= std::sqrt(lanes);
  if (score.scale_form == QKCTS_SCALE_CONSTANT) unit *= score.scale_value;
  if (score.scale_form == QKCTS_SCALE_INV_SQRT_SCALAR) unit /= std::sqrt(score.scale_value);
  bool open[2] = {};
  for (const Side side : {Side::query, Side::key}) {
    const qkcts_norm& n = norm(side);
    const double width = n.axis == QKCTS_AXIS_FULL_WIDTH ? lanes * static_cast<double>(heads(side)) : lanes;
    if (n.applied != 0 && n.statistic == QKCTS_SUM_SQUARE) unit /= std::sqrt(width);
    if (n.applied != 0) set_gain(side, 1);
    open[static_cast<int>(side)] = n.applied == 0 || n.gain != QKCTS_GAIN_NONE;
  }
  if (score.scale_form == QKCTS_SCALE_LEARNED_SCALAR) {
    scale = size / unit;
    return scale <= parameters(format).largest;
  }
  const double factor = size / unit;
  if (!open[0] && !open[1]) return false;
  const double share = open[0] && open[1] ? std::sqrt(factor) : factor;
  for (const Side side : {Side::query, Side::key}) {
    if (!open[static_cast<int>(side)]) continue;
    if (norm(side).applied != 0) {
      set_gain(side, share);
    } else {
      (side == Side::query ? q_amplitude : k_amplitude) = share;
    }
  }
  return share * 8 <= parameters(format).largest;
}

void Draft::amplify() {
  for (double& x : q) x *= q_amplitude;
  for (double& x : k) x *= k_amplitude;
}

DrawnCase sealed(const Draft& draft) {
  const qkcts_shape& s = draft.shape;
  DrawnCase drawn;
  drawn.c.contract = draft.contract;
  drawn.c.shape = s;
  drawn.c.inputs.format = draft.format;
  for (const InputRequirement& need : required_inputs(draft.contract.terms, s, draft.format)) {
    const std::vector<std::int64_t> broadcast = {draft.broadcast_batch, draft.broadcast_heads, s.q_len, s.k_len};
    const auto set = [&](const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
      drawn.c.inputs.set(need.input, encoded(draft.format, shape, values));
    };
    switch (need.input) {
      case Input::q:
        set(need.shape, draft.q);
        break;
      case Input::k:
        set(need.shape, draft.k);
        break;
      case Input::v:
        set(need.shape, draft.v);
        break;
      case Input::q_gain:
        set(need.shape, stored_gain(draft, Side::query));
        break;
      case Input::k_gain:
        set(need.shape, stored_gain(draft, Side::key));
        break;
      case Input::q_bias:
        set(need.shape, draft.q_bias);
        break;
      case Input::k_bias:
        set(need.shape, draft.k_bias);
        break;
      case Input::scale:
        set(need.shape, {draft.scale});
        break;
      case Input::bias:
        set(broadcast, draft.bias);
        break;
      case Input::mask: {
        Tensor tensor = Tensor::zeros(ElementType::boolean, broadcast);
        for (std::size_t i = 0; i < draft.mask.size(); ++i) tensor.set_pattern(i, draft.mask[i]);
        drawn.c.inputs.set(need.input, std::move(tensor));
        break;
      }
      case Input::kv_len:
        drawn.c.inputs.set(need.input, integers(need.shape, draft.kv_len));
        break;
      case Input::q_position_ids:
        drawn.c.inputs.set(need.input, integers(need.shape, draft.q_position_ids));
        break;
      case Input::k_position_ids:
        drawn.c.inputs.set(need.input, integers(need.shape, draft.k_position_ids));
        break;
      case Input::cos:
      case Input::sin:
        for (const auto* ids : {&draft.q_position_ids, &draft.k_position_ids})
          for (const std::int32_t id : *ids) drawn.table_rows = std::max<std::int64_t>(drawn.table_rows, id + 1);
        drawn.first_position = draft.first_position;
        break;
    }
  }
  return drawn;
}

std::vector<double> row_of(const Tensor& tensor, std::int64_t row) {
  const auto length = static_cast<std::size_t>(tensor.shape.back());
  std::vector<double> values(length);
  for (std::size_t i = 0; i < length; ++i) values[i] = tensor.value(static_cast<std::size_t>(row) * length + i);
  return values;
}

double sum_of_squares(const std::vector<double>& row) {
  return dot(row, row);
}

double dot(const std::vector<double>& left, const std::vector<double>& right) {
  double sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i) sum += left[i] * right[i];
  return sum;
}

}  // namespace qkcts
