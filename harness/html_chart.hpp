// SPDX-License-Identifier: Apache-2.0
// The two figures of the HTML report as inline SVG; colours are classes of its style sheet.
#pragma once

#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// One line per stage, one dot per case: the largest error/Delta on a logarithmic axis, with a mark at 1.
std::string ratio_chart(const RunRecord& record);

// One small histogram per stage: how many elements were off by how many ulp.
std::string ulp_histograms(const RunRecord& record);

}  // namespace qkcts
