// SPDX-License-Identifier: Apache-2.0
// Golden cases written by hand, for the tests of the harness: small enough that every value is known without a
// reference.
#pragma once

#include <cstdint>
#include <vector>

#include "vectors/golden_case.hpp"

namespace qkcts {

// Plain attention in binary32 on [1,1,2,4] x [1,1,2,4], v [1,1,2,2], q = 0: every score is 0, every probability 1/2,
// lse ln 2, and the output the mean of v = {{1, 2}, {3, 5}}. Profiles "f32" and "f32_ftz", all elements judged.
GoldenCase plain_golden_case();

// The same in a batch of two; in the second entry v is {{5, 1}, {7, 3}}.
GoldenCase plain_golden_batch();

struct HandmadeElement {
  double hi = 0;
  float delta = 0;
  ElementRule rule = ElementRule::budget;
  Trust trust = Trust::judged;
  std::int16_t lo = 0;
};

// One row of scores-like elements as a stage of its own, in a case of shape q_len 1, k_len = elements.size().
GoldenCase one_row_case(qkcts_stage stage, Format storage, const std::vector<HandmadeElement>& elements);

// Values rounded to the stage's format, as an adapter would hand them over.
std::vector<std::byte> stage_bytes(Format format, const std::vector<double>& values);

}  // namespace qkcts
