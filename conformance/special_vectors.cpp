// SPDX-License-Identifier: Apache-2.0
#include "conformance/special_vectors.hpp"

#include <algorithm>
#include <cmath>

#include "conformance/format.hpp"
#include "conformance/parameter_place.hpp"

namespace qkcts {
namespace {

using Row = std::vector<Outcomes>;

Row outcomes_of(const CaseInputs& inputs, Input input) {
  Row list;
  if (!inputs.has(input)) return list;
  for (const double value : inputs.at(input).values()) list.push_back(input_outcomes(value));
  return list;
}

// Factors as they multiply: 1 + w in place of w where the contract says so.
Row gain_outcomes(const CaseInputs& inputs, Input input, const qkcts_norm& norm) {
  if (norm.gain != QKCTS_GAIN_ONE_PLUS_W || !inputs.has(input)) return outcomes_of(inputs, input);
  Row list;
  for (const double value : inputs.at(input).values()) list.push_back(input_outcomes(1 + value));
  return list;
}

bool all_numbers(const Row& row) {
  return std::all_of(row.begin(), row.end(), is_number);
}

// min(max(x, -c), c). NaN stays NaN or is lost, as the machine has minimum and maximum (IEEE 754-2019 knows both
// minimum and minimumNumber). An infinity that stands there for sure becomes the number c; that is what the stand-in
// has where `exact`.
Outcomes clipped(double c, Outcomes x, bool exact) {
  if (c == 0 || is_number(x)) return x;
  if (exact && x == outcome::plus_infinity) return outcome::positive;
  if (exact && x == outcome::minus_infinity) return outcome::negative;
  return outcome::number_or_nan;
}

struct NormOutcomes {
  const qkcts_contract& terms;
  const qkcts_norm& norm;
  const qkcts_norm_range& range;
  const qkcts_vector_rounding& points;
  Row gain, bias;
  std::int64_t heads, length, lanes;
  bool clips_exactly;  // the largest number of the storage format reaches clip_before

  // clip_after(multiplier * norm(clip_before(x))), in place; `x` is [B, heads, length, lanes].
  void apply(Row& x) const {
    const bool wide = norm.applied != 0 && norm.axis == QKCTS_AXIS_FULL_WIDTH;
    const std::int64_t together = wide ? heads : 1;
    const std::int64_t batch = static_cast<std::int64_t>(x.size()) / (heads * length * lanes);
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t first = 0; first < heads; first += together)
        for (std::int64_t t = 0; t < length; ++t) {
          Row group;
          const auto row = [&](std::int64_t h) { return x.begin() + ((b * heads + h) * length + t) * lanes; };
          for (std::int64_t h = first; h < first + together; ++h) group.insert(group.end(), row(h), row(h) + lanes);
          transform(group, first);
          for (std::int64_t h = first; h < first + together; ++h)
            std::copy_n(group.begin() + (h - first) * lanes, lanes, row(h));
        }
  }

 private:
  void transform(Row& group, std::int64_t first_head) const {
    for (Outcomes& x : group) x = clipped(range.clip_before, x, clips_exactly);
    if (norm.applied != 0) divide(group, first_head);
    for (Outcomes& x : group) x = at_point(terms, points.norm, clipped(range.clip_after, x, false));
  }

  // The statistic is a sum of squares. Its root, by way of x * rsqrt(x) or of a Newton step, makes NaN of an infinity
  // as well; a maximum with epsilon, and a clipped variance, lose a NaN where the machine's maximum does.
  Outcomes divisor(const Row& centred) const {
    Outcomes t = outcome::zero | outcome::positive;
    for (const Outcomes c : centred) {
      Outcomes square = is_number(c) ? outcome::positive : c & outcome::nan;
      if ((c & outcome::number) != 0) square |= outcome::positive;
      if ((c & outcome::infinite) != 0) square |= outcome::plus_infinity;
      t = sum(t, square);
    }
    t = summed(t);
    const bool drops_nan = norm.root == QKCTS_MAX_ROOT || norm.root == QKCTS_MAX_INSIDE ||
                           norm.variance == QKCTS_VARIANCE_ONE_PASS_CLIPPED;
    return (t & outcome::nan) != 0 && drops_nan ? t | outcome::positive : t;
  }

  void divide(Row& group, std::int64_t first_head) const {
    const bool special = !all_numbers(group);
    if (norm.center != 0) {
      Outcomes mean = outcome::number;
      for (const Outcomes x : group) mean = sum(mean, x);
      for (Outcomes& x : group) x = sum(x, negated(summed(mean)));
    }
    Outcomes inverse = outcome::positive;
    if (special) {
      const Outcomes d = divisor(group);
      inverse = static_cast<Outcomes>((d & outcome::nan) | (may_be_number(d) ? outcome::positive : 0) |
                                      ((d & outcome::infinite) != 0 ? outcome::zero : 0));
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::int64_t head = first_head + static_cast<std::int64_t>(i) / lanes;
      const std::int64_t lane = static_cast<std::int64_t>(i) % lanes;
      const bool has_gain = norm.gain != QKCTS_GAIN_NONE;
      const Outcomes factor = has_gain ? gain[parameter_place(norm.gain_axes, head, lane, lanes)] : outcome::positive;
      const Outcomes x = group[i];
      // Any association of the three factors is legal.
      Outcomes y = product(product(x, inverse), factor) | product(x, product(inverse, factor)) |
                   product(product(x, factor), inverse);
      for (const std::uint32_t point : {points.root, points.reciprocal, points.unit}) y = at_point(terms, point, y);
      if (norm.bias_axes != QKCTS_AXES_NONE) y = sum(y, bias[parameter_place(norm.bias_axes, head, lane, lanes)]);
      group[i] = y;
    }
  }
};

NormOutcomes norm_outcomes(const Case& c, const qkcts_norm& norm, const qkcts_norm_range& range,
                           const qkcts_vector_rounding& points, std::array<std::int64_t, 3> extents, Input gain,
                           Input bias) {
  const double largest = parameters(c.inputs.format).largest;
  return {c.contract.terms,
          norm,
          range,
          points,
          gain_outcomes(c.inputs, gain, norm),
          outcomes_of(c.inputs, bias),
          extents[0],
          extents[1],
          extents[2],
          range.clip_before <= largest};
}

constexpr qkcts_norm_range no_range{};

struct ProjectionInputs {
  Input x, weight, bias, gain, norm_bias;
  const qkcts_norm& norm;
  const qkcts_input_rounding& norm_points;
  std::uint32_t point;
};

// x^ W + b, as [B, heads, length, lanes].
Row projected(const Case& c, const ProjectionInputs& given, std::int64_t heads, std::int64_t length) {
  const std::int64_t lanes = c.shape.head_dim, width = c.inputs.at(given.x).shape.back();
  Row x = outcomes_of(c.inputs, given.x);
  if (given.norm.applied != 0) {
    qkcts_norm norm = given.norm;
    norm.axis = QKCTS_AXIS_HEAD;  // the whole row is one head
    qkcts_vector_rounding points{};
    points.unit = given.norm_points.unit;
    points.norm = given.norm_points.norm;
    norm_outcomes(c, norm, no_range, points, {1, length, width}, given.gain, given.norm_bias).apply(x);
  }
  const Row weight = outcomes_of(c.inputs, given.weight), bias = outcomes_of(c.inputs, given.bias);
  const bool plain_weight = all_numbers(weight) && all_numbers(bias);
  Row result(static_cast<std::size_t>(c.shape.batch * heads * length * lanes), outcome::number);
  for (std::int64_t token = 0; token < c.shape.batch * length; ++token) {
    const Row row(x.begin() + token * width, x.begin() + (token + 1) * width);
    if (plain_weight && all_numbers(row)) continue;
    for (std::int64_t column = 0; column < heads * lanes; ++column) {
      Outcomes total = outcome::zero;
      for (std::int64_t e = 0; e < width; ++e)
        total = sum(total, product(row[static_cast<std::size_t>(e)],
                                   weight[static_cast<std::size_t>(e * heads * lanes + column)]));
      if (!bias.empty()) total = sum(total, bias[static_cast<std::size_t>(column)]);
      const std::int64_t to = (token / length * heads + column / lanes) * length + token % length;
      result[static_cast<std::size_t>(to * lanes + column % lanes)] =
          at_point(c.contract.terms, given.point, summed(total));
    }
  }
  return result;
}

struct RotationInputs {
  Input position_ids;
  const qkcts_vector_rounding& points;
};

// C and S of pair `pair` for a token; computed angles may have any sign.
struct Turn {
  Outcomes cosine = outcome::number, sine = outcome::number;
};

class RotationOutcomes {
 public:
  RotationOutcomes(const Case& c, const RotationInputs& given, std::int64_t heads, std::int64_t length)
      : c_(c), terms_(c.contract.terms), given_(given), heads_(heads), length_(length) {}

  void apply(Row& x) const {
    const std::int64_t lanes = c_.shape.head_dim;
    const std::int64_t span = terms_.rope.rotated == 0 ? lanes : terms_.rope.rotated;
    const std::int64_t first = terms_.rope.span == QKCTS_SPAN_LAST ? lanes - span : 0;
    const bool interleaved = terms_.rope.pairing == QKCTS_INTERLEAVED;
    const bool moves = terms_.rotation.layout == QKCTS_LAYOUT_DEINTERLEAVED;
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(x.size()) / lanes; ++row) {
      Outcomes* const lane = x.data() + row * lanes + first;
      const Row before(lane, lane + span);
      if (all_numbers(before)) {
        std::fill(lane, lane + span, outcome::number);  // of any sign
        continue;
      }
      for (std::int64_t pair = 0; pair < span / 2; ++pair) {
        const std::int64_t a = interleaved ? 2 * pair : pair, b = interleaved ? 2 * pair + 1 : pair + span / 2;
        const auto [cosine, sine] = turn(row, pair, span / 2);
        const Outcomes s = terms_.rotation.sense == QKCTS_SENSE_NEGATIVE ? negated(sine) : sine;
        const Outcomes at_a = before[static_cast<std::size_t>(a)], at_b = before[static_cast<std::size_t>(b)];
        lane[moves ? pair : a] = turned(product(at_a, cosine), product(at_b, negated(s)));
        lane[moves ? pair + span / 2 : b] = turned(product(at_b, cosine), product(at_a, s));
      }
    }
  }

 private:
  Outcomes turned(Outcomes one, Outcomes other) const {
    const auto at = [this](std::uint32_t point, Outcomes x) { return at_point(terms_, point, x); };
    const std::uint32_t product = given_.points.rope_product;
    return at(given_.points.rope, summed(sum(at(product, one), at(product, other))));
  }

  Turn turn(std::int64_t row, std::int64_t pair, std::int64_t pairs) const {
    if (!c_.inputs.has(Input::cos)) return {};
    const Tensor& table = c_.inputs.at(Input::cos);
    const std::int64_t token = row / (heads_ * length_) * length_ + row % length_;
    const auto position =
        static_cast<std::int64_t>(c_.inputs.at(given_.position_ids).value(static_cast<std::size_t>(token)));
    const std::int64_t plane = table.shape.size() == 3 ? row / length_ % heads_ * table.shape[1] : 0;
    const auto at = static_cast<std::size_t>((plane + position) * pairs + pair);
    return {input_outcomes(table.value(at)), input_outcomes(c_.inputs.at(Input::sin).value(at))};
  }

  const Case& c_;
  const qkcts_contract& terms_;
  const RotationInputs& given_;
  std::int64_t heads_, length_;
};

// The stages of one side of q and k, in the order of the contract.
SideOutcomes side_outcomes(const Case& c, Row x, bool is_projected, const NormOutcomes* norm,
                           const RotationOutcomes* rotation) {
  SideOutcomes side;
  if (is_projected) side.projected = x;
  const bool rotates_first = c.contract.terms.rope.order == QKCTS_ROPE_THEN_NORM;
  if (rotation != nullptr && rotates_first) {
    rotation->apply(x);
    side.roped = x;
  }
  if (norm != nullptr) {
    norm->apply(x);
    side.normed = x;
  }
  if (rotation != nullptr && !rotates_first) {
    rotation->apply(x);
    side.roped = x;
  }
  side.last = std::move(x);
  return side;
}

SideOutcomes q_or_k(const Case& c, std::int64_t heads, std::int64_t length, Input input,
                    const ProjectionInputs& projection, const qkcts_norm& norm, const qkcts_norm_range& range,
                    const qkcts_vector_rounding& points, Input gain, Input bias, Input position_ids) {
  const bool projects = c.contract.terms.projection.form != QKCTS_PROJECTION_NONE;
  const NormOutcomes normed = norm_outcomes(c, norm, range, points, {heads, length, c.shape.head_dim}, gain, bias);
  const RotationInputs turning{position_ids, points};
  const RotationOutcomes rotated(c, turning, heads, length);
  return side_outcomes(c, projects ? projected(c, projection, heads, length) : outcomes_of(c.inputs, input), projects,
                       transforms(norm, range) ? &normed : nullptr,
                       c.contract.terms.rope.order != QKCTS_ROPE_NONE ? &rotated : nullptr);
}

}  // namespace

Outcomes input_outcomes(double value) {
  if (std::isnan(value)) return outcome::nan;
  if (std::isinf(value)) return value > 0 ? outcome::plus_infinity : outcome::minus_infinity;
  return static_cast<Outcomes>(outcome::zero | (value > 0 ? outcome::positive : value < 0 ? outcome::negative : 0));
}

// e4m3fn has no infinity. A saturating conversion makes the largest number of one and keeps a NaN; a clamp in its place
// may lose the NaN.
Outcomes at_point(const qkcts_contract& terms, std::uint32_t format, Outcomes outcomes) {
  if (format == 0 || is_number(outcomes)) return outcomes;
  if (terms.rounding.saturate != 0) return outcome::number_or_nan;
  if (format != QKCTS_E4M3FN || (outcomes & outcome::infinite) == 0) return outcomes;
  return static_cast<Outcomes>((outcomes & ~outcome::infinite) | outcome::nan);
}

SideOutcomes query_outcomes(const Case& c) {
  const qkcts_contract& terms = c.contract.terms;
  const ProjectionInputs projection{
      Input::q_x,      Input::q_weight,          Input::q_weight_bias,   Input::q_x_gain,
      Input::q_x_bias, terms.projection.q_input, terms.rounding.q_input, terms.rounding.q.projection};
  return q_or_k(c, c.shape.q_heads, c.shape.q_len, Input::q, projection, terms.q_norm, terms.q_range, terms.rounding.q,
                Input::q_gain, Input::q_bias, Input::q_position_ids);
}

SideOutcomes key_outcomes(const Case& c) {
  const qkcts_contract& terms = c.contract.terms;
  const ProjectionInputs projection{
      Input::k_x,      Input::k_weight,          Input::k_weight_bias,   Input::k_x_gain,
      Input::k_x_bias, terms.projection.k_input, terms.rounding.k_input, terms.rounding.k.projection};
  return q_or_k(c, c.shape.kv_heads, c.shape.k_len, Input::k, projection, terms.k_norm, terms.k_range, terms.rounding.k,
                Input::k_gain, Input::k_bias, Input::k_position_ids);
}

SideOutcomes value_outcomes(const Case& c) {
  const qkcts_contract& terms = c.contract.terms;
  const NormOutcomes norm =
      norm_outcomes(c, terms.v_norm, terms.v_range, terms.rounding.v,
                    {c.shape.kv_heads, c.shape.k_len, c.shape.v_head_dim}, Input::v_gain, Input::v_bias);
  return side_outcomes(c, outcomes_of(c.inputs, Input::v), false,
                       transforms(terms.v_norm, terms.v_range) ? &norm : nullptr, nullptr);
}

}  // namespace qkcts
