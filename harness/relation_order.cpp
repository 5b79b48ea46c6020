// SPDX-License-Identifier: Apache-2.0
// P5, temperature: weights at 2T are in the order of those at T, and majorised by them.
#include <algorithm>
#include <vector>

#include "harness/relation_elements.hpp"

namespace qkcts {
namespace {

struct Weight {
  double first = 0, second = 0;              // got
  double first_delta = 0, second_delta = 0;  // Delta
  std::uint64_t first_bits = 0, second_bits = 0;
};

RelationBreach breach_of(std::uint32_t row, std::size_t column, const Weight& w) {
  const ElementCoordinates place{row, static_cast<std::uint32_t>(column)};
  RelationBreach breach;
  breach.stage = QKCTS_STAGE_PROBS;
  breach.first = breach.second = place;
  breach.first_bits = w.first_bits;
  breach.second_bits = w.second_bits;
  breach.first_value = w.first;
  breach.second_value = w.second;
  return breach;
}

// z1_j > z1_i is certain where got1_j - got1_i > Delta1_j + Delta1_i; z2_j < z2_i likewise. Both cannot be.
void look_for_reordering(std::uint32_t row, const std::vector<Weight>& weights, RelationTally& tally) {
  for (std::size_t j = 0; j < weights.size(); ++j)
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const Weight &a = weights[j], &b = weights[i];
      if (!(a.first > b.first && b.second > a.second)) continue;
      if (!surely_exceeds(a.first - b.first, a.first_delta + b.first_delta)) continue;
      if (!surely_exceeds(b.second - a.second, a.second_delta + b.second_delta)) continue;
      RelationBreach breach = breach_of(row, j, a);
      breach.due = b.second;
      breach.allowed = a.second_delta + b.second_delta;
      breach.what = "a weight that was larger than another became smaller than it";
      return tally.violated(breach);
    }
}

// The m largest of z1 sum to at most those of got1 + Delta1; the m largest of z2 to at least those of got2 - Delta2.
void look_for_sharpening(std::uint32_t row, const std::vector<Weight>& weights, RelationTally& tally) {
  std::vector<double> high, low;
  for (const Weight& w : weights) {
    high.push_back(w.first + w.first_delta);
    low.push_back(w.second - w.second_delta);
  }
  std::sort(high.rbegin(), high.rend());
  std::sort(low.rbegin(), low.rend());
  const double roundings = static_cast<double>(weights.size() + 8) * 0x1p-52;
  double sum_high = 0, sum_low = 0;
  for (std::size_t m = 0; m < weights.size(); ++m) {
    sum_high += high[m];
    sum_low += low[m];
    if (sum_low <= sum_high * (1 + roundings) + roundings) continue;
    RelationBreach breach = breach_of(row, 0, weights[0]);
    breach.second_value = sum_low;
    breach.due = sum_high;
    breach.what = "the largest weights of the row took more of it at the higher temperature";
    return tally.violated(breach);
  }
}

}  // namespace

void judge_order(const RelationElements& first, const RelationElements& second, RelationTally& tally) {
  constexpr qkcts_stage probs = QKCTS_STAGE_PROBS;
  if ((first.stages() & second.stages() & bit(probs)) == 0) return;
  const ProvenStage &a = first.golden().stages[probs].values, &b = second.golden().stages[probs].values;
  const std::size_t width = first.width(probs);
  for (std::size_t row = 0; row < a.rows.size() && a.rows == b.rows; ++row) {
    std::vector<Weight> weights(width);
    bool trusted = true;
    for (std::size_t column = 0; column < width; ++column) {
      const OutputElement x = first.at(probs, a.rows[row], static_cast<std::uint32_t>(column));
      const OutputElement y = second.at(probs, a.rows[row], static_cast<std::uint32_t>(column));
      if (x.unwritten || y.unwritten) return tally.unwritten(probs, {a.rows[row], static_cast<std::uint32_t>(column)});
      const auto dx = first.delta(probs, row * width + column), dy = second.delta(probs, row * width + column);
      trusted = trusted && dx && dy;
      weights[column] = {x.value, y.value, dx.value_or(0), dy.value_or(0), x.bits, y.bits};
    }
    if (!trusted) {
      tally.mistrusted();
      continue;
    }
    tally.compared();
    look_for_reordering(a.rows[row], weights, tally);
    look_for_sharpening(a.rows[row], weights, tally);
  }
}

}  // namespace qkcts
