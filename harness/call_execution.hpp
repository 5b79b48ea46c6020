// SPDX-License-Identifier: Apache-2.0
// One of the calls of a case: its batch arranged, made, and held against the first one. Most calls return the same
// bits; of these nothing is copied.
#pragma once

#include "harness/call_plan.hpp"
#include "harness/execution.hpp"

namespace qkcts {

struct ExecutedCall {
  Execution execution;
  bool same_as_first = false;  // bit for bit, or each entry of its batch is that entry of the first; then no outputs
};

// `request` is that of the case; `first`: the outputs of its first call, null in that one. May throw std::bad_alloc.
ExecutedCall execute_call(const AdapterLibrary& adapter, const ExecutionRequest& request, const Call& call,
                          const StageBytes* first);

}  // namespace qkcts
