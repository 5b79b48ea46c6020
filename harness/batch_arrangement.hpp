// SPDX-License-Identifier: Apache-2.0
// The entries of a case in another batch, and their results put back to where the case has them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/call_plan.hpp"
#include "harness/execution.hpp"

namespace qkcts {

// The request with these entries of its batch, in this order; an entry may stand there more than once.
ExecutionRequest with_entries(const ExecutionRequest& request, std::span<const std::uint32_t> entries);

// What one call is given: its stages, and its batch.
ExecutionRequest request_of_call(const ExecutionRequest& request, const Call& call);

// Adds to `into` the results of one batch: entry `entries[i]` of the case is read from place i. Of an entry that the
// batch holds several times it is the one of round `round` (from 0), or the last one.
void put_back(StageBytes& into, const StageBytes& from, std::span<const std::uint32_t> entries, std::size_t round,
              std::int64_t case_batch);

}  // namespace qkcts
