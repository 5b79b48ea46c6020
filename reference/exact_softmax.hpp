// SPDX-License-Identifier: Apache-2.0
// Rules for values on a rounding boundary from the softmax on: log-sum-exp, probabilities, output.
//
// The terms of a row are its visible keys, then the sink if there is one; each is a weight base^x. Terms whose x are
// PROVEN to be equal (under base two: to differ by a whole number) form a group: their weights are rational multiples
// of one number, and the sum over a group is decided in rational arithmetic.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "reference/exact_cases.hpp"

namespace qkcts {

struct TermGroups {
  std::vector<std::uint32_t> group;  // of every term
  std::vector<Rational> weight;      // of every term, in units of the weight of the first of its group
  std::vector<std::size_t> first;    // term, of every group
};

// What the enclosures of a row say: the only whole number (under base e: 0 or nothing) by which term i may exceed term
// j, or t. Others are not tried.
struct TermDistances {
  std::function<std::optional<std::int64_t>(std::size_t i, std::size_t j)> between;
  std::function<std::optional<std::int64_t>(std::size_t i, const Rational& t)> from;  // called under base two only
};

class ExactSoftmax {
 public:
  ExactSoftmax(const CaseValues& values, ExactCases& scores) : values_(values), scores_(scores) {}

  TermGroups groups(const RowPlace& place, const TermDistances& distances);

  // `largest` is a visible key whose score comes near the maximum.
  Standing lse(const RowPlace& place, std::uint32_t largest, const TermGroups& groups, const TermDistances& distances,
               const Rational& t);
  Standing probability(const RowPlace& place, const TermGroups& groups, std::size_t term, const Rational& t) const;
  Standing output(const RowPlace& place, const TermGroups& groups, std::int64_t d, const Rational& t);

  // Output of an empty row under `uniform`, the mean of column d of v over all keys: as a number where v is an input,
  // and compared with t where v has a norm, a clamp or a multiplier. InputError if v is not finite there.
  const Rational& column_mean(std::int64_t b, std::int64_t kv_head, std::int64_t d);
  Standing mean(const RowPlace& place, std::int64_t d, const Rational& t);

 private:
  std::int64_t key_of(const RowPlace& place, std::size_t term) const;
  bool has_column() const { return values_.terms.softmax.sink == QKCTS_SINK_COLUMN; }
  Standing weighted_sum(const TermGroups& groups, const std::vector<Rational>& excess) const;
  Standing algebraic_output(const RowPlace& place, const TermGroups& groups, std::int64_t d, const Rational& t);
  Standing output_of_given(const RowPlace& place, const TermGroups& groups, std::int64_t d, const Rational& t);
  RootSum value(const RowPlace& place, std::int64_t key, std::int64_t d);

  const CaseValues& values_;
  ExactCases& scores_;
  std::map<std::int64_t, Rational> means_;
};

}  // namespace qkcts
