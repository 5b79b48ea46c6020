// SPDX-License-Identifier: Apache-2.0
#include "vectors/estimate.hpp"

#include <algorithm>
#include <map>

#include "conformance/budget.hpp"
#include "conformance/case.hpp"

namespace qkcts {
namespace {

// Reading the profiles takes longer than estimating a case.
std::size_t shipped_profiles(Format format) {
  static const std::map<Format, std::size_t> counts = [] {
    std::map<Format, std::size_t> found;
    for (const Format each : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16})
      found[each] = profiles_for(each).size();
    return found;
  }();
  return counts.at(format);
}

}  // namespace

// Measured on one core of a server of 2023 that had other work as well: the total of a suite within a third of this, of
// one with NaN and infinities within a factor of two, most single cases within a factor of three. Most of the time goes
// into separations: a few rows under each neighbour of the contract, and all q, k and v that these need. What rounds
// inside goes through MPFR.
double estimated_seconds(const PlannedCase& planned) {
  const qkcts_shape& s = planned.shape;
  const qkcts_contract& terms = planned.contract.terms;
  const auto rows = static_cast<double>(s.batch * s.q_heads * s.q_len), keys = static_cast<double>(s.k_len);
  const auto width = static_cast<double>(s.head_dim + s.v_head_dim);
  const double entries = (rows + static_cast<double>(s.batch * s.kv_heads) * keys) * static_cast<double>(s.head_dim);
  const auto profiles =
      static_cast<double>(planned.profiles.empty() ? shipped_profiles(planned.format) : planned.profiles.size());
  const bool has_norm = terms.q_norm.applied != 0 || terms.k_norm.applied != 0;
  const double points = has_rounding_points(terms.rounding) ? 1 : 0;
  const double neighbours = 20 + (has_norm ? 40 : 0) + 15 * points;
  constexpr double rows_looked_at = 8;
  const double proof = 3.1e-3 + entries * (2.6e-7 * (1 + profiles) + 5.9e-6 * points);
  const double budgets = rows * keys * width * profiles * 4.9e-9;
  const double neighbour =
      5.6e-4 + entries * (2.4e-8 + 1.25e-6 * points) + std::min(rows, rows_looked_at) * keys * width * 5.4e-8;
  return proof + budgets + neighbours * neighbour;
}

double estimated_bytes(const PlannedCase& planned) {
  double bytes = 20000;
  for (const InputRequirement& need : required_inputs(planned.contract.terms, planned.shape, planned.format)) {
    double elements = 1;
    // A negative extent is that of a tensor's own: rows of tables, entries of what is projected.
    for (const std::int64_t extent : need.shape)
      elements *= static_cast<double>(extent > 0 ? extent : extent == -1 ? 1 : planned.shape.head_dim);
    bytes += elements * static_cast<double>(element_size(need.type));
  }
  const std::size_t profiles = planned.profiles.empty() ? shipped_profiles(planned.format) : planned.profiles.size();
  constexpr double neighbours = 40, separation = 12;  // contracts compared with, on the average; value, row and column
  for (const qkcts_stage stage : all_stages) {
    if ((stages_of(planned.contract.terms) & bit(stage)) == 0) continue;
    bytes += neighbours * separation * static_cast<double>(profiles);
    const bool whole = planned.rows == 0 || stage == QKCTS_STAGE_OUTPUT || stage == QKCTS_STAGE_LSE;
    auto rows = static_cast<double>(row_count(stage, planned.shape));
    if (!whole) rows = std::min(rows, static_cast<double>(planned.rows));
    const auto value = static_cast<double>(element_size(element_type(stage_format(stage, planned.format))) + 8 + 2);
    bytes += rows * static_cast<double>(row_length(stage, planned.shape)) * (value + 4 * static_cast<double>(profiles));
  }
  return bytes;
}

// Measured with a cache of 32,768 keys: the double words and errors of q, k and v, of the case and of one neighbour at
// a time, under every profile. What attention holds is a block of rows.
double estimated_working_bytes(const PlannedCase& planned) {
  const qkcts_shape& s = planned.shape;
  const auto batch = static_cast<double>(s.batch), width = static_cast<double>(s.head_dim + s.v_head_dim);
  const double entries =
      batch * (static_cast<double>(s.q_heads * s.q_len) * width + static_cast<double>(s.kv_heads * s.k_len) * width);
  return 1e6 + 100 * entries;
}

}  // namespace qkcts
