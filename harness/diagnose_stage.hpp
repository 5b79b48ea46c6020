// SPDX-License-Identifier: Apache-2.0
// Where outputs first leave the contract. Observed stages say it. Where the adapter writes too few of them, golden
// stages are put in the place of the inputs: attention alone on the right q and k, the rotation alone on the right
// norm.
#pragma once

#include "harness/diagnose_observation.hpp"
#include "harness/diagnose_rerun.hpp"
#include "harness/diagnosis.hpp"

namespace qkcts {

// From observed stages alone; without a detail where too few were observed: then it is the first that fails of those.
Divergence observed_divergence(const Observation& observation);

// `golden` fails as `failed` says, in `failing` first of what was observed.
Divergence substituted_divergence(qkcts_stage failing, const GoldenCase& golden, const Rerunner& rerunner,
                                  const CaseResult& failed);

// The case with golden q and k in the place of everything that makes them: no projection, norm or rotation is left.
// With `keep_last` the last of these steps stays, on the golden result of those before it. Nothing if there is no such
// step.
enum class LastStep : std::uint8_t { replaced, kept };
std::optional<Case> substituted(const Case& c, LastStep last);

}  // namespace qkcts
