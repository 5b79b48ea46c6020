// SPDX-License-Identifier: Apache-2.0
// A run record with one case of every kind, for the tests of the reports.
#pragma once

#include "harness/run_record.hpp"

namespace qkcts {

// The plain case: passing, failing in lse (NaN) and output (off), over an own limit, crashed (with hostile prints), not
// repeatable, mistrusted, unsupported.
RunRecord sample_record();

// sample_record() with what a run may hold besides: relations, a diagnosis, a plain evaluation, known failures,
// demands.
RunRecord full_record();

// Only the passing case.
RunRecord passing_record();

}  // namespace qkcts
