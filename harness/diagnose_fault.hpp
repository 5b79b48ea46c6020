// SPDX-License-Identifier: Apache-2.0
// Known faults that no contract expresses (conformance/mutants, `fault`): what the wrong kernel makes of a case, in
// binary64. No theorem gives its budget, so it is taken from the contract that was asked for, row by row.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "conformance/mutant_catalogue.hpp"
#include "harness/diagnose_observation.hpp"

namespace qkcts {

// Those that end in wrong values; arithmetic that is too coarse is not among them. Empty where the bundled adapter
// `mutants` is not installed.
const std::vector<const CatalogueMutant*>& nameable_faults();

// The rows of the stages as the fault computes them under the contract of `other`, the case itself or one with other
// clauses or inputs of the same shapes. Nothing where the wrong kernel refuses the case.
std::optional<std::array<GoldenStage, QKCTS_STAGE_COUNT>> fault_stages(const CatalogueMutant& fault, const Case& other,
                                                                       const Observation& observation,
                                                                       const StageRows& rows);

}  // namespace qkcts
