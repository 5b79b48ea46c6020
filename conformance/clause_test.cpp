// SPDX-License-Identifier: Apache-2.0
#include "conformance/clause.hpp"

#include <gtest/gtest.h>

#include <set>

#include "conformance/contract.hpp"
#include "conformance/contract_field.hpp"
#include "conformance/file.hpp"

namespace qkcts {
namespace {

TEST(Clause, IdsAreUnique) {
  std::set<std::string_view> ids;
  for (const Clause& clause : clauses()) EXPECT_TRUE(ids.insert(clause.id).second) << clause.id;
  EXPECT_EQ(find_clause("QK-EPS-02")->title, "Where epsilon enters the root");
  EXPECT_EQ(find_clause("QK-EPS-99"), nullptr);
  EXPECT_EQ(clause_group("QK-EPS-02"), "QK-EPS");
  EXPECT_EQ(clause_group("QK-EPS"), "QK-EPS");
  EXPECT_EQ(clause_anchor("QK-EPS-02"), "docs/contract.md#qk-eps-02");
}

TEST(Clause, EveryFieldAndStageNamesAnExistingOne) {
  for (const ContractField& field : contract_field_table())
    EXPECT_NE(find_clause(field.clause), nullptr) << field.path();
  for (const qkcts_stage stage : all_stages) {
    bool known = false;
    for (const Clause& clause : clauses()) known = known || clause_group(clause.id) == stage_clause(stage);
    EXPECT_TRUE(known) << stage_clause(stage);
  }
}

// From a failure line to the text in one jump: every clause and group has its anchor in docs/contract.md.
TEST(Clause, IsWrittenDown) {
  const std::string text = read_text_file(QKCTS_SOURCE_DIR "/docs/contract.md");
  for (const Clause& clause : clauses())
    for (const std::string_view id : {clause.id, clause_group(clause.id)}) {
      const std::string anchor = clause_anchor(id);
      EXPECT_NE(text.find("<a id=\"" + anchor.substr(anchor.find('#') + 1) + "\"></a>"), std::string::npos) << id;
    }
}

// The normative text names every field of the table, in its C and its JSON spelling.
TEST(Clause, EveryFieldIsWrittenDown) {
  const std::string text = read_text_file(QKCTS_SOURCE_DIR "/docs/contract.md");
  for (const ContractField& field : contract_field_table()) {
    EXPECT_NE(text.find("`" + std::string(field.key) + "`"), std::string::npos) << field.key;
    for (const std::string_view value : field.texts)
      EXPECT_NE(text.find("`" + std::string(value) + "`"), std::string::npos) << field.path() << " " << value;
  }
}

}  // namespace
}  // namespace qkcts
