// SPDX-License-Identifier: Apache-2.0
// docs/models.md beside the contracts that it names.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "conformance/contract_field.hpp"
#include "conformance/file.hpp"
#include "conformance/model_config.hpp"

namespace qkcts {
namespace {

std::string page() {
  return read_text_file(QKCTS_SOURCE_DIR "/docs/models.md");
}

// The rows of the first table below a heading, each with its outer bars.
std::vector<std::string> rows_below(const std::string& heading) {
  const std::string text = page();
  std::size_t at = text.find("\n## " + heading + "\n");
  EXPECT_NE(at, std::string::npos) << heading;
  const std::size_t end = text.find("\n## ", at + 1);
  std::vector<std::string> rows;
  while ((at = text.find("\n|", at + 1)) < end) rows.push_back(text.substr(at + 1, text.find('\n', at + 1) - at - 1));
  rows.erase(rows.begin(), rows.begin() + 2);  // the head of the table
  return rows;
}

// Names in backticks within one cell of a row; the first cell is 1.
std::vector<std::string> names_in(const std::string& row, int cell) {
  std::size_t begin = 0;
  for (int i = 0; i < cell; ++i) begin = row.find('|', begin) + 1;
  const std::string text = row.substr(begin, row.find('|', begin) - begin);
  std::vector<std::string> names;
  for (std::size_t at = text.find('`'); at != std::string::npos; at = text.find('`', at + 1)) {
    const std::size_t end = text.find('`', at + 1);
    names.push_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return names;
}

// Every contract of a model is named, and the counts are those of the tables.
TEST(ModelTable, NamesEveryContractAndCountsItsRows) {
  const std::string text = page();
  for (const std::string& name : model_contracts()) EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
  const std::size_t whole = rows_below("Expressed").size(),
                    partly = rows_below("Expressed by default, an option left out").size(),
                    absent = rows_below("Not expressed").size();
  EXPECT_EQ(whole + partly + absent, 102U);
  for (const auto& [words, count] :
       {std::pair{"to the output | ", whole}, {"is left out | ", partly}, {"named below | ", absent}})
    EXPECT_NE(text.find(fmt::format("{}{} |", words, count)), std::string::npos) << words << count;
  EXPECT_NE(text.find(fmt::format("{} were added for this page", model_contracts().size())), std::string::npos);
  const std::vector<std::string> rows = rows_below("Expressed");
  const auto axes = std::count_if(rows.begin(), rows.end(), [](const std::string& row) {
    return row.find("tables of several axes") != std::string::npos;
  });
  EXPECT_NE(text.find(fmt::format("{} of the {} rows are of this kind", axes, whole)), std::string::npos) << axes;
}

// The second cell of the tables holds contracts that are there.
TEST(ModelTable, HoldsContractsThatExist) {
  for (const char* const heading : {"Expressed", "Expressed by default, an option left out"})
    for (const std::string& row : rows_below(heading)) {
      EXPECT_FALSE(names_in(row, 2).empty()) << row;
      for (const std::string& name : names_in(row, 2)) EXPECT_NO_THROW(shipped_contract(name)) << name << " in " << row;
    }
}

bool is_point(const FieldValue& field) {
  return field.path.rfind("rounding.", 0) == 0;
}

// A contract with rounding points is the contract beside it and nothing else but those points; no two are the same; and
// each point of q and k, and each further one, has a line in the sources that says where the model rounds.
TEST(ModelTable, DeclaredRoundingIsAllThatDiffers) {
  std::set<std::string> digests, listed;
  for (const std::string& row : rows_below("Declared rounding")) {
    const std::string name = names_in(row, 1).at(0);
    listed.insert(name);
    const Contract rounded = shipped_contract(name), real = shipped_contract(names_in(row, 2).at(0));
    EXPECT_TRUE(digests.insert(contract_digest(rounded)).second) << name;
    std::map<std::string, std::string> before, after;
    for (const FieldValue& field : contract_field_values(real.terms))
      if (!is_point(field)) before[field.path] = field.json;
    std::string sources;
    int points = 0;
    for (const std::string& line : rounded.sources) sources += line + "\n";
    EXPECT_NE(sources.find("\ndescribes: "), std::string::npos) << name;
    for (const FieldValue& field : contract_field_values(rounded.terms)) {
      if (!is_point(field)) after[field.path] = field.json;
      if (!is_point(field) || field.json == "\"none\"" || field.json == "false") continue;
      std::string point = field.path.substr(std::string("rounding.").size());
      if (point.rfind("k_", 0) == 0) point[0] = 'q';  // the sources speak of q, and k is rounded alike
      EXPECT_NE(sources.find(point), std::string::npos) << name << " does not say where " << point << " is";
      ++points;
    }
    EXPECT_GT(points, 0) << name;
    EXPECT_EQ(before, after) << name;
    // q and k are rounded alike, and the row says where.
    const qkcts_rounding& rounding = rounded.terms.rounding;
    const std::vector<std::string> shown = names_in(row, 3);
    for (const auto& [word, q, k] : {std::tuple{"norm_unit", rounding.q.unit, rounding.k.unit},
                                     {"norm", rounding.q.norm, rounding.k.norm},
                                     {"rope_product", rounding.q.rope_product, rounding.k.rope_product},
                                     {"rope", rounding.q.rope, rounding.k.rope}}) {
      EXPECT_EQ(q, k) << name << " " << word;
      EXPECT_EQ(q != 0, std::count(shown.begin(), shown.end(), word) == 1) << name << " " << word;
    }
  }
  for (const std::string& name : model_contracts())
    EXPECT_EQ(has_rounding_points(shipped_contract(name).terms.rounding), listed.count(name) == 1) << name;
}

}  // namespace
}  // namespace qkcts
