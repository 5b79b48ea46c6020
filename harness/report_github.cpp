// SPDX-License-Identifier: Apache-2.0
#include "harness/report_github.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "harness/report_markdown.hpp"
#include "harness/report_outcome.hpp"

namespace qkcts {
namespace {

constexpr std::size_t longest_annotation = 3000;
constexpr std::size_t longest_summary = 1'000'000;  // of 1,048,576

// In a property colons and commas end it, too.
std::string escaped(const std::string& text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) == std::string_view::npos) {
      result += c;
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

}  // namespace

std::string github_error(const std::string& title, const std::string& message) {
  return fmt::format("::error title={}::{}\n", escaped(title, "%\r\n:,"), escaped(message, "%\r\n"));
}

std::string github_annotations(const RunRecord& record) {
  std::vector<Outcome> failing;  // the first of them
  std::size_t count = 0;
  for_each_outcome(record, [&](const Outcome& outcome, const CaseResult*) {
    if (is_failing(outcome) && ++count <= most_annotations) failing.push_back(outcome);
  });
  const bool all = count <= most_annotations;
  const std::size_t shown = all ? count : most_annotations - 1;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i)
    text += github_error(failing[i].name, cut_text(failing[i].message + "\n" + failing[i].text, longest_annotation));
  if (!all)
    text += github_error("more failures",
                         fmt::format("{} more; the summary of this step and run.json hold them", count - shown));
  return text;
}

std::string github_summary(const RunRecord& record) {
  return report_markdown(record, longest_summary);
}

}  // namespace qkcts
