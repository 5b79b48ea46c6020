// SPDX-License-Identifier: Apache-2.0
// The real-number meaning of a contract: every stage of a case as proven values.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/budget.hpp"
#include "conformance/case.hpp"
#include "conformance/evidence.hpp"

namespace qkcts {

// Per row of [B,Hq,Lq], absolute error at most 1e-6; NaN for a row without visible keys. Under a column sink the
// distribution is that over the visible keys and the sink.
struct RowStatistics {
  std::vector<double> entropy;  // -sum p ln p, natural logarithm in either base of the weights
  std::vector<double> p_max;
  std::vector<double> score_max;  // max |s| over visible keys, s = what the softmax sees
};

struct ReferenceResult {
  std::array<ProvenStage, QKCTS_STAGE_COUNT> stages;
  ExactStages exact;
  RowStatistics statistics;
  int highest_precision = 0;      // bits that were needed; 128 where double words were enough
  std::uint64_t left_open = 0;    // elements that double words did not prove (all of them under Tier::mpfr)
  std::uint64_t exact_cases = 0;  // elements decided by a rule
};

// An element whose rounding could not be proven up to the precision cap.
class UndecidedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// How to begin. The result is the same, bit for bit: a proven rounding is the only one there is.
enum class Tier : std::uint8_t {
  automatic,  // double words with proven bounds first, MPFR for what they leave open
  mpfr,       // MPFR for everything
};

// Throws InputError if case_fault() is not empty, UndecidedError with slug, stage and coordinates.
// Thread-safe: no global state is changed.
ReferenceResult evaluate(const Case& c, const StageRows& rows, Tier tier = Tier::automatic);

// cos and sin of position * frequency of pair i, times the attention factor (QK-ROPE-10, 11), for position = first ..
// first + count - 1, i < R/2, correctly rounded. Throws InputError for a request without meaning, UndecidedError where
// a rounding stays open.
struct RopeTables {
  Tensor cos;  // [count, R/2]
  Tensor sin;
};
RopeTables rope_tables(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t head_dim,
                       std::int64_t first, std::int64_t count, Format format);

}  // namespace qkcts
