// SPDX-License-Identifier: Apache-2.0
// docs/mutants.md holds what the catalogue says.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

#include "conformance/file.hpp"
#include "conformance/mutant_catalogue.hpp"

namespace qkcts {
namespace {

template <class List>
std::string joined(const List& list) {
  std::string text;
  for (const std::string& one : list) text += (text.empty() ? "" : ", ") + one;
  return text;
}

// Which of our clauses the words of the issues stand for.
std::string word_table() {
  struct Row {
    std::set<std::string> clauses;
    std::vector<std::string> ids;
  };
  std::map<std::string, Row> rows;
  for (const CatalogueMutant& mutant : mutant_catalogue()) {
    if (mutant.word.empty()) continue;
    Row& row = rows[mutant.word];
    row.ids.push_back("`" + mutant.id + "`");
    if (!mutant.awaits.empty())
      row.clauses.insert("awaits " + mutant.awaits);
    else if (mutant.clause.empty())
      row.clauses.insert("the checker");
    else
      row.clauses.insert(mutant.clause);
  }
  std::string text = "| word | clauses | mutants |\n|---|---|---|\n";
  for (const auto& [word, row] : rows)
    text += fmt::format("| `{}` | {} | {} |\n", word, joined(row.clauses), joined(row.ids));
  return text;
}

std::string count_table() {
  std::string text = "| kind | entries | fields | fault | check | awaits |\n|---|---|---|---|---|---|\n";
  for (const MutantKind kind :
       {MutantKind::math, MutantKind::round, MutantKind::layout, MutantKind::order, MutantKind::harness}) {
    int all = 0, fields = 0, faults = 0, checks = 0, awaiting = 0;
    for (const CatalogueMutant& mutant : mutant_catalogue()) {
      if (mutant.kind != kind) continue;
      ++all;
      fields += mutant.fields.empty() ? 0 : 1;
      faults += mutant.fault.empty() ? 0 : 1;
      checks += mutant.check.empty() ? 0 : 1;
      awaiting += mutant.awaits.empty() ? 0 : 1;
    }
    text +=
        fmt::format("| {} | {} | {} | {} | {} | {} |\n", mutant_kind_name(kind), all, fields, faults, checks, awaiting);
  }
  return text;
}

TEST(MutantsDocument, HoldsTheTablesOfTheCatalogue) {
  const std::string document = read_text_file(QKCTS_SOURCE_DIR "/docs/mutants.md");
  for (const std::string& table : {count_table(), word_table()})
    EXPECT_NE(document.find(table), std::string::npos) << "docs/mutants.md has to hold:\n" << table;
}

}  // namespace
}  // namespace qkcts
