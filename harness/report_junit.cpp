// SPDX-License-Identifier: Apache-2.0
#include "harness/report_junit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <sstream>

#include "harness/report_outcome.hpp"

namespace qkcts {
namespace {

// Common servers refuse files of more than 25 MB. Texts may double when they become entities, and a test costs some
// bytes without any text.
constexpr std::size_t longest_text = 20000;
constexpr std::size_t all_texts = 9'000'000;
constexpr std::size_t least_text = 120;

struct Counts {
  int tests = 0, failures = 0, errors = 0, skipped = 0;

  void add(const Counts& other) {
    tests += other.tests;
    failures += other.failures;
    errors += other.errors;
    skipped += other.skipped;
  }
};

void set_counts(pugi::xml_node suite, const Counts& counts) {
  suite.append_attribute("tests") = counts.tests;
  suite.append_attribute("failures") = counts.failures;
  suite.append_attribute("errors") = counts.errors;
  suite.append_attribute("skipped") = counts.skipped;
}

class JunitWriter {
 public:
  JunitWriter(const RunRecord& record, std::size_t tests)
      : record_(record), longest_(std::clamp(all_texts / std::max<std::size_t>(1, tests), least_text, longest_text)) {}

  Counts add_suite(pugi::xml_node root, const std::string& group, const std::vector<const Outcome*>& tests) const {
    pugi::xml_node suite = root.append_child("testsuite");
    suite.append_attribute("name") = suite_name(group).c_str();
    suite.append_attribute("timestamp") = record_.started.c_str();
    Counts counts;
    double seconds = 0;
    for (const Outcome* test : tests) {
      add_test(suite, *test, counts);
      seconds += test->seconds;
    }
    set_counts(suite, counts);
    suite.append_attribute("time") = fmt::format("{:.6f}", seconds).c_str();
    return counts;
  }

 private:
  std::string suite_name(const std::string& group) const { return fmt::format("{}.{}", record_.corpus_suite, group); }

  void add_test(pugi::xml_node suite, const Outcome& outcome, Counts& counts) const {
    pugi::xml_node test = suite.append_child("testcase");
    test.append_attribute("classname") = suite_name(outcome.group).c_str();
    test.append_attribute("name") = outcome.name.c_str();
    test.append_attribute("time") = fmt::format("{:.6f}", outcome.seconds).c_str();
    ++counts.tests;
    if (outcome.kind == JunitElement::passed) return;
    const bool skipped = outcome.kind == JunitElement::skipped;
    const bool failure = outcome.kind == JunitElement::failure;
    ++(skipped ? counts.skipped : failure ? counts.failures : counts.errors);
    pugi::xml_node element = test.append_child(skipped ? "skipped" : failure ? "failure" : "error");
    const std::string message = cut_text(outcome.message, longest_);
    element.append_attribute("message") = message.c_str();
    if (!skipped) element.append_attribute("type") = std::string(verdict_name(outcome.verdict)).c_str();
    // GitLab shows what stands inside of the element, not the attribute.
    const std::string text = skipped ? message : cut_text(outcome.text, longest_);
    element.append_child(pugi::node_pcdata).set_value(text.c_str());
  }

  const RunRecord& record_;
  std::size_t longest_;
};

}  // namespace

std::string junit_xml(const RunRecord& record) {
  const std::vector<Outcome> tests = outcomes(record);
  std::map<std::string, std::vector<const Outcome*>> groups;
  for (const Outcome& test : tests) groups[test.group].push_back(&test);
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node root = document.append_child("testsuites");
  root.append_attribute("name") = fmt::format("qkcts {} {}", record.description.name, record.corpus_suite).c_str();
  const JunitWriter writer(record, tests.size());
  Counts all;
  for (const auto& [group, list] : groups) all.add(writer.add_suite(root, group, list));
  set_counts(root, all);
  root.append_attribute("time") = fmt::format("{:.3f}", record.seconds).c_str();
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

}  // namespace qkcts
