// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM end a run between two cases, so that what was judged is still reported.
#pragma once

namespace qkcts {

void catch_interruption();

// The signal that asked to stop, or 0.
int interruption();

}  // namespace qkcts
