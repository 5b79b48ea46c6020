// SPDX-License-Identifier: Apache-2.0
// All calls of one case, judged: every result whose bits differ, how far they lie apart, and what the adapter claims.
#pragma once

#include <cstddef>
#include <optional>

#include "harness/case_run.hpp"

namespace qkcts {

// The stages of `result` that were asked for. Without a profile no value is judged, and bits alone are compared. All
// calls of the answer ended well; it may hold fewer than were ordered.
void judge_calls(CaseResult& result, const RunOrder& order, const RunAnswer& answer, const GoldenCase& golden,
                 std::optional<std::size_t> profile, StageSet asked, const LimitTable& limits);

// Other bits are a failure against a claim, and none without it.
void hold_to_claims(CaseResult& result, const RunOrder& order, const AdapterDescription& description);

}  // namespace qkcts
