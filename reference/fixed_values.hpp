// SPDX-License-Identifier: Apache-2.0
// What the contract says of an element without any arithmetic on scores: hidden keys, rows without visible keys, keys
// that nobody sees.
#pragma once

#include <cstdint>

#include "reference/case_values.hpp"
#include "reference/exact_softmax.hpp"
#include "reference/recorder.hpp"

namespace qkcts {

class FixedValues {
 public:
  FixedValues(const CaseValues& values, ExactSoftmax& softmax, Recorder& recorder)
      : values_(values), softmax_(softmax), recorder_(recorder) {}

  // Rows of k_proj, k_norm, k_rope and v_norm of a key that no query sees, under hidden_values `excluded`: NaN, not
  // judged.
  void fix_excluded_vector(qkcts_stage stage, std::int64_t row);

  // Hidden keys of a row of attention, and everything of a row without visible keys but a mean of normed values.
  void fix_row(const RowPlace& place, std::int64_t row);

 private:
  void fix_hidden_key(const RowPlace& place, std::int64_t row, std::int64_t key);
  void fix_empty_row(const RowPlace& place, std::int64_t row);
  void fix_sink_alone(const RowPlace& place, std::int64_t row);
  void fix_capped_at_minus_infinity(const RowPlace& place, std::int64_t row, std::int64_t key);
  void settle_rational(const ElementPlace& place, const Rational& value, ElementRule rule);

  const CaseValues& values_;
  ExactSoftmax& softmax_;
  Recorder& recorder_;
};

// The bias of the key is -inf: its stage `capped` is fixed too.
bool has_minus_infinite_bias(const CaseValues& values, const RowPlace& place, std::int64_t key);

// Index of a key among the visible ones, or -1.
std::int64_t visible_index(const RowPlace& place, std::int64_t key);

}  // namespace qkcts
