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
  enum class Sum : std::uint8_t { sequential, reversed, pairwise, lanes8, fused } sum = Sum::sequential;
  enum class Variance : std::uint8_t { two_pass, welford, chan, one_pass } variance = Variance::two_pass;
  enum class Root : std::uint8_t { reciprocal_root, divide, reciprocal } root = Root::reciprocal_root;
  enum class Association : std::uint8_t { root_first, gain_first, gain_and_root } association = Association::root_first;
  enum class Scale : std::uint8_t { after, into_q, into_both, divide } scale = Scale::after;
  // Exponents: e; 2 of a difference; 2 of a difference of scaled numbers; the same contracted; log2 e in the scale.
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
  // Sign of the errors of functions; `towards`: those of exp by the sign of v_j - o of one output element.
  enum class Functions : std::uint8_t { exact, high, low, mixed, towards } functions = Functions::exact;
  int block = 16;             // of online and split forms
  bool lazy = false;          // keep the running shift while the maximum rises by less than the profile's slack
  bool store_weights = true;  // where the profile allows it
  std::uint32_t target = 0;   // output column for Functions::towards

  std::string text() const;
};

// Every stage of the contract as an adapter would return it: decoded from the stage's storage format.
using StageValues = std::array<std::vector<double>, QKCTS_STAGE_COUNT>;

// `exact` is only used to choose the signs of function errors. Needs a profile with a binary32 or binary64 accumulator.
StageValues run_legal_variant(const Case& c, const ExactStages& exact, const Profile& profile,
                              const LegalVariant& variant);

}  // namespace qkcts
