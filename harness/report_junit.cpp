// SPDX-License-Identifier: Apache-2.0
#include "harness/report_junit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <sstream>

#include "harness/failure_text.hpp"
#include "harness/relation_report.hpp"
#include "harness/utf8_text.hpp"

namespace qkcts {
namespace {

// Common servers refuse files of more than 25 MB; half of a text may become entities.
constexpr std::size_t longest_text = 20000;
constexpr std::size_t all_texts = 10'000'000;

std::string cut(const std::string& text, std::size_t cases) {
  const std::size_t longest = std::min(longest_text, all_texts / std::max<std::size_t>(1, cases));
  return text.size() <= longest ? text : utf8_text(text.substr(0, longest)) + "\n[cut]";
}

std::string reason(const CaseResult& result) {
  if (!result.detail.empty()) return result.detail;
  for (const StageResult& stage : result.stages) {
    if (stage.verdict == result.verdict) return fmt::format("{} {}", stage_name(stage.stage), stage.detail);
  }
  return {};
}

// What the case matches instead, if that was asked for and found.
std::string diagnosed(const RunRecord& record, const CaseResult& result) {
  const CaseDiagnosis* const diagnosis = diagnosis_of(record, result.slug);
  const std::string line = diagnosis == nullptr ? std::string() : diagnosis_line(*diagnosis);
  return line.empty() ? reason(result) : reason(result) + "; " + line;
}

bool over_limits(const CaseResult& result) {
  return std::any_of(result.stages.begin(), result.stages.end(), [](const StageResult& s) {
    return s.judgement && s.judgement->limit && s.judgement->limit->violations > 0;
  });
}

struct Counts {
  int tests = 0, failures = 0, errors = 0, skipped = 0;
};

void add_case(pugi::xml_node suite, const RunRecord& record, const CaseResult& result, Counts& counts) {
  pugi::xml_node test = suite.append_child("testcase");
  test.append_attribute("classname") = fmt::format("{}.{}", record.corpus_suite, result.contract).c_str();
  test.append_attribute("name") = result.slug.c_str();
  test.append_attribute("time") = fmt::format("{:.6f}", result.seconds).c_str();
  ++counts.tests;
  JunitElement kind = row(result.verdict).junit;
  if (over_limits(result) && kind != JunitElement::error) kind = JunitElement::failure;
  if (kind == JunitElement::passed) return;
  const char* name = kind == JunitElement::skipped ? "skipped" : kind == JunitElement::failure ? "failure" : "error";
  ++(kind == JunitElement::skipped ? counts.skipped : kind == JunitElement::failure ? counts.failures : counts.errors);
  pugi::xml_node element = test.append_child(name);
  const std::string message = violates(result.verdict) || kind == JunitElement::skipped
                                  ? fmt::format("{}: {}", verdict_name(result.verdict), diagnosed(record, result))
                                  : std::string("over the user's own limit");
  element.append_attribute("message") = cut(message, record.cases.size()).c_str();
  if (kind == JunitElement::skipped) return;
  element.append_attribute("type") = std::string(verdict_name(result.verdict)).c_str();
  element.append_child(pugi::node_pcdata).set_value(cut(failure_text(record, result), record.cases.size()).c_str());
}

void set_counts(pugi::xml_node suite, const Counts& counts) {
  suite.append_attribute("tests") = counts.tests;
  suite.append_attribute("failures") = counts.failures;
  suite.append_attribute("errors") = counts.errors;
  suite.append_attribute("skipped") = counts.skipped;
}

void add_relation(pugi::xml_node suite, const RunRecord& record, const RelationResult& result, Counts& counts) {
  pugi::xml_node test = suite.append_child("testcase");
  test.append_attribute("classname") = fmt::format("{}.relations", record.corpus_suite).c_str();
  test.append_attribute("name") = result.slug.c_str();
  ++counts.tests;
  const JunitElement kind = row(result.verdict).junit;
  if (kind == JunitElement::passed) return;
  const char* name = kind == JunitElement::skipped ? "skipped" : kind == JunitElement::failure ? "failure" : "error";
  ++(kind == JunitElement::skipped ? counts.skipped : kind == JunitElement::failure ? counts.failures : counts.errors);
  pugi::xml_node element = test.append_child(name);
  const std::string reason = result.breach ? std::string(row(result.kind).violation) : result.detail;
  element.append_attribute("message") =
      cut(fmt::format("{}: {}", verdict_name(result.verdict), reason), record.relations.size()).c_str();
  if (kind == JunitElement::skipped) return;
  element.append_attribute("type") = std::string(verdict_name(result.verdict)).c_str();
  element.append_child(pugi::node_pcdata)
      .set_value(cut(relation_failure_text(record, result), record.relations.size()).c_str());
}

void add_relations(pugi::xml_node root, const RunRecord& record, Counts& all) {
  if (record.relations.empty()) return;
  pugi::xml_node suite = root.append_child("testsuite");
  suite.append_attribute("name") = fmt::format("{}.relations", record.corpus_suite).c_str();
  suite.append_attribute("timestamp") = record.started.c_str();
  Counts counts;
  for (const RelationResult& result : record.relations) add_relation(suite, record, result, counts);
  set_counts(suite, counts);
  all.tests += counts.tests;
  all.failures += counts.failures;
  all.errors += counts.errors;
}

}  // namespace

std::string junit_xml(const RunRecord& record) {
  std::map<std::string, std::vector<const CaseResult*>> by_contract;
  for (const CaseResult& result : record.cases) by_contract[result.contract].push_back(&result);

  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node root = document.append_child("testsuites");
  root.append_attribute("name") = fmt::format("qkcts {} {}", record.description.name, record.corpus_suite).c_str();
  Counts all;
  for (const auto& [contract, results] : by_contract) {
    pugi::xml_node suite = root.append_child("testsuite");
    suite.append_attribute("name") = fmt::format("{}.{}", record.corpus_suite, contract).c_str();
    suite.append_attribute("timestamp") = record.started.c_str();
    Counts counts;
    for (const CaseResult* result : results) add_case(suite, record, *result, counts);
    set_counts(suite, counts);
    all.tests += counts.tests;
    all.failures += counts.failures;
    all.errors += counts.errors;
  }
  add_relations(root, record, all);
  root.append_attribute("tests") = all.tests;
  root.append_attribute("failures") = all.failures;
  root.append_attribute("errors") = all.errors;
  root.append_attribute("time") = fmt::format("{:.3f}", record.seconds).c_str();
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

}  // namespace qkcts
