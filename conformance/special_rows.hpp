// SPDX-License-Identifier: Apache-2.0
// Outcomes of the rows of attention after special values (QK-SPECIAL, QK-HIDDEN).
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/case.hpp"
#include "conformance/outcome.hpp"

namespace qkcts {

// Element i of the additive bias stands at a hidden key of every row that reads it.
bool hides_everywhere(const Case& c, const Visibility& visibility, std::size_t i);

class SpecialRows {
 public:
  // `q`, `k` and `v` are what scores and output are made of.
  SpecialRows(const Case& c, const std::vector<Outcomes>& q, const std::vector<Outcomes>& k,
              const std::vector<Outcomes>& v);

  void evaluate();

  std::vector<Outcomes> scores, capped, masked, probs, lse, output;  // whole stages
  std::vector<bool> hidden;                                          // [B,Hq,Lq,Lk]
  std::vector<bool> special;                                         // [B,Hq,Lq]: weights are not all numbers

 private:
  struct Row;

  void evaluate_row(Row& row);
  Outcomes score(const Row& row, std::int64_t key) const;
  Outcomes after_cap(const Row& row, std::int64_t key, Outcomes score) const;
  void mask_key(Row& row, std::int64_t key);
  static void take_part(Row& row, Outcomes value);
  void weigh(Row& row);
  void empty_row(Row& row);
  void add_values(const Row& row);
  Outcomes bias(const Row& row, std::int64_t key) const;
  const Outcomes* key_row(const Row& row, std::int64_t key) const;
  const Outcomes* value_row(const Row& row, std::int64_t key) const;

  const Case& c_;
  const qkcts_contract& terms_;
  const std::vector<Outcomes>&q_, &k_, &v_;
  std::vector<bool> special_k_, special_v_;  // rows of k and v with special values
  std::vector<Outcomes> scale_;              // [Hq]: sign of what multiplies the scores
  Visibility visibility_;
  bool only_added_ = false;  // keys are hidden by -inf of the bias alone, added after the cap
};

}  // namespace qkcts
