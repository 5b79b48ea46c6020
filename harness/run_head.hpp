// SPDX-License-Identifier: Apache-2.0
// What a record says before the first case: of whom, on what, and under which conditions.
#pragma once

#include "harness/run_request.hpp"
#include "vectors/corpus_reader.hpp"

namespace qkcts {

RunRecord run_head(const RunRequest& request, const CorpusInfo& corpus);

// What the adapter said when it was opened. Throws AdapterError.
void add_adapter(RunRecord& head, const RunRequest& request, const OpenAnswer& answer);

}  // namespace qkcts
