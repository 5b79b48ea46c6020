// SPDX-License-Identifier: Apache-2.0
#include "harness/wrapped_text.hpp"

#include <gtest/gtest.h>

namespace qkcts {
namespace {

const std::string seventy(70, 'x');

TEST(WrappedText, ColumnsAreCharacters) {
  EXPECT_EQ(text_columns(""), 0U);
  EXPECT_EQ(text_columns("abc"), 3U);
  EXPECT_EQ(text_columns("\xce\x94\xe2\x89\xa4"), 2U);
}

TEST(WrappedText, ALineHasEightyColumnsAndNoMore) {
  EXPECT_EQ(wrapped("head ", "a b"), "head a b\n");
  EXPECT_EQ(wrapped("", "  a   b "), "a b\n");
  EXPECT_EQ(wrapped("head:", ""), "head:\n");
  EXPECT_EQ(wrapped("12345678 ", seventy), "12345678 " + seventy + "\n") << "79 columns";
  EXPECT_EQ(wrapped("123456789 ", seventy), "123456789 " + seventy + "\n") << "80 columns";
  EXPECT_EQ(wrapped("ab ", seventy + " 123456"), "ab " + seventy + " 123456\n") << "80 columns";
  EXPECT_EQ(wrapped("ab ", seventy + " 1234567"), "ab " + seventy + "\n   1234567\n");
}

TEST(WrappedText, LaterLinesBeginWhereTheHeadEndsOrAsAsked) {
  EXPECT_EQ(wrapped("ab ", seventy + " c " + seventy, 1), "ab " + seventy + " c\n " + seventy + "\n");
  EXPECT_EQ(wrapped("1234567890 ", seventy, 4), "1234567890\n    " + seventy + "\n");
  const std::string longer(90, 'y');
  EXPECT_EQ(wrapped("  ", longer + " z"), "  " + longer + "\n  z\n") << "a word is not cut";
}

TEST(WrappedText, WhatIsCutIsMarked) {
  EXPECT_EQ(clipped("abcd", 4), "abcd");
  EXPECT_EQ(clipped("abcde", 4), "abc~");
  EXPECT_EQ(clipped("\xce\x94\xce\x94\xce\x94", 2), "\xce\x94~");
}

TEST(WrappedText, RowsOfATableKeepTheirColumns) {
  EXPECT_EQ(table_row("name", 6, {"1", "22"}, 4), "name     1  22\n");
  EXPECT_EQ(table_row("longer name", 6, {"1"}, 4), "longer name\n         1\n");
  EXPECT_EQ(table_row("name", 6, {}, 4), "name\n");
  EXPECT_EQ(table_row("name", 60, {"1", "2", "3"}, 10),
            "name" + std::string(65, ' ') + "1         2\n" + std::string(69, ' ') + "3\n");
}

}  // namespace
}  // namespace qkcts
