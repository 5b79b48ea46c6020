// SPDX-License-Identifier: Apache-2.0
// Parts of run.json for what writes a run piece by piece.
#pragma once

#include "harness/json_at.hpp"
#include "harness/run_record.hpp"

namespace qkcts {

Json case_json(const CaseResult& result);
Json heat_json(const StageHeat& heat);

// Checked by no schema of their own: what lacks a key ends with std::out_of_range or nlohmann::json::exception.
CaseResult case_from_json(const JsonAt& at);
StageHeat heat_from_json(const JsonAt& at);

}  // namespace qkcts
