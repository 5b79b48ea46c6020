// SPDX-License-Identifier: Apache-2.0
// Legal implementations: every rewrite that the budgets promise to admit, executed in the arithmetic of a profile, with
// functions that are wrong by as much as the profile lets them be. For the soak of budgets only; not a kernel to copy.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/budget.hpp"
#include "conformance/case.hpp"

namespace qkcts {

struct LegalVariant {
  // `matrix`: products of operands in the storage format by a matrix unit, where the profile grants one.
  enum class Sum : std::uint8_t { sequential, reversed, pairwise, lanes8, fused, matrix } sum = Sum::sequential;
  enum class Variance : std::uint8_t { two_pass, welford, chan, one_pass } variance = Variance::two_pass;
  enum class Root : std::uint8_t { reciprocal_root, divide, reciprocal } root = Root::reciprocal_root;
  enum class Association : std::uint8_t { root_first, gain_first, gain_and_root } association = Association::root_first;
  enum class Scale : std::uint8_t { after, into_q, into_both, divide } scale = Scale::after;
  // Exponents, for weights e^x: e; 2 of a difference; 2 of a difference of scaled numbers; the same contracted; log2 e
  // in the scale. For weights 2^x the two bases change places.
  enum class Base : std::uint8_t {
    natural,
    two_difference,
    two_scaled,
    two_contracted,
    two_folded
  } base = Base::natural;
  enum class Softmax : std::uint8_t { offline, online, split_renormalised, split_lse } softmax = Softmax::offline;
  enum class Order : std::uint8_t { ascending, descending } order = Order::ascending;
  enum class Normalise : std::uint8_t { last, first } normalise = Normalise::last;
  enum class Quotient : std::uint8_t { division, reciprocal } quotient = Quotient::division;
  enum class RowSum : std::uint8_t { unstored, stored } row_sum = RowSum::unstored;
  // Where the constant factor of a norm comes in; how frequencies of computed angles are formed; where the factor by
  // position stands; in which order score, tensor bias and linear bias are added.
  enum class Factor : std::uint8_t { last, with_gain, with_root, with_input } factor = Factor::last;
  enum class Frequency : std::uint8_t { power, reciprocal, exponential, exponential2 } frequency = Frequency::power;
  enum class Temperature : std::uint8_t { on_score, with_scale, on_query } temperature = Temperature::on_score;
  enum class Biases : std::uint8_t { tensor_first, linear_first, together, fused } biases = Biases::tensor_first;
  // A sink of its own column beside the maximum or left out of it; one that scales the output by 1/(1 + e^x), as a
  // quotient, or by e^-x / (1 + e^-x).
  enum class Sink : std::uint8_t { key, apart, quotient, ratio } sink = Sink::key;
  // Sign of the errors of functions; `towards`: those of exp by the sign of v_j - o of one output element.
  enum class Functions : std::uint8_t { exact, high, low, mixed, towards } functions = Functions::exact;
  // Of the norm before a projection, what comes in later than its entries: the gain with the matrix when that is
  // loaded, the root after the sum; and where the projection's bias comes in.
  enum class Fold : std::uint8_t { none, gain, root, both } fold = Fold::none;
  enum class WeightBias : std::uint8_t { last, first } weight_bias = WeightBias::last;
  // How a matrix unit reads operands of which it drops bits: not at all where no unit is used.
  enum class Feed : std::uint8_t { whole, cut, nearest } feed = Feed::whole;
  int block = 16;           // of online and split forms
  int matrix_products = 4;  // K and F of the matrix unit: products added at once, fraction bits kept of each
  int matrix_fraction = 23;
  bool matrix_aligns_stored = false;  // a subnormal operand by the exponent of its encoding (M2)
  bool logarithm_first = false;       // of a ratio of positions, before its maximum with 0 in place of 1
  // The product with v takes weights that are formed once more, from the shift and the row sum of an online or split
  // pass. Its row sum is of weights as computed, and rescaled only when the maximum rises.
  bool afresh = false;
  bool lazy = false;                  // keep the running shift while the maximum rises by less than the profile's slack
  bool scaled_positions = false;      // linear scaling of angles divides the position
  bool converts_by_quotient = false;  // a log-sum-exp to another base
  bool store_weights = true;          // where the profile allows it
  // Not legal, the fault of a test: numbers are cut off at rounding points.
  bool cut_at_points = false;
  std::uint32_t target = 0;  // output column for Functions::towards

  std::string text() const;
};

// Every stage of the contract as an adapter would return it: decoded from the stage's storage format.
using StageValues = std::array<std::vector<double>, QKCTS_STAGE_COUNT>;

// `exact` is only used to choose the signs of function errors.
StageValues run_legal_variant(const Case& c, const ExactStages& exact, const Profile& profile,
                              const LegalVariant& variant);

}  // namespace qkcts
