// SPDX-License-Identifier: Apache-2.0
// The contract once more, in binary64 and formula by formula: a second opinion for the tests of this folder. It shares
// no code and no layout with the adapters; how exact it is is nobody's bound (the golden vectors judge).
#pragma once

#include "adapters/sample_case.hpp"

namespace qkcts {

// Every stage of the case; the stages that its contract lacks stay empty. What nobody judges is NaN: hidden positions
// of scores and capped, and under hidden_values `excluded` the rows of k_norm, k_rope and v_norm of keys that no query
// sees.
StageValues plain_attention(const SampleCase& sample);

// Does query (b, h, t) see key k?
bool plain_visible(const SampleCase& sample, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k);
// Does any query of batch entry b?
bool plain_seen(const SampleCase& sample, std::int64_t b, std::int64_t k);

enum class NanRule { must_match, is_free };  // is_free: NaN in `want` matches anything

// How far `got` is from `want` at worst, in units of max(1, the largest |want|): loose, since a sum that cancels keeps
// the error of its terms. NaN matches NaN, an infinity itself; a mismatch of class counts as infinity.
double worst_difference(const std::vector<double>& got, const std::vector<double>& want, NanRule rule);

}  // namespace qkcts
