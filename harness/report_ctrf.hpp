// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// Common Test Report Format (ctrf.io), version 1.0.0: one test per case, relation and unmet demand. The figures of each
// stage stand in its `extra`.
void write_ctrf_json(const RunRecord& record, const TextSink& sink);
std::string ctrf_json_text(const RunRecord& record);

}  // namespace qkcts
