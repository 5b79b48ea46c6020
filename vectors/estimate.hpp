// SPDX-License-Identifier: Apache-2.0
// How long and how large, before anything is made: for progress, and to refuse absurd plans politely.
#pragma once

#include "vectors/plan.hpp"

namespace qkcts {

double estimated_seconds(const PlannedCase& planned);  // of one core
double estimated_bytes(const PlannedCase& planned);    // in the file
// Of memory while it is worked on.
double estimated_working_bytes(const PlannedCase& planned);

}  // namespace qkcts
