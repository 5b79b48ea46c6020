// SPDX-License-Identifier: Apache-2.0
// Expectations about the stages of a sample run, for the tests of this folder.
#pragma once

#include "adapters/sample_case.hpp"

namespace qkcts {

// Every asked stage is near `want`: 1e-4 of the stage's size for binary32, a few ulp of storage for the narrow formats.
void expect_stages(const SampleRun& run, const StageValues& want, const SampleCase& sample, std::uint32_t stages);

// Output and lse have the same bits whether or not any other stage is observed, and again in a second run.
void expect_observation_changes_nothing(const qkcts_adapter_table& table, SampleCase& sample);

}  // namespace qkcts
