// SPDX-License-Identifier: Apache-2.0
#include "conformance/near_name.hpp"

#include <gtest/gtest.h>

namespace qkcts {
namespace {

TEST(NearName, DistanceIsThatOfLevenshteinAndOfGlobs) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("abc", "acb"), 2U);
  EXPECT_EQ(edit_distance("*", "anything"), 0U);
  EXPECT_EQ(edit_distance("a*c", "abbbc"), 0U);
  EXPECT_EQ(edit_distance("a*c", "abbbd"), 1U);
  EXPECT_EQ(edit_distance("a?c", "axc"), 0U);
  EXPECT_EQ(edit_distance("a?c", "ac"), 1U);
  EXPECT_EQ(edit_distance("*x", ""), 1U);
}

TEST(NearName, NamesWhatContainsOrIsNearlySpelledSo) {
  const std::vector<std::string> known = {"gaussian", "eps_edge", "eps_ladder", "eps_a", "eps_b", "eps_c", "wide"};
  EXPECT_EQ(near_names("gausian", known), "gaussian");
  EXPECT_EQ(near_names("edge", known), "eps_edge");
  EXPECT_EQ(near_names("eps_", known), "eps_edge, eps_ladder, eps_a, eps_b") << "four at most";
  EXPECT_EQ(near_names("nothing_like_it", known), "");
  EXPECT_EQ(near_names("", {}), "");
}

TEST(NearName, TheNearestOfAllIsNamedHoweverFar) {
  const std::vector<std::string> known = {"plain_sdpa/gaussian/f32", "qwen3_rmsnorm/eps_edge/f32"};
  EXPECT_EQ(nearest_name("qwen_rmsnorm/*", known), known[1]);
  EXPECT_EQ(nearest_name("plain*", known), known[0]);
  EXPECT_EQ(nearest_name("x", {}), "");
}

}  // namespace
}  // namespace qkcts
