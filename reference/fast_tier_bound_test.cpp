// SPDX-License-Identifier: Apache-2.0
// The error that stands beside each double word, against what MPFI says of the same number at 257 bits.
#include <algorithm>
#include <array>
#include <cmath>

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
  double normed = 0, roped = 0, scores = 0, capped = 0, probs = 0, lse = 0, output = 0, entropy = 0;
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
        rows_(all_rows(c)),
        exact_(values_, rows_),
        q_(values_, Side::query, all_kernels()[0]),
        k_(values_, Side::key, all_kernels()[0]),
        attention_(values_, rows_, q_, k_, all_kernels()[0]) {}

  void add_to(Ratios& ratios) {
    for (const Side side : {Side::query, Side::key}) add_groups(side, ratios);
    for (std::size_t row = 0; row < rows_.size(); ++row) add_row(row, ratios);
  }

 private:
  void add_groups(Side which, Ratios& ratios) {
    for (std::int64_t group = 0; group < values_.side(which).group_count(); ++group) {
      GroupWords words;
      if (!(which == Side::query ? q_ : k_).make(group, words)) continue;
      const ExactGroup exact = exact_.evaluate_group(which, group);
      for (std::size_t i = 0; i < exact.normed.size(); ++i) raise(ratios.normed, words.normed, i, exact.normed[i]);
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
  std::vector<RowPlace> rows_;
  Exact exact_;
  FastOperands q_, k_;
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
                              "clause_softcap_inexact"};

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
  } stages[] = {{"normed", ratios.normed, 0.08}, {"roped", ratios.roped, 0.15},    {"scores", ratios.scores, 0.03},
                {"capped", ratios.capped, 0.3},  {"probs", ratios.probs, 0.03},    {"lse", ratios.lse, 0.03},
                {"output", ratios.output, 0.02}, {"entropy", ratios.entropy, 0.03}};
  for (const auto& stage : stages) {
    RecordProperty(stage.name, std::to_string(stage.seen));
    EXPECT_LT(stage.seen, 1) << stage.name;
    EXPECT_GT(stage.seen, stage.floor) << stage.name;
  }
}

}  // namespace
}  // namespace qkcts
