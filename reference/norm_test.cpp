// SPDX-License-Identifier: Apache-2.0
// Every normalization, with and without rotation, against a twin in exact rationals. The twin never forms a root: the
// claim "y = R/d + B lies in [low, high]" is checked by comparing squares.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reference/attention.hpp"
#include "reference/real.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

// Sign of p sqrt(a) - q.
int compare_root(const Rational& p, const Rational& a, const Rational& q) {
  const Rational left = p * p * a;
  const Rational right = q * q;
  const int sign_p = a.sign() == 0 ? 0 : p.sign();
  if (sign_p >= 0 && q.sign() < 0) return 1;
  if (sign_p <= 0 && q.sign() > 0) return -1;
  const int larger = left > right ? 1 : left < right ? -1 : 0;
  return sign_p < 0 || q.sign() < 0 ? -larger : larger;
}

// y = numerator / (sqrt(radicand) + addend) + offset, clamped to [-bound, bound] unless bound is 0.
struct Quotient {
  Rational numerator, offset, radicand, addend, bound;

  // Sign of y - t. The clamped number is never formed: beyond the bounds t alone decides.
  int against(const Rational& t) const {
    if (bound.sign() == 0) return unclamped(t);
    if (t > bound || t < Rational(-bound)) return -t.sign();
    if (t == bound) return std::min(unclamped(t), 0);
    if (t == Rational(-bound)) return std::max(unclamped(t), 0);
    return unclamped(t);
  }

  int unclamped(const Rational& t) const {
    const Rational p = offset - t;  // numerator + p (sqrt(radicand) + addend)
    return compare_root(p, radicand, Rational(-(numerator + p * addend)));
  }
};

struct Lanes {
  std::vector<Rational> numerator, offset;  // of all heads of a group
  Rational radicand = 1, addend = 0;
};

Rational exact(double x) {
  return Rational(x);
}

Rational cut(const Rational& x, const Rational& c) {
  const Rational size = x.sign() < 0 ? Rational(-x) : x;
  return size > c ? Rational(c * Rational(x.sign())) : x;
}

std::size_t parameter_index(std::uint32_t axes, std::size_t head, std::size_t lane, std::size_t width) {
  if (axes == QKCTS_AXES_SCALAR) return 0;
  if (axes == QKCTS_AXES_HEAD) return head;
  return axes == QKCTS_AXES_HEAD_DIM ? lane : head * width + lane;
}

void turn(std::vector<Rational>& x, const Case& c, std::size_t width, std::size_t row_of_table) {
  const qkcts_rope& rope = c.contract.terms.rope;
  const std::size_t rotated = rope.rotated == 0 ? width : rope.rotated;
  for (std::size_t head = 0; head < x.size(); head += width) {
    Rational* first = x.data() + head + (rope.span == QKCTS_SPAN_LAST ? width - rotated : 0);
    for (std::size_t i = 0; i < rotated / 2; ++i) {
      Rational& a = first[rope.pairing == QKCTS_INTERLEAVED ? 2 * i : i];
      Rational& b = first[rope.pairing == QKCTS_INTERLEAVED ? 2 * i + 1 : i + rotated / 2];
      const Rational cos = exact(c.inputs.at(Input::cos).value(row_of_table * (rotated / 2) + i));
      const Rational sin = exact(c.inputs.at(Input::sin).value(row_of_table * (rotated / 2) + i));
      const Rational old_a = a;
      a = cos * old_a - sin * b;
      b = sin * old_a + cos * b;
    }
  }
}

void divide(Lanes& lanes, const qkcts_norm& norm, const CaseInputs& inputs, bool query, std::size_t first_head,
            std::size_t width) {
  const Rational n(static_cast<long>(lanes.numerator.size()));
  Rational sum(0);
  Rational squares(0);
  for (const Rational& x : lanes.numerator) sum += x, squares += x * x;
  if (norm.center != 0) {
    for (Rational& x : lanes.numerator) x = (x * n - sum) / n;
    squares -= sum * sum / n;
  }
  const Rational t = norm.statistic == QKCTS_MEAN_SQUARE ? Rational(squares / n) : squares;
  const Rational eps = exact(norm.eps);
  lanes.addend = 0;
  lanes.radicand = t;
  if (norm.root == QKCTS_INSIDE_ROOT) lanes.radicand += eps;
  if (norm.root == QKCTS_OUTSIDE_ROOT) lanes.addend = eps;
  if (norm.root == QKCTS_MAX_INSIDE && t < eps) lanes.radicand = eps;
  if (norm.root == QKCTS_MAX_ROOT && t < eps * eps) lanes.radicand = 0, lanes.addend = eps;
  for (std::size_t i = 0; i < lanes.numerator.size(); ++i) {
    const std::size_t head = first_head + i / width;
    if (norm.gain != QKCTS_GAIN_NONE) {
      const Tensor& gain = inputs.at(query ? Input::q_gain : Input::k_gain);
      const Rational w = exact(gain.value(parameter_index(norm.gain_axes, head, i % width, width)));
      lanes.numerator[i] *= norm.gain == QKCTS_GAIN_ONE_PLUS_W ? Rational(w + Rational(1)) : w;
    }
    Rational offset(0);
    if (norm.bias_axes != QKCTS_AXES_NONE) {
      const Tensor& bias = inputs.at(query ? Input::q_bias : Input::k_bias);
      offset = exact(bias.value(parameter_index(norm.bias_axes, head, i % width, width)));
    }
    lanes.offset[i] = offset;
  }
}

// The numbers of a norm or rope stage, in the order of the stage.
std::vector<Quotient> twin(const Case& c, qkcts_stage stage) {
  const bool query = stage == QKCTS_STAGE_Q_NORM || stage == QKCTS_STAGE_Q_ROPE;
  const bool is_norm = stage == QKCTS_STAGE_Q_NORM || stage == QKCTS_STAGE_K_NORM;
  const qkcts_norm& norm = query ? c.contract.terms.q_norm : c.contract.terms.k_norm;
  const qkcts_norm_range& range = query ? c.contract.terms.q_range : c.contract.terms.k_range;
  const std::uint32_t order = c.contract.terms.rope.order;
  const Tensor& x = c.inputs.at(query ? Input::q : Input::k);
  const auto heads = static_cast<std::size_t>(x.shape[1]);
  const auto length = static_cast<std::size_t>(x.shape[2]);
  const auto width = static_cast<std::size_t>(x.shape[3]);
  std::vector<Quotient> result(x.count());
  const bool full = norm.applied != 0 && norm.axis == QKCTS_AXIS_FULL_WIDTH;
  for (std::size_t b = 0; b < static_cast<std::size_t>(x.shape[0]); ++b) {
    for (std::size_t t = 0; t < length; ++t) {
      for (std::size_t first = 0; first < heads; first += full ? heads : 1) {
        const std::size_t last = full ? heads : first + 1;
        Lanes lanes;
        for (std::size_t h = first; h < last; ++h)
          for (std::size_t d = 0; d < width; ++d)
            lanes.numerator.push_back(exact(x.value(((b * heads + h) * length + t) * width + d)));
        lanes.offset.assign(lanes.numerator.size(), Rational(0));
        const auto rotate = [&] {
          const Tensor& ids = c.inputs.at(query ? Input::q_position_ids : Input::k_position_ids);
          const auto id = static_cast<std::size_t>(ids.value(b * length + t));
          turn(lanes.numerator, c, width, id);
          turn(lanes.offset, c, width, id);
        };
        if (order == QKCTS_ROPE_THEN_NORM) rotate();
        const bool transforms = !(order == QKCTS_ROPE_THEN_NORM && !is_norm);
        if (transforms && range.clip_before != 0)
          for (Rational& entry : lanes.numerator) entry = cut(entry, exact(range.clip_before));
        if (transforms && norm.applied != 0) divide(lanes, norm, c.inputs, query, first, width);
        if (transforms && range.multiplier != 0)
          for (std::size_t i = 0; i < lanes.numerator.size(); ++i)
            lanes.numerator[i] *= exact(range.multiplier), lanes.offset[i] *= exact(range.multiplier);
        const Rational bound = transforms ? exact(range.clip_after) : Rational(0);
        if (order == QKCTS_NORM_THEN_ROPE && !is_norm) rotate();
        for (std::size_t i = 0; i < lanes.numerator.size(); ++i)
          result[((b * heads + first + i / width) * length + t) * width + i % width] = {
              lanes.numerator[i], lanes.offset[i], lanes.radicand, lanes.addend, bound};
      }
    }
  }
  return result;
}

// Is `pattern` the rounding of y to the format? Compares y with the two midpoints around the value.
bool is_rounding(const Quotient& y, std::uint64_t pattern, Format format) {
  const std::uint64_t sign = std::uint64_t{1} << (parameters(format).bits - 1);
  const std::uint64_t magnitude = pattern & (sign - 1);
  const bool negative = (pattern & sign) != 0;
  const double here = decode(format, magnitude);
  const double next = decode(format, magnitude + 1);
  if (!std::isfinite(here) || !std::isfinite(next)) return false;  // not reached by these samples
  const auto compare = [&](const Rational& t) { return negative ? -y.against(Rational(-t)) : y.against(t); };
  const int to_upper = compare((exact(here) + exact(next)) / Rational(2));
  const bool even = magnitude % 2 == 0;
  if (to_upper > 0 || (to_upper == 0 && !even)) return false;
  if (magnitude == 0) return y.against(Rational(0)) == 0 || y.against(Rational(0)) == (negative ? -1 : 1);
  const int to_lower = compare((exact(here) + exact(decode(format, magnitude - 1))) / Rational(2));
  return to_lower > 0 || (to_lower == 0 && even);
}

// hi + (lo +- 1/2) ulp/256 encloses y.
bool is_enclosed(const Quotient& y, double hi, int lo) {
  const Rational unit = exact(ulp(Format::binary64, hi)) / Rational(512);
  const Rational centre = exact(hi) + unit * Rational(2 * lo);
  return y.against(Rational(centre - unit)) >= 0 && y.against(Rational(centre + unit)) <= 0;
}

std::size_t wrong_elements(const Case& c, const ReferenceResult& result) {
  std::size_t wrong = 0;
  for (const qkcts_stage stage : {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_NORM, QKCTS_STAGE_Q_ROPE, QKCTS_STAGE_K_ROPE}) {
    if ((stages_of(c.contract.terms) & bit(stage)) == 0) continue;
    const std::vector<Quotient> numbers = twin(c, stage);
    const ProvenStage& proven = result.stages[stage];
    EXPECT_EQ(numbers.size(), proven.hi.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const bool right = is_rounding(numbers[i], proven.expected[i], stage_format(stage, c.inputs.format)) &&
                         is_enclosed(numbers[i], proven.hi[i], proven.lo[i]);
      wrong += right ? 0 : 1;
    }
  }
  return wrong;
}

qkcts_norm norm_number(unsigned i) {
  qkcts_norm norm{};
  norm.applied = 1;
  norm.center = i & 1;
  norm.statistic = i >> 1 & 1;
  norm.root = i >> 2 & 3;
  norm.axis = i >> 4 & 1;
  norm.gain = i % 3;
  norm.gain_axes = norm.gain == QKCTS_GAIN_NONE ? 0u : 1 + i % 5;
  norm.bias_axes = i % 7 % 6;
  norm.eps = i % 2 == 0 ? 1e-5 : 3e-4;
  return norm;
}

Case norm_case(unsigned q_norm, unsigned k_norm, std::uint32_t order, const SampleSpec& spec) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.name = fmt::format("norm_{}_{}", q_norm, k_norm);
  contract.terms.q_norm = norm_number(q_norm);
  contract.terms.k_norm = norm_number(k_norm);
  contract.terms.rope.order = order;
  contract.terms.rope.theta = 1e4;
  contract.terms.rope.pairing = q_norm % 2;
  contract.terms.rope.span = q_norm / 2 % 2;
  contract.terms.rope.rotated = q_norm % 3 == 0 ? 0 : 4;
  return sample_case(contract, spec);
}

// make(number of the norm, order, spec) gives the case.
template <class Make>
void expect_all_right(const Make& make) {
  constexpr Format formats[] = {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16};
  constexpr SampleValues values[] = {SampleValues::full, SampleValues::tiny, SampleValues::coarse};
  for (unsigned i = 0; i < 32; ++i) {
    for (const std::uint32_t order : {QKCTS_ROPE_NONE, QKCTS_NORM_THEN_ROPE, QKCTS_ROPE_THEN_NORM}) {
      SampleSpec spec;
      spec.format = formats[(i + order) % 4];
      spec.values = values[(i / 4 + order) % 3];
      spec.seed = i + 100 * order;
      spec.shape = {1, 2, 2, 2, 3, 6, 1};
      const Case c = make(i, order, spec);
      EXPECT_EQ(wrong_elements(c, evaluate(c, every_row(c))), 0u) << c.slug << " order " << order;
    }
  }
}

TEST(Norm, EveryKindRootAxisGainAndOrderAgainstExactRationals) {
  expect_all_right(
      [](unsigned i, std::uint32_t order, const SampleSpec& spec) { return norm_case(i, 31 - i, order, spec); });
}

// Clamps and a factor around every norm, and where there is none. (A rotation after clip_after is no quotient any more;
// that is the slow twin's.)
Case ranged_case(unsigned i, std::uint32_t order, const SampleSpec& spec) {
  Contract contract = norm_case(i, 31 - i, order, spec).contract;
  contract.terms.q_range = {0.75, 1.3, order == QKCTS_NORM_THEN_ROPE ? 0.0 : 0.9};
  contract.terms.k_range = {i % 2 == 0 ? 0.0 : 1.5, 0.7, order == QKCTS_NORM_THEN_ROPE ? 0.0 : 0.625};
  if (i % 5 == 0 && order != QKCTS_ROPE_THEN_NORM) contract.terms.k_norm = qkcts_norm{};
  return sample_case(contract, spec);
}

TEST(Norm, ClampsAndFactorsAgainstExactRationals) {
  expect_all_right(ranged_case);
}

TEST(Norm, TheTwinNoticesANeighbouringRange) {
  SampleSpec spec;
  spec.shape = {1, 2, 2, 2, 3, 6, 1};
  const auto wrong_under = [&](auto change) {
    Case c = ranged_case(1, QKCTS_ROPE_NONE, spec);
    const ReferenceResult result = evaluate(c, every_row(c));
    EXPECT_EQ(wrong_elements(c, result), 0u);
    change(c.contract.terms);
    return wrong_elements(c, result);
  };
  EXPECT_GT(wrong_under([](qkcts_contract& terms) { terms.q_range.clip_before = 0; }), 0u);
  EXPECT_GT(wrong_under([](qkcts_contract& terms) { terms.q_range.clip_before *= 1 + 0x1p-40; }), 0u);
  EXPECT_GT(wrong_under([](qkcts_contract& terms) { terms.k_range.multiplier = 1; }), 0u);
  EXPECT_GT(wrong_under([](qkcts_contract& terms) { terms.k_range.clip_after = 0; }), 0u);
  EXPECT_GT(wrong_under([](qkcts_contract& terms) { terms.q_range.clip_after *= 1 + 0x1p-40; }), 0u);
  EXPECT_GT(wrong_under([](qkcts_contract& terms) {  // the factor after the clamp
              terms.q_range.clip_after *= terms.q_range.multiplier;
            }),
            0u);
}

// 3/5 and 4/5 under an L2 norm times 5/4: the second stands on the bound 1 itself, the third case a little above or
// below.
TEST(Norm, EntryOnTheBoundOfAClamp) {
  SampleSpec spec;
  spec.shape = {1, 1, 1, 1, 1, 2, 1};
  Contract contract = shipped_contract("plain_sdpa");
  contract.name = "bound";
  contract.terms.q_norm.applied = 1;
  contract.terms.q_norm.statistic = QKCTS_SUM_SQUARE;
  for (const double multiplier : {1.25, 1.25 * (1 + 0x1p-52), 1.25 * (1 - 0x1p-52)}) {
    contract.terms.q_range = {0, multiplier, 1};
    Case c = sample_case(contract, spec);
    set_values(c, Input::q, std::vector<double>{3, -4});
    const ReferenceResult result = evaluate(c, every_row(c));
    EXPECT_EQ(wrong_elements(c, result), 0u);
    EXPECT_EQ(result.stages[QKCTS_STAGE_Q_NORM].hi[1], multiplier < 1.25 ? -(1 - 0x1p-52) : -1.0);
    EXPECT_EQ(decode(Format::binary32, result.stages[QKCTS_STAGE_Q_NORM].expected[1]), -1.0);
  }
}

TEST(Norm, TheTwinNoticesANeighbouringContract) {
  SampleSpec spec;
  spec.format = Format::binary32;
  spec.values = SampleValues::tiny;
  spec.shape = {1, 2, 2, 2, 3, 6, 1};
  const auto wrong_under = [&](auto change) {
    Case c = norm_case(0, 16, QKCTS_NORM_THEN_ROPE, spec);
    const ReferenceResult result = evaluate(c, every_row(c));
    EXPECT_EQ(wrong_elements(c, result), 0u);
    change(c.contract.terms);
    return wrong_elements(c, result);
  };
  EXPECT_GT(wrong_under([](qkcts_contract& terms) { terms.q_norm.eps *= 1 + 0x1p-40; }), 0u);
  EXPECT_GT(wrong_under([](qkcts_contract& terms) { terms.k_norm.root = QKCTS_OUTSIDE_ROOT; }), 0u);
  EXPECT_GT(wrong_under([](qkcts_contract& terms) { terms.q_norm.center = 1; }), 0u);
  EXPECT_GT(wrong_under([](qkcts_contract& terms) { terms.q_norm.statistic = QKCTS_SUM_SQUARE; }), 0u);
  EXPECT_GT(wrong_under([](qkcts_contract& terms) { terms.k_norm.axis = QKCTS_AXIS_HEAD; }), 0u);
  EXPECT_GT(wrong_under([](qkcts_contract& terms) { terms.rope.pairing ^= 1; }), 0u);
  EXPECT_GT(wrong_under([](qkcts_contract& terms) { terms.rope.order = QKCTS_ROPE_THEN_NORM; }), 0u);
}

// A zero vector under eps = 0 has no value; with any eps it is 0, plus the bias.
TEST(Norm, ZeroVector) {
  SampleSpec spec;
  spec.shape = {1, 1, 1, 1, 1, 4, 1};
  for (unsigned i = 0; i < 32; ++i) {
    Case c = norm_case(i, 1, QKCTS_ROPE_NONE, spec);
    set_values(c, Input::q, std::vector<double>(4, i % 2 == 0 ? 0.0 : 0x1.23456p-3));  // constant where centred
    const ReferenceResult result = evaluate(c, every_row(c));
    EXPECT_EQ(wrong_elements(c, result), 0u) << c.slug;
    c.contract.terms.q_norm.eps = 0;
    try {
      evaluate(c, every_row(c));
      ADD_FAILURE() << c.slug;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("divides 0 by 0"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace qkcts
