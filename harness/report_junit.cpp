// SPDX-License-Identifier: Apache-2.0
#include "harness/report_junit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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
  JunitWriter(const RunRecord& record, pugi::xml_node root)
      : record_(record),
        root_(root),
        longest_(
            std::clamp(all_texts / std::max<std::size_t>(1, number_of_outcomes(record)), least_text, longest_text)) {}

  void add(const Outcome& outcome) {
    const auto [place, is_new] = suites_.try_emplace(outcome.group);
    Suite& suite = place->second;
    if (is_new) {  // in the order of their names
      const auto next = std::next(place);
      suite.node = next == suites_.end() ? root_.append_child("testsuite")
                                         : root_.insert_child_before("testsuite", next->second.node);
      suite.node.append_attribute("name") = suite_name(outcome.group).c_str();
      suite.node.append_attribute("timestamp") = record_.started.c_str();
    }
    add_test(suite.node, outcome, suite.counts);
    suite.seconds += outcome.seconds;
  }

  void finish() {
    Counts all;
    for (auto& [group, suite] : suites_) {
      set_counts(suite.node, suite.counts);
      suite.node.append_attribute("time") = fmt::format("{:.6f}", suite.seconds).c_str();
      all.add(suite.counts);
    }
    set_counts(root_, all);
  }

 private:
  struct Suite {
    pugi::xml_node node;
    Counts counts;
    double seconds = 0;
  };

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
  pugi::xml_node root_;
  std::size_t longest_;
  std::map<std::string, Suite> suites_;
};

}  // namespace

std::string junit_xml(const RunRecord& record) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node root = document.append_child("testsuites");
  root.append_attribute("name") = fmt::format("qkcts {} {}", record.description.name, record.corpus_suite).c_str();
  JunitWriter writer(record, root);
  for_each_outcome(record, [&writer](const Outcome& outcome, const CaseResult*) { writer.add(outcome); });
  writer.finish();
  root.append_attribute("time") = fmt::format("{:.3f}", record.seconds).c_str();
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

}  // namespace qkcts
