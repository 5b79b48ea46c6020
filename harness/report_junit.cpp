// SPDX-License-Identifier: Apache-2.0
#include "harness/report_junit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <span>
#include <sstream>
#include <vector>

#include "harness/report_outcome.hpp"
#include "harness/spool_file.hpp"

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

std::string xml_text(pugi::xml_node node, unsigned int depth) {
  std::ostringstream text;
  node.print(text, "  ", pugi::format_default, pugi::encoding_auto, depth);
  return text.str();
}

// What begins an element that holds others. As long as it holds none, it is written as one that is empty.
std::string opened(pugi::xml_node node, unsigned int depth) {
  const std::string text = xml_text(node, depth);
  return text.substr(0, text.rfind(" />")) + ">\n";
}

void set_counts(pugi::xml_node suite, const Counts& counts, const std::string& time) {
  suite.append_attribute("tests") = counts.tests;
  suite.append_attribute("failures") = counts.failures;
  suite.append_attribute("errors") = counts.errors;
  suite.append_attribute("skipped") = counts.skipped;
  suite.append_attribute("time") = time.c_str();
}

// The suites stand in the order of their names, each behind its counts. So tests wait as text in a temporary file until
// all of them are known.
class JunitWriter {
 public:
  explicit JunitWriter(const RunRecord& record)
      : record_(record),
        longest_(
            std::clamp(all_texts / std::max<std::size_t>(1, number_of_outcomes(record)), least_text, longest_text)) {}

  void add(const Outcome& outcome) {
    Suite& suite = suites_[outcome.group];
    pugi::xml_document document;
    add_test(document, outcome, suite.counts);
    const std::string test = xml_text(document.first_child(), 2);
    suite.tests.push_back(texts_.put(std::as_bytes(std::span(test))));
    suite.seconds += outcome.seconds;
  }

  void write(const TextSink& sink) const {
    pugi::xml_document document;
    pugi::xml_node root = document.append_child("testsuites");
    root.append_attribute("name") = fmt::format("qkcts {} {}", record_.description.name, record_.corpus_suite).c_str();
    Counts all;
    for (const auto& [group, suite] : suites_) all.add(suite.counts);
    set_counts(root, all, fmt::format("{:.3f}", record_.seconds));
    sink("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    if (suites_.empty()) return sink(xml_text(root, 0));
    sink(opened(root, 0));
    for (const auto& [group, suite] : suites_) write_suite(group, suite, sink);
    sink("</testsuites>\n");
  }

 private:
  struct Suite {
    Counts counts;
    double seconds = 0;
    std::vector<SpoolFile::Place> tests;
  };

  std::string suite_name(const std::string& group) const { return fmt::format("{}.{}", record_.corpus_suite, group); }

  void add_test(pugi::xml_node parent, const Outcome& outcome, Counts& counts) const {
    pugi::xml_node test = parent.append_child("testcase");
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

  void write_suite(const std::string& group, const Suite& suite, const TextSink& sink) const {
    pugi::xml_document document;
    pugi::xml_node node = document.append_child("testsuite");
    node.append_attribute("name") = suite_name(group).c_str();
    node.append_attribute("timestamp") = record_.started.c_str();
    set_counts(node, suite.counts, fmt::format("{:.6f}", suite.seconds));
    sink(opened(node, 1));
    for (const SpoolFile::Place test : suite.tests) {
      const std::vector<std::byte> text = texts_.get(test);
      sink({reinterpret_cast<const char*>(text.data()), text.size()});
    }
    sink("  </testsuite>\n");
  }

  const RunRecord& record_;
  std::size_t longest_;
  SpoolFile texts_;
  std::map<std::string, Suite> suites_;
};

}  // namespace

void write_junit_xml(const RunRecord& record, const TextSink& sink) {
  JunitWriter writer(record);
  for_each_outcome(record, [&writer](const Outcome& outcome, const CaseResult*) { writer.add(outcome); });
  writer.write(sink);
}

std::string junit_xml(const RunRecord& record) {
  return text_of([&](const TextSink& sink) { write_junit_xml(record, sink); });
}

}  // namespace qkcts
