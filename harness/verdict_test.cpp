// SPDX-License-Identifier: Apache-2.0
#include "harness/verdict.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include <fmt/format.h>

#include "conformance/file.hpp"

namespace qkcts {
namespace {

TEST(Verdict, TableHasOneRowPerVerdictInOrder) {
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const VerdictRow& r : verdict_table()) {
    EXPECT_EQ(static_cast<std::size_t>(r.verdict), index++);
    EXPECT_TRUE(names.insert(r.name).second) << r.name;
    EXPECT_EQ(verdict_named(r.name), r.verdict);
  }
  EXPECT_EQ(index, static_cast<std::size_t>(Verdict::error_abi) + 1);
  EXPECT_EQ(verdict_named("passed"), std::nullopt);
}

TEST(Verdict, OnlyPassConforms) {
  for (const VerdictRow& r : verdict_table()) {
    EXPECT_EQ(r.effect == Effect::conforms, r.verdict == Verdict::pass) << r.name;
    EXPECT_EQ(r.junit == JunitElement::passed, r.verdict == Verdict::pass) << r.name;
    const bool reported = r.junit == JunitElement::failure || r.junit == JunitElement::error;
    EXPECT_EQ(reported, r.effect == Effect::violates) << r.name;
  }
}

// The table that users read is the table that the program uses.
TEST(Verdict, ReadmeHoldsTheTable) {
  constexpr std::array<std::string_view, 4> effects = {"conforms", "neutral", "judged", "violates"};
  constexpr std::array<std::string_view, 4> elements = {"passed", "skipped", "failure", "error"};
  const std::string readme = read_text_file(std::string(QKCTS_SOURCE_DIR) + "/harness/README.md");
  std::size_t previous = 0;
  for (const VerdictRow& r : verdict_table()) {
    const std::string line =
        fmt::format("| `{}` | {} | {} | {} |\n", r.name, effects[static_cast<std::size_t>(r.effect)],
                    elements[static_cast<std::size_t>(r.junit)], r.meaning);
    const std::size_t at = readme.find(line);
    ASSERT_NE(at, std::string::npos) << line;
    EXPECT_GT(at, previous) << "out of order: " << line;
    previous = at;
  }
}

TEST(Verdict, GraverVerdictWins) {
  EXPECT_EQ(graver(Verdict::pass, Verdict::mistrusted), Verdict::mistrusted);
  EXPECT_EQ(graver(Verdict::fail, Verdict::not_repeatable), Verdict::fail);
  EXPECT_EQ(graver(Verdict::error_crash, Verdict::fail), Verdict::error_crash);
  EXPECT_EQ(graver(Verdict::unsupported, Verdict::pass), Verdict::pass);
}

}  // namespace
}  // namespace qkcts
