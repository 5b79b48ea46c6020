// SPDX-License-Identifier: Apache-2.0
// A case result as bytes and back, within one process: numbers, and texts that live as long as the program, travel as
// they stand. What other processes and people read is JSON (run_json_parts.hpp).
#pragma once

#include "harness/case_run.hpp"
#include "harness/message.hpp"

namespace qkcts {

void put_case(MessageWriter& bytes, const CaseResult& result);
CaseResult get_case(MessageReader& bytes);

}  // namespace qkcts
