// SPDX-License-Identifier: Apache-2.0
#include "harness/report_junit.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <pugixml.hpp>
#include <string>
#include <vector>

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

// Suites in the order of their names, whatever the order of the cases, and each holds as many tests as it says.
TEST(ReportJunit, EachSuiteHoldsItsTests) {
  RunRecord record = full_record();
  record.cases[1].contract = "a_first";
  record.cases[3].contract = "a_first";
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(junit_xml(record).c_str()));
  const pugi::xml_node suites = document.child("testsuites");
  std::vector<std::string> names;
  int sum = 0;
  for (const pugi::xml_node suite : suites.children("testsuite")) {
    names.emplace_back(suite.attribute("name").value());
    const auto tests = suite.children("testcase");
    EXPECT_EQ(suite.attribute("tests").as_int(), std::distance(tests.begin(), tests.end())) << names.back();
    for (const pugi::xml_node test : tests) EXPECT_EQ(test.attribute("classname").value(), names.back());
    sum += suite.attribute("tests").as_int();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"hand.a_first", "hand.demands", "hand.plain_sdpa", "hand.relations"}));
  EXPECT_EQ(suites.attribute("tests").as_int(), sum);
}

}  // namespace
}  // namespace qkcts
