// SPDX-License-Identifier: Apache-2.0
#include "harness/report_junit.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <pugixml.hpp>

#include "harness/sample_record.hpp"

namespace qkcts {
namespace {

TEST(ReportJunit, IsWellFormedAndCountsAgree) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_string(junit_xml(sample_record()).c_str());
  ASSERT_TRUE(parsed) << parsed.description();
  const pugi::xml_node suite = document.child("testsuites").child("testsuite");
  EXPECT_STREQ(suite.attribute("name").value(), "hand.plain_sdpa");
  EXPECT_EQ(suite.attribute("tests").as_int(), 7);
  EXPECT_EQ(suite.attribute("failures").as_int(), 3);  // wrong, limit, restless
  EXPECT_EQ(suite.attribute("errors").as_int(), 1);    // crash
  EXPECT_EQ(suite.attribute("skipped").as_int(), 2);   // vague, unsupported
  int children = 0;
  for (const pugi::xml_node test : suite.children("testcase")) {
    EXPECT_STREQ(test.attribute("classname").value(), "hand.plain_sdpa");
    children += static_cast<int>(std::distance(test.begin(), test.end()));
  }
  EXPECT_EQ(children, 6);  // exactly one for each that is no pass
}

}  // namespace
}  // namespace qkcts
