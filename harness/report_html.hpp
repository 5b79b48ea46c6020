// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// One file without scripts and without anything to fetch: readable in light and dark, by keyboard and on paper.
std::string report_html(const RunRecord& record);

// Text as HTML text or attribute value.
std::string html_escaped(std::string_view text);

}  // namespace qkcts
