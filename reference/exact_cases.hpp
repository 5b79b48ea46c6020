// SPDX-License-Identifier: Apache-2.0
// Rules that decide how a value before the softmax compares with a rational t, exactly where refinement alone would
// never end. exact_softmax.hpp has those for what comes after.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "reference/case_values.hpp"
#include "reference/exact_vector.hpp"
#include "reference/root_sum.hpp"

namespace qkcts {

// How the exact value z of a stage stands to t. `unknown`: no rule applies; refine.
enum class Standing : std::uint8_t { below, equal, above, unknown };

Standing standing(int sign_of_difference);
inline Standing standing(const std::optional<RootSum>& z, const Rational& t) {  // nothing: unknown
  return z ? standing((*z - RootSum(t)).sign()) : Standing::unknown;
}

class ExactCases {
 public:
  explicit ExactCases(const CaseValues& values) : values_(values) {}

  // Stages of q, k and v. Throws InputError if the root is exactly 0 (0/0: a zero vector under eps = 0).
  Standing group_entry(Side side, qkcts_stage stage, std::int64_t row, std::int64_t lane, const Rational& t);

  // A row of q, k or v as it is used, after all that the contract does to it.
  const ExactVector& operand(Side side, std::int64_t row) { return vector(side, row, Upto::last); }

  // q after its last stage times everything that multiplies the scores of the row.
  Standing scaled_q(const RowPlace& place, std::int64_t lane, const Rational& t);

  // <q^, k^> at the point `product`.
  Standing dot_product(const RowPlace& place, std::int64_t key, const Rational& t) {
    return standing(product(place, key), t);
  }

  // Stages scores, capped and masked at a key with a finite bias.
  Standing score(qkcts_stage stage, const RowPlace& place, std::int64_t key, const Rational& t);

  // Is what the softmax sees of `key` PROVEN to be that of `other` plus `difference`? Key -1 is the sink.
  bool differ_by(const RowPlace& place, std::int64_t key, std::int64_t other, const Rational& difference);

 private:
  // The factor of the scores of a row: the algebraic part and, if it is not 1, a positive transcendental one.
  struct Factor {
    RootSum algebraic;
    bool has_transcendental = false;
  };
  // What the softmax sees: cap(g product + inner) + outer, with g the transcendental factor of the row (or 1); without
  // a soft-cap cap is the identity and inner 0. No product: it is not of this form.
  struct Score {
    std::optional<RootSum> product;
    Rational inner, outer;
  };

  const ExactVector& vector(Side side, std::int64_t row, Upto upto);
  Factor factor(const RowPlace& place) const;
  std::optional<RootSum> product(const RowPlace& place, std::int64_t key);  // <q^, k^>
  Score seen(const RowPlace& place, std::int64_t key);
  bool same_input(const RowPlace& place, std::int64_t key, std::int64_t other) const;

  const CaseValues& values_;
  std::map<std::pair<std::int64_t, Upto>, ExactVector> vectors_[3];
};

}  // namespace qkcts
