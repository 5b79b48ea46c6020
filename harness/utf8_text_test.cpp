// SPDX-License-Identifier: Apache-2.0
#include "harness/utf8_text.hpp"

#include <gtest/gtest.h>

namespace qkcts {
namespace {

TEST(Utf8Text, WellFormedTextIsKept) {
  const std::string text = "plain\n\ttext, \xC3\xA9, \xE2\x82\xAC, \xF0\x9F\x98\x80";
  EXPECT_EQ(utf8_text(text), text);
}

TEST(Utf8Text, EverythingElseBecomesAQuestionMark) {
  EXPECT_EQ(utf8_text("a\x01"
                      "b\x7f\r"),
            "a?b??");
  EXPECT_EQ(utf8_text("\xff\xfe"), "??");
  EXPECT_EQ(utf8_text("\xC0\xAF"), "??");            // overlong
  EXPECT_EQ(utf8_text("\xED\xA0\x80"), "???");       // surrogate
  EXPECT_EQ(utf8_text("\xE2\x82"), "??");            // cut
  EXPECT_EQ(utf8_text("\xF4\x90\x80\x80"), "????");  // beyond U+10FFFF
  EXPECT_EQ(utf8_text(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(utf8_text("\xC2\x9B"
                      "2J"),
            "?2J");                           // a terminal's control sequence introducer
  EXPECT_EQ(utf8_text("\xEF\xBF\xBF"), "?");  // no character of XML 1.0
  EXPECT_EQ(utf8_line("a\nb\n"), "a b ");
}

}  // namespace
}  // namespace qkcts
