// SPDX-License-Identifier: Apache-2.0
// The table of invariances of docs/contract.md, row by row: what a change of the input does to the norm of a vector.
//
// "same" is shown on proven values: RN64(z) and the rest of z agree, which is z to 2^-62 of its size. "no" is shown by
// a vector where they do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "reference/attention.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

constexpr std::int64_t width = 8;

struct Kind {
  const char* name;
  std::uint32_t center, statistic;
};
constexpr Kind kinds[] = {{"RMS", 0, QKCTS_MEAN_SQUARE},
                          {"LayerNorm", 1, QKCTS_MEAN_SQUARE},
                          {"L2", 0, QKCTS_SUM_SQUARE},
                          {"centred L2", 1, QKCTS_SUM_SQUARE}};
constexpr std::uint32_t roots[] = {QKCTS_INSIDE_ROOT, QKCTS_OUTSIDE_ROOT, QKCTS_MAX_ROOT, QKCTS_MAX_INSIDE};

struct Value {
  double hi;
  int lo;
  bool operator==(const Value&) const = default;
};
using Vector = std::vector<Value>;

Vector stage_values(const Case& c, qkcts_stage stage) {
  const ReferenceResult result = evaluate(c, every_row(c));
  const ProvenStage& proven = result.stages[stage];
  Vector values;
  for (std::size_t i = 0; i < proven.hi.size(); ++i) values.push_back({proven.hi[i], proven.lo[i]});
  return values;
}

// One vector q of eight numbers in binary64, a norm on q alone.
Case one_vector(const Kind& kind, std::uint32_t root, double eps, const std::vector<double>& x) {
  Contract contract;
  contract.name = "relation";
  qkcts_norm& norm = contract.terms.q_norm;
  norm.applied = 1;
  norm.center = kind.center;
  norm.statistic = kind.statistic;
  norm.root = root;
  norm.eps = eps;
  SampleSpec spec;
  spec.format = Format::binary64;
  spec.shape = {1, 1, 1, 1, 1, width, 1};
  Case c = sample_case(contract, spec);
  set_values(c, Input::q, x);
  return c;
}

Vector normed(const Kind& kind, std::uint32_t root, double eps, const std::vector<double>& x) {
  return stage_values(one_vector(kind, root, eps, x), QKCTS_STAGE_Q_NORM);
}

// Few bits, so that multiples and shifts by small integers stay exact; no symmetry, mean not 0.
const std::vector<double> x = {0.75, -1.5, 2.25, 0.125, -0.625, 3.0, 1.375, -0.25};

std::vector<double> changed(const std::function<double(double)>& change) {
  std::vector<double> y = x;
  std::transform(y.begin(), y.end(), y.begin(), change);
  return y;
}

Vector negated(Vector values) {
  for (Value& value : values) value = {-value.hi, -value.lo};
  return values;
}

TEST(NormRelations, PositiveFactorWithoutEpsilon) {
  for (const Kind& kind : kinds)
    for (const double a : {3.0, 0x1p-7, 0.375})
      for (const std::uint32_t root : roots)
        EXPECT_EQ(normed(kind, root, 0, changed([a](double v) { return a * v; })), normed(kind, root, 0, x))
            << kind.name << " " << root;
}

// P2: the same factor on x and, squared inside the root, on epsilon.
TEST(NormRelations, PositiveFactorWithEpsilonAlong) {
  const double eps = 0.3125;
  for (const Kind& kind : kinds)
    for (const double a : {3.0, 0x1p-7, 4.0})
      for (const std::uint32_t root : roots) {
        const bool inside = root == QKCTS_INSIDE_ROOT || root == QKCTS_MAX_INSIDE;
        const std::vector<double> ax = changed([a](double v) { return a * v; });
        EXPECT_EQ(normed(kind, root, inside ? a * a * eps : a * eps, ax), normed(kind, root, eps, x))
            << kind.name << " " << root;
        // The neighbour: epsilon scaled as the other roots want it. (A maximum may not see it.)
        if (root != QKCTS_INSIDE_ROOT && root != QKCTS_OUTSIDE_ROOT) continue;
        EXPECT_NE(normed(kind, root, inside ? a * eps : a * a * eps, ax), normed(kind, root, eps, x)) << kind.name;
      }
}

TEST(NormRelations, PositiveFactorWithEpsilonKept) {
  const double eps = 0.3125;
  const std::vector<double> larger = changed([](double v) { return 3 * v; });
  const std::vector<double> below_floor = changed([](double v) { return 0x1p-6 * v; });
  for (const Kind& kind : kinds)
    for (const std::uint32_t root : roots) {
      const bool floor = root == QKCTS_MAX_ROOT || root == QKCTS_MAX_INSIDE;
      EXPECT_EQ(normed(kind, root, eps, larger) == normed(kind, root, eps, x), floor) << kind.name << " " << root;
      EXPECT_NE(normed(kind, root, eps, below_floor), normed(kind, root, eps, x)) << kind.name << " " << root;
    }
}

TEST(NormRelations, Sign) {
  const std::vector<double> minus_x = changed([](double v) { return -v; });
  for (const Kind& kind : kinds)
    for (const std::uint32_t root : roots)
      EXPECT_EQ(normed(kind, root, 0.01, minus_x), negated(normed(kind, root, 0.01, x))) << kind.name;
}

// P3: only centring takes a common shift away.
TEST(NormRelations, CommonShift) {
  const std::vector<double> shifted = changed([](double v) { return v + 5; });
  for (const Kind& kind : kinds)
    for (const std::uint32_t root : roots)
      EXPECT_EQ(normed(kind, root, 0.01, shifted) == normed(kind, root, 0.01, x), kind.center != 0) << kind.name;
}

TEST(NormRelations, PermutationOfLanes) {
  const std::size_t order[] = {5, 2, 7, 0, 3, 6, 1, 4};
  std::vector<double> permuted;
  for (const std::size_t from : order) permuted.push_back(x[from]);
  for (const Kind& kind : kinds)
    for (const std::uint32_t root : roots) {
      const Vector before = normed(kind, root, 0.01, x);
      Vector expected;
      for (const std::size_t from : order) expected.push_back(before[from]);
      EXPECT_EQ(normed(kind, root, 0.01, permuted), expected) << kind.name;
    }
}

// P7: with exact cosines and sines the rotation keeps sums of squares, and no mean.
TEST(NormRelations, RotationCommutesWithRmsAndL2WithoutGain) {
  for (const Kind& kind : kinds)
    for (const bool gain : {false, true}) {
      Case c = one_vector(kind, QKCTS_INSIDE_ROOT, 0.01, x);
      qkcts_contract& terms = c.contract.terms;
      terms.rope = {QKCTS_NORM_THEN_ROPE, QKCTS_HALF_SPLIT, QKCTS_SPAN_FIRST, 0, 100};
      terms.rotation.angles = QKCTS_ANGLES_COMPUTED;
      if (gain) {
        terms.q_norm.gain = QKCTS_GAIN_W;
        terms.q_norm.gain_axes = QKCTS_AXES_HEAD_DIM;
      }
      SampleSpec spec;
      spec.format = Format::binary64;
      spec.shape = c.shape;
      c = sample_case(c.contract, spec);
      set_values(c, Input::q, x);
      set_values(c, Input::q_position_ids, std::vector<double>{3});
      const Vector norm_first = stage_values(c, QKCTS_STAGE_Q_ROPE);
      c.contract.terms.rope.order = QKCTS_ROPE_THEN_NORM;
      const Vector rope_first = stage_values(c, QKCTS_STAGE_Q_NORM);
      EXPECT_EQ(norm_first == rope_first, kind.center == 0 && !gain) << kind.name << " " << gain;
    }
}

TEST(NormRelations, LengthWithoutEpsilon) {
  for (const Kind& kind : kinds) {
    double squares = 0;
    for (const Value& value : normed(kind, QKCTS_INSIDE_ROOT, 0, x)) squares += value.hi * value.hi;
    EXPECT_NEAR(squares, kind.statistic == QKCTS_MEAN_SQUARE ? width : 1, 1e-14) << kind.name;
  }
}

// A bias breaks "negated"; under full_width one head's scale changes the other heads.
TEST(NormRelations, WhatABiasAndTheFullWidthBreak) {
  Contract contract = shipped_contract("clause_norm_bias");
  SampleSpec spec;
  spec.format = Format::binary64;
  spec.shape = {1, 2, 1, 1, 1, width, 1};
  Case c = sample_case(contract, spec);
  const Vector before = stage_values(c, QKCTS_STAGE_Q_NORM);
  std::vector<double> q = c.inputs.at(Input::q).values();
  for (double& value : q) value = -value;
  set_values(c, Input::q, q);
  EXPECT_NE(stage_values(c, QKCTS_STAGE_Q_NORM), negated(before));

  for (const bool full : {false, true}) {
    contract = shipped_contract(full ? "olmo2_full_width" : "vit22b_rms_uncentered");
    c = sample_case(contract, spec);
    const Vector of_x = stage_values(c, QKCTS_STAGE_Q_NORM);
    q = c.inputs.at(Input::q).values();
    for (std::size_t lane = 0; lane < width; ++lane) q[lane] *= 2;  // head 0 alone
    set_values(c, Input::q, q);
    const Vector of_changed = stage_values(c, QKCTS_STAGE_Q_NORM);
    const bool second_head_same = std::equal(of_x.begin() + width, of_x.end(), of_changed.begin() + width);
    EXPECT_EQ(second_head_same, !full);
  }
}

}  // namespace
}  // namespace qkcts
