// SPDX-License-Identifier: Apache-2.0
// The error that stands beside each double word, against what MPFI says of the same number at 257 bits.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "reference/double_word_distance.hpp"
#include "reference/fast_tier_attention.hpp"
#include "reference/fast_tier_operand.hpp"
#include "reference/level.hpp"
#include "reference/row_places.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

using Exact = Level<level_digits[1]>;
using ExactRow = RowEnclosures<level_digits[1]>;
using ExactGroup = GroupEnclosures<level_digits[1]>;

// Largest error / bound of everything that was compared, per kind of value.
struct Ratios {
  double projected = 0, normed = 0, normed_v = 0, roped = 0, scores = 0, capped = 0, probs = 0, lse = 0, output = 0,
         entropy = 0;
};

void raise(double& worst, Word w, double error, const Enclosure<level_digits[1]>& exact) {
  if (std::isinf(error)) return;
  const double d = distance(w, lower(exact));
  if (d != 0) worst = std::max(worst, d / error);
}

void raise(double& worst, const WordArray& words, std::size_t i, const Enclosure<level_digits[1]>& exact) {
  raise(worst, {words.h[i], words.l[i]}, words.error[i], exact);
}

class Comparison {
 public:
  explicit Comparison(const Case& c)
      : values_(c),
        rows_(c),
        vectors_(values_),
        exact_(values_, rows_, vectors_),
        q_(values_, Side::query, all_kernels()[0]),
        k_(values_, Side::key, all_kernels()[0]),
        v_(values_.v.transforms() ? std::make_unique<FastOperands>(values_, Side::value, all_kernels()[0]) : nullptr),
        attention_(values_, rows_, q_, k_, v_.get(), all_kernels()[0]) {
    rows_.hold(all_attention_rows(c.shape));
  }

  void add_to(Ratios& ratios) {
    for (const Side side : all_sides)
      if (side != Side::value || v_) add_groups(side, ratios);
    for (std::size_t row = 0; row < rows_.count(); ++row) add_row(row, ratios);
  }

 private:
  void add_groups(Side which, Ratios& ratios) {
    for (std::int64_t group = 0; group < values_.side(which).group_count(); ++group) {
      GroupWords words;
      if (!(which == Side::query ? q_ : which == Side::key ? k_ : *v_).make(group, words)) continue;
      const ExactGroup exact = exact_.evaluate_group(which, group);
      for (std::size_t i = 0; i < exact.projected.size(); ++i)
        raise(ratios.projected, words.projected, i, exact.projected[i]);
      double& normed = which == Side::value ? ratios.normed_v : ratios.normed;
      for (std::size_t i = 0; i < exact.normed.size(); ++i) raise(normed, words.normed, i, exact.normed[i]);
      for (std::size_t i = 0; i < exact.roped.size(); ++i) raise(ratios.roped, words.roped, i, exact.roped[i]);
    }
  }

  void add_row(std::size_t row, Ratios& ratios) {
    const RowPlace& place = rows_[row];
    ExactRow exact;
    exact_.evaluate_row(row, KeySet::all, exact);
    WordArray scores, capped, seen;
    attention_.set_scores(row, scores);
    for (std::size_t key = 0; key < exact.scores.size(); ++key) raise(ratios.scores, scores, key, exact.scores[key]);
    const std::vector<double> biases = biases_of(place);
    if (!exact.capped.empty()) attention_.set_capped(scores, biases, capped);
    for (std::size_t key = 0; key < exact.capped.size(); ++key)
      if (std::isfinite(biases[key])) raise(ratios.capped, capped, key, exact.capped[key]);
    if (place.visible.size() < 2) return;
    seen.reserve(place.visible.size());
    const WordArray& from = exact.capped.empty() ? scores : capped;
    for (std::size_t j = 0; j < place.visible.size(); ++j) {
      seen.h[j] = from.h[place.visible[j]];
      seen.l[j] = from.l[place.visible[j]];
      seen.error[j] = from.error[place.visible[j]];
    }
    RowSoftmax softmax;
    attention_.set_softmax(place, seen, softmax);
    for (std::size_t j = 0; j < place.visible.size(); ++j) raise(ratios.probs, softmax.probs, j, exact.probs[j]);
    for (std::size_t d = 0; d < exact.output.size(); ++d) raise(ratios.output, softmax.output, d, exact.output[d]);
    raise(ratios.lse, softmax.lse, softmax.lse_error, exact.softmax.lse);
    raise(ratios.entropy, softmax.entropy, softmax.entropy_error, exact.softmax.entropy);
  }

  std::vector<double> biases_of(const RowPlace& place) const {
    std::vector<double> biases(padded(static_cast<std::size_t>(values_.shape.k_len)) + padding, 0.0);
    for (std::int64_t key = 0; key < values_.shape.k_len && values_.has_bias(); ++key) {
      const double bias = values_.bias(place.b, place.h, place.qq, key);
      biases[static_cast<std::size_t>(key)] = std::isinf(bias) ? HUGE_VAL : bias;
    }
    return biases;
  }

  CaseValues values_;
  RowPlaces rows_;
  LevelVectors<level_digits[1]> vectors_;
  Exact exact_;
  FastOperands q_, k_;
  std::unique_ptr<FastOperands> v_;
  FastAttention attention_;
};

constexpr std::array names = {"qwen3_rmsnorm",
                              "henry2020_l2",
                              "flax_qk_layernorm",
                              "gemma2_softcap",
                              "gemma3_rmsnorm",
                              "rmsnorm_softcap",
                              "olmo2_full_width",
                              "llama4_rms_unweighted",
                              "plain_sdpa",
                              "clause_norm_bias",
                              "clause_rope_then_norm",
                              "clause_eps_outside_root",
                              "clause_centered_l2",
                              "clause_bias_before_softcap",
                              "clause_softcap_inexact",
                              "clause_v_norm",
                              "clause_v_full_width",
                              "clause_projection",
                              "clause_projection_bias",
                              "clause_projection_input_norm",
                              "clause_projection_two_norms"};

TEST(FastTierBound, HoldsAndIsApproached) {
  Ratios ratios;
  for (const char* name : names)
    for (const Format format : {Format::binary64, Format::binary32, Format::bfloat16})
      for (const SampleValues values : {SampleValues::full, SampleValues::coarse, SampleValues::tiny})
        for (std::uint64_t seed = 1; seed <= 3; ++seed)
          Comparison(sample_case(shipped_contract(name), {format, values, seed, {1, 4, 2, 3, 5, 8, 6}})).add_to(ratios);
  const struct {
    const char* name;
    double seen, floor;
  } stages[] = {{"projected", ratios.projected, 0.02}, {"normed", ratios.normed, 0.08},
                {"normed_v", ratios.normed_v, 0.05},   {"roped", ratios.roped, 0.15},
                {"scores", ratios.scores, 0.03},       {"capped", ratios.capped, 0.3},
                {"probs", ratios.probs, 0.03},         {"lse", ratios.lse, 0.03},
                {"output", ratios.output, 0.02},       {"entropy", ratios.entropy, 0.03}};
  for (const auto& stage : stages) {
    RecordProperty(stage.name, std::to_string(stage.seen));
    EXPECT_LT(stage.seen, 1) << stage.name;
    EXPECT_GT(stage.seen, stage.floor) << stage.name;
  }
}

// Rows far from 0 under a norm that is centred: what they lose there is more than all that comes after, the projection
// or the mean over values.
TEST(FastTierBound, HoldsWhereCentredRowsCancel) {
  Ratios ratios;
  for (const char* name : {"clause_projection_two_norms", "clause_v_full_width"})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      Case c = sample_case(shipped_contract(name), {Format::binary64, SampleValues::full, seed, {1, 4, 2, 3, 5, 8, 6}});
      for (const Input input : {Input::q_x, Input::v}) {
        if (!c.inputs.has(input)) continue;
        Tensor tensor = c.inputs.at(input);
        for (std::size_t i = 0; i < tensor.count(); ++i)
          tensor.set_pattern(i, encode(Format::binary64, tensor.value(i) + 0x1p30));
        c.inputs.set(input, std::move(tensor));
      }
      Comparison(c).add_to(ratios);
    }
  RecordProperty("projected", std::to_string(ratios.projected));
  RecordProperty("output", std::to_string(ratios.output));
  EXPECT_LT(ratios.projected, 1);
  EXPECT_LT(ratios.output, 1);
  EXPECT_GT(ratios.projected, 0.01);
  EXPECT_GT(ratios.output, 0.001);
}

}  // namespace
}  // namespace qkcts
