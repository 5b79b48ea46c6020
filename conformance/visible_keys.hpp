// SPDX-License-Identifier: Apache-2.0
// The keys that one query after another sees: where a run of neighbours moves on, only its ends are looked at.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "conformance/case.hpp"

namespace qkcts {

class VisibleKeys {
 public:
  explicit VisibleKeys(const Case& c) : case_(c), visibility_(c), is_run_(shows_runs(c.contract.terms)) {}

  // Of query qq of head h of batch entry b, ascending. Quick where such rows come in ascending order.
  template <class Key>
  void set(std::int64_t b, std::int64_t h, std::int64_t qq, std::vector<Key>& keys) {
    const std::int64_t k_len = case_.shape.k_len;
    keys.clear();
    if (!is_run_) {
      for (std::int64_t key = 0; key < k_len; ++key)
        if (visibility_.visible(b, h, qq, key)) keys.push_back(static_cast<Key>(key));
      return;
    }
    if (b != b_ || h != h_ || qq < qq_ || first_ == end_) first_ = end_ = 0;
    b_ = b;
    h_ = h;
    qq_ = qq;
    while (first_ < k_len && !visibility_.visible(b, h, qq, first_)) ++first_;
    if (end_ < first_) end_ = first_;
    while (end_ < k_len && visibility_.visible(b, h, qq, end_)) ++end_;
    keys.resize(static_cast<std::size_t>(end_ - first_));
    std::iota(keys.begin(), keys.end(), static_cast<Key>(first_));
  }

 private:
  // Clauses that hide by position: each shows a query neighbouring keys, from a first to a last one, and neither goes
  // down from one query to the next. So does what they leave together, unless it is empty.
  static bool shows_runs(const qkcts_contract& terms) {
    return terms.mask.boolean == 0 && terms.regions.documents == 0 && terms.score.bias_order == QKCTS_BIAS_NONE;
  }

  const Case& case_;
  Visibility visibility_;
  bool is_run_;
  std::int64_t b_ = -1, h_ = -1, qq_ = -1;  // the last query
  std::int64_t first_ = 0, end_ = 0;        // its keys
};

}  // namespace qkcts
