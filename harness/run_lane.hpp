// SPDX-License-Identifier: Apache-2.0
// The inside of a lane (run_lanes.hpp).
#pragma once

#include "harness/run_request.hpp"

namespace qkcts {

// Answers orders until the other end of the conversation is closed or a signal ends the run.
void work_in_lane(const RunRequest& request, int conversation);

}  // namespace qkcts
