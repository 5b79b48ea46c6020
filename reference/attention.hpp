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

struct RowStatistics {  // per row of [B,Hq,Lq], absolute error at most 1e-6; NaN for an empty row
  std::vector<double> entropy;
  std::vector<double> p_max;
  std::vector<double> score_max;  // max |s| over visible keys, s = what the softmax sees
};

struct ReferenceResult {
  std::array<ProvenStage, QKCTS_STAGE_COUNT> stages;
  ExactStages exact;
  RowStatistics statistics;
  int highest_precision = 0;      // bits that were needed
  std::uint64_t exact_cases = 0;  // elements decided by a rule
};

// An element whose rounding could not be proven up to the precision cap.
class UndecidedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws InputError if case_fault() is not empty, UndecidedError with slug, stage and coordinates.
// Thread-safe: no global state is changed.
ReferenceResult evaluate(const Case& c, const StageRows& rows);

// cos and sin of position * theta^(-2i/R) for position = first .. first + count - 1, i < R/2, correctly rounded.
struct RopeTables {
  Tensor cos;  // [count, R/2]
  Tensor sin;
};
RopeTables rope_tables(double theta, std::int64_t rotated, std::int64_t first, std::int64_t count, Format format);

}  // namespace qkcts
