// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_terms.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "conformance/file.hpp"

namespace qkcts {
namespace {

// A term without a derivation is a number that somebody made up; a derivation without a term is dead text.
TEST(BudgetTerms, EveryTermIsDerivedInTheDocument) {
  const std::string text = read_text_file(QKCTS_SOURCE_DIR "/docs/budgets.md");
  std::set<std::string> ids;
  for (const BudgetTerm term : budget_terms()) {
    const std::string id(budget_term_id(term));
    EXPECT_TRUE(ids.insert(id).second) << id;
    EXPECT_NE(text.find("\n### " + id + ": "), std::string::npos) << id;
    EXPECT_FALSE(budget_term_title(term).empty());
  }
  EXPECT_LT(ids.size(), 64u);
  for (std::size_t at = text.find("\n### "); at != std::string::npos; at = text.find("\n### ", at + 1)) {
    const std::string id = text.substr(at + 5, text.find(':', at) - at - 5);
    EXPECT_EQ(ids.count(id), 1u) << id;
  }
}

}  // namespace
}  // namespace qkcts
