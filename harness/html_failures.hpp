// SPDX-License-Identifier: Apache-2.0
// What went wrong in a run, one after another: failing cases with their text, what they compute instead, and the
// elements with the largest errors.
#pragma once

#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// Sections of the page, empty where there is nothing to say.
std::string failures_html(const RunRecord& record);
std::string diagnosis_html(const RunRecord& record);

// A list of the elements nearest to the budget, or farthest beyond it.
std::string worst_elements_html(const RunRecord& record);

}  // namespace qkcts
