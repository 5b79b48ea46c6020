// SPDX-License-Identifier: Apache-2.0
// Errors of the weights of one row: docs/budgets.md, P1 to P3 and P5 to P7.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "conformance/budget_arithmetic.hpp"

namespace qkcts {

// The visible keys of one row, in any order, and a sink as one more of them. Everything in natural units: scores of
// weights 2^x, their errors and the log-sum-exp are those of x ln 2.
struct SoftmaxKeys {
  std::span<const double> scores;         // exact, as the softmax sees them
  std::span<const double> errors;         // how far each may be off
  std::span<const double> probabilities;  // exact
  double lse = 0;                         // exact
  double blocks = 1;                      // online blocks that hold one of the keys
  std::span<const std::size_t> block_of;  // which of them holds each key; empty: every key is a block of its own
  double slots = 1;                       // products of a matrix unit that the keys fill, in whole blocks
  double above = 0;                       // how far a sink that is left out of the maximum may stand above it
  double in_lane = 0;                     // keys that may meet in one lane of the profile; 0: any of them
  bool points = false;                    // the contract rounds between stages
};

// What is known of the computed weights: w'_j = w_j e^(theta), |theta| <= t_j, relative to a shift common to the row.
struct RowWeights {
  std::vector<double> probability;  // p_j, at least 2^-1022
  std::vector<double> grown;        // p_j e^(t_j)
  std::vector<double> moved;        // p_j (e^(t_j) - 1)
  std::vector<double> fallen;       // p_j (e^(t_j) - 1) e^(-t_j)
  std::vector<double> own;          // D_j and roundings of a weight that is formed once more for its probability
  std::vector<double> apart;        // roundings of both: how far that weight may be from the one in the row sum
  // Sums of grown, moved and fallen, and the largest probability with what the other keys add to such sums.
  double grown_sum = 0, moved_sum = 0, fallen_sum = 0;
  std::size_t top = 0;
  double beside_top = 0, moved_beside_top = 0, fallen_beside_top = 0;
  double n = 0;
  double in_lane = 0;      // terms of a sum over the row that may meet in one lane, joins of blocks and parts included
  double shrunk_sum = 1;   // beta = sum p_j e^(-t_j), from below
  double sum_rise = 0;     // computed row sum / sum of the computed weights - 1, at most
  double sum_inverse = 0;  // its inverse - 1, at most
  double stored_inverse = 0;  // likewise for a sum of weights as they are stored
  double rescale = 0;         // growth by the products of rescaling
  double weight_flush = 0;    // absolute error of one weight by underflow, over the least possible row sum
  double store_flush = 0;     // likewise by its storage
  double least_sum = 1;       // of the row, in units of its shift
  double reach = 1;           // largest weight, in those units
  // A factor e^(+-gamma) that is left where weights are formed from stored log-sum-exps; and the error of one that is
  // itself merged from those of parts.
  double merged = 0;         // gamma
  double merged_growth = 0;  // e^gamma - 1
  double merged_lse = 0;
  // Where weights are formed once more, after the row sum (O7): their sum over the row sum lies within 1 +- afresh, and
  // their e^t - 1 are at most this share of those above.
  double afresh = 0;
  double fresh_share = 1;
  double rescales = 0;  // R
  double exponent = 0;  // largest t_j
  double log_sum = 0;   // ln l >= 0
  double shift = 0;     // T: shift against exact row maximum
  double above = 0;     // as in SoftmaxKeys
  double max_score = 0;
  bool coarse = false;     // rounding points, or a profile that loses as much
  bool unbounded = false;  // t_j so large that nothing is known of the weights: hull only
  bool domain = false;     // weights or scores may overflow: nothing is judged
};

// Working memory of row_weights(), and of probability_errors() after it.
struct SoftmaxNumbers {
  std::vector<double> exponentials, rises, tops, lowest, exponent;
};

void row_weights(const SoftmaxKeys& row, const BudgetArithmetic& arithmetic, SoftmaxNumbers& numbers,
                 RowWeights& weights);
inline RowWeights row_weights(const SoftmaxKeys& row, const BudgetArithmetic& arithmetic) {
  SoftmaxNumbers numbers;
  RowWeights weights;
  row_weights(row, arithmetic, numbers, weights);
  return weights;
}

}  // namespace qkcts
