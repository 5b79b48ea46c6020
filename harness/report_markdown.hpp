// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// The text with what Markdown would take for markup escaped: names come from files and adapters.
std::string markdown_text(const std::string& text);

// GitHub's Markdown, for a merge request or a page: outcome, failures, tables by stage and family, circumstances.
// Failures are left out, and said so, where the text would grow beyond `longest` bytes.
std::string report_markdown(const RunRecord& record, std::size_t longest = 8'000'000);

}  // namespace qkcts
