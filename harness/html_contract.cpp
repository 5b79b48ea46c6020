// SPDX-License-Identifier: Apache-2.0
#include "harness/html_contract.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "conformance/clause.hpp"
#include "conformance/contract_field.hpp"
#include "harness/html_table.hpp"
#include "harness/report_html.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

struct FieldRow {
  std::vector<std::string> cells;
  bool differs = false;
};

// `others`: field path -> value of the contract that this one is compared with; empty: with none.
std::vector<FieldRow> field_rows(const Contract& contract, const std::map<std::string, std::string>& others) {
  std::vector<FieldRow> rows;
  for (const FieldValue& field : contract_field_values(contract.terms)) {
    const Clause* const clause = find_clause(field.clause);
    FieldRow& row = rows.emplace_back();
    row.cells = {std::string(field.clause), html_escaped(field.path),
                 fmt::format("<code>{}</code>", html_escaped(field.json))};
    if (!others.empty()) {
      const auto other = others.find(std::string(field.path));
      row.differs = other == others.end() || other->second != field.json;
      row.cells.push_back(other == others.end() ? std::string("&#8211;")
                                                : fmt::format("<code>{}</code>", html_escaped(other->second)));
      row.cells.emplace_back(row.differs ? "<span class=\"bad\">&#8800; differs</span>" : "");
    }
    row.cells.push_back(clause == nullptr ? std::string() : html_escaped(clause->title));
  }
  std::stable_partition(rows.begin(), rows.end(), [](const FieldRow& row) { return row.differs; });
  return rows;
}

std::string one_contract(const Contract& contract, const std::map<std::string, std::string>& others,
                         const std::string& other_name) {
  const std::vector<FieldRow> fields = field_rows(contract, others);
  std::vector<std::vector<std::string>> rows;
  for (const FieldRow& field : fields) rows.push_back(field.cells);
  std::vector<HtmlColumn> columns = {{"clause"}, {"field"}, {"value"}};
  const std::string heading = html_escaped(other_name);
  if (!others.empty()) {
    columns.push_back({heading});
    columns.push_back({"difference"});
  }
  columns.push_back({"meaning"});
  const auto differing = static_cast<std::uint64_t>(
      std::count_if(fields.begin(), fields.end(), [](const FieldRow& row) { return row.differs; }));
  const std::string note = others.empty() ? ""
                                          : fmt::format(": {} from {}", counted(differing, "difference", "differences"),
                                                        html_escaped(other_name));
  std::string sources;
  for (const std::string& source : contract.sources) sources += fmt::format("<li>{}</li>", html_escaped(source));
  return fmt::format("<details><summary>{0}{1}</summary><p>{2}</p>\n<ul>{3}</ul>\n{4}</details>\n",
                     html_escaped(contract.name), note, html_escaped(contract.title), sources,
                     html_table("Clauses of " + html_escaped(contract.name), columns, rows));
}

}  // namespace

std::string contract_details(const RunRecord& record, const std::optional<Contract>& against) {
  std::map<std::string, std::string> others;
  if (against)
    for (const FieldValue& field : contract_field_values(against->terms)) others[std::string(field.path)] = field.json;
  std::string text;
  for (const auto& [name, json] : record.contracts)
    text += one_contract(contract_from_json(json, name), others, against ? against->name : std::string());
  return text;
}

}  // namespace qkcts
