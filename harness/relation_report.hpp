// SPDX-License-Identifier: Apache-2.0
// Relations in the reports.
#pragma once

#include <string>

#include "harness/json_at.hpp"
#include "harness/run_record.hpp"

namespace qkcts {

// Empty unless it violates: what the relation says, the element that breaks it in both cases, what that means, and the
// command that shows it again.
std::string relation_failure_text(const RunRecord& record, const RelationResult& result);
std::string relation_rerun_command(const RunRecord& record, const RelationResult& result);

// A row per kind; empty without relations.
std::string relation_table_text(const RunRecord& record);
// A section of report.html; empty without relations.
std::string relation_html(const RunRecord& record);
Json relation_json(const RelationResult& result);
RelationResult relation_from_json(const JsonAt& at);

}  // namespace qkcts
