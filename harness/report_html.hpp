// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/html_kill_matrix.hpp"
#include "harness/run_record.hpp"

namespace qkcts {

// What a page may hold beside the run.
struct HtmlExtras {
  std::optional<KillMatrix> adequacy;
  std::optional<Contract> against;  // contracts of the run are compared with it
};

// One file without scripts and without anything to fetch: readable in light and dark, by keyboard and on paper.
std::string report_html(const RunRecord& record, const HtmlExtras& extras = {});

// Text as HTML text or attribute value.
std::string html_escaped(std::string_view text);

// A verdict in its colour.
std::string html_badge(Verdict verdict);

}  // namespace qkcts
