// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/progress.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "harness/cli/colour.hpp"
#include "harness/failure_text.hpp"
#include "harness/relation_report.hpp"

namespace qkcts::cli {
namespace {

constexpr int failures_printed_in_full = 10;

}  // namespace

void RunDisplay::start(std::size_t cases) {
  cases_ = cases;
  if (is_capable_terminal(stderr)) bar_.emplace("judged", stderr);
}

void RunDisplay::after_case(const RunRecord& record, const CaseResult& result) {
  print_failure(failure_text(record, result), result.slug, result.verdict);
  const std::size_t done = record.cases.size();
  if (bar_ && cases_ > 0)
    bar_->update(done, cases_, static_cast<double>(done) / static_cast<double>(cases_), result.slug);
}

void RunDisplay::after_relation(const RunRecord& record, const RelationResult& result) {
  print_failure(relation_failure_text(record, result), result.slug, result.verdict);
}

void RunDisplay::clear() {
  if (bar_) bar_->clear();
}

void RunDisplay::print_failure(const std::string& text, const std::string& slug, Verdict verdict) {
  if (text.empty()) return;
  clear();
  if (++failures_ <= failures_printed_in_full) {
    print_coloured(text + "\n");
  } else {
    print_coloured(fmt::format("FAIL  {}  {}\n", slug, verdict_name(verdict)));
  }
  std::fflush(stdout);
}

}  // namespace qkcts::cli
