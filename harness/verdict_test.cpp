// SPDX-License-Identifier: Apache-2.0
#include "harness/verdict.hpp"

#include <gtest/gtest.h>

#include <set>

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

TEST(Verdict, GraverVerdictWins) {
  EXPECT_EQ(graver(Verdict::pass, Verdict::mistrusted), Verdict::mistrusted);
  EXPECT_EQ(graver(Verdict::fail, Verdict::not_repeatable), Verdict::fail);
  EXPECT_EQ(graver(Verdict::error_crash, Verdict::fail), Verdict::error_crash);
  EXPECT_EQ(graver(Verdict::unsupported, Verdict::pass), Verdict::pass);
}

}  // namespace
}  // namespace qkcts
