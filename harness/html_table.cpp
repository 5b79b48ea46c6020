// SPDX-License-Identifier: Apache-2.0
#include "harness/html_table.hpp"

#include <fmt/format.h>

namespace qkcts {
namespace {

std::string cell(std::string_view tag, std::string_view scope, CellKind kind, std::string_view content) {
  return fmt::format("<{0}{1}{2}>{3}</{0}>", tag, scope, kind == CellKind::number ? " class=\"n\"" : "", content);
}

}  // namespace

std::string html_table(std::string_view label, const std::vector<HtmlColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows) {
  std::string text = fmt::format("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n", label);
  text += "<table><thead><tr>";
  for (const HtmlColumn& column : columns) text += cell("th", " scope=\"col\"", column.kind, column.name);
  text += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    text += "<tr>" + cell("th", " scope=\"row\"", columns[0].kind, row[0]);
    for (std::size_t i = 1; i < row.size(); ++i) text += cell("td", "", columns[i].kind, row[i]);
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace qkcts
