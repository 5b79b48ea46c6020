// SPDX-License-Identifier: Apache-2.0
#include "vectors/slug.hpp"

#include <gtest/gtest.h>

#include <string>

namespace qkcts {
namespace {

TEST(Slug, AcceptsTheGrammarAndNothingElse) {
  for (const char* good : {"a", "a/b", "qwen3_rmsnorm/gaussian/binary32_1x2", "0", "_"})
    EXPECT_TRUE(is_slug(good)) << good;
  for (const char* bad : {"", "/", "a/", "/a", "a//b", "A", "a-b", "a b", "a.b", "..", "a/../b", "a\n", "\xc3\xa4"})
    EXPECT_FALSE(is_slug(bad)) << bad;
  EXPECT_FALSE(is_slug(std::string_view("a\0b", 3)));
  EXPECT_TRUE(is_slug("a/b/c/d/e/f/g/h"));
  EXPECT_FALSE(is_slug("a/b/c/d/e/f/g/h/i"));
  EXPECT_TRUE(is_slug(std::string(200, 'a')));
  EXPECT_FALSE(is_slug(std::string(201, 'a')));
  EXPECT_FALSE(is_name("a/b"));
}

}  // namespace
}  // namespace qkcts
