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

double estimated_seconds(const PlannedCase& planned) {
  const qkcts_shape& s = planned.shape;
  const auto scores =
      static_cast<double>(s.batch * s.q_heads) * static_cast<double>(s.q_len) * static_cast<double>(s.k_len);
  // Measured on one core of a server of 2021; about half of it goes into separations.
  constexpr double per_case = 0.04, per_product = 400e-9, per_score = 16e-6;
  return per_case + scores * (static_cast<double>(s.head_dim + s.v_head_dim) * per_product + per_score);
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

}  // namespace qkcts
