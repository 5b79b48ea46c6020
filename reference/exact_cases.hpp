// SPDX-License-Identifier: Apache-2.0
// Rules that decide how a stage value compares with a rational t, exactly where refinement alone would never end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "reference/case_values.hpp"
#include "reference/root_sum.hpp"

namespace qkcts {

// How the exact value z of a stage stands to t. `unknown`: no rule applies; refine.
enum class Standing : std::uint8_t { below, equal, above, unknown };

class ExactCases {
 public:
  explicit ExactCases(const CaseValues& values) : values_(values) {}

  // Norm and rope stages. Throws InputError if the root is exactly 0 (0/0: a zero vector under eps = 0).
  Standing group_entry(Side side, qkcts_stage stage, std::int64_t row, std::int64_t lane, const Rational& t);

  // Stages scores, capped and masked at a key with a finite bias.
  Standing score(qkcts_stage stage, const RowPlace& place, std::int64_t key, const Rational& t);

  // `largest` is a visible key whose score comes near t.
  Standing lse(const RowPlace& place, std::uint32_t largest, const Rational& t);

  // Groups of visible keys with PROVEN equal scores: one group number per visible key. `may_be_equal` says whether the
  // enclosures of two of them (by index into place.visible) overlap; others are not tried.
  std::vector<std::uint32_t> equal_groups(const RowPlace& place,
                                          const std::function<bool(std::size_t, std::size_t)>& may_be_equal);
  Standing output(const RowPlace& place, std::span<const std::uint32_t> groups, std::int64_t d, const Rational& t);

  // Mean of column d of v over all keys: output of an empty row under `uniform`.
  const Rational& column_mean(std::int64_t b, std::int64_t kv_head, std::int64_t d);

 private:
  // A row of the operand of the scores, or of a stage before it: entry = numerator / divisor + offset.
  struct ExactVector {
    std::vector<Rational> numerator;
    std::vector<Rational> offset;  // empty: 0
    RootSum inverse;               // 1 / divisor
    // The divisor is sqrt(radicand) + addend, where radicand or addend may be 0.
    Rational radicand, addend;
  };
  enum class Upto : std::uint8_t { rotation_before_norm, norm, last };

  ExactVector make(Side side, std::int64_t row, Upto upto) const;
  void divide_by_root(ExactVector& x, const Rational& statistic, const qkcts_norm& norm, std::int64_t row) const;
  const ExactVector& operand(Side side, std::int64_t row);
  RootSum product(const RowPlace& place, std::int64_t key);   // <q^, k^>
  RootSum argument(const RowPlace& place, std::int64_t key);  // of the soft-cap; without one, of the softmax
  bool same_score(const RowPlace& place, std::int64_t key, std::int64_t other);
  double finite_bias(const RowPlace& place, std::int64_t key) const;

  const CaseValues& values_;
  std::map<std::int64_t, ExactVector> operands_[2];
  std::map<std::int64_t, Rational> means_;
};

}  // namespace qkcts
