// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkcts {

enum class CellKind { text, number };

struct HtmlColumn {
  std::string_view name;
  CellKind kind = CellKind::text;
};

// A table that can be scrolled and focused by keyboard. Cells are HTML already; the first of a row is its heading.
std::string html_table(std::string_view label, const std::vector<HtmlColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace qkcts
