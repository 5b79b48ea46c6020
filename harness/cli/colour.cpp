// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/colour.hpp"

#include <cstdlib>
#include <string_view>

#include <unistd.h>

#include <fmt/format.h>

#include "harness/verdict.hpp"

namespace qkcts::cli {
namespace {

constexpr std::string_view red = "\x1b[31;1m", green = "\x1b[32m", plain = "\x1b[0m";

std::string painted(std::string_view colour, std::string_view words) {
  return fmt::format("{}{}{}", colour, words, plain);
}

std::string coloured_line(std::string_view line) {
  for (const std::string_view lead : {"NOT CONFORMING", "OVER YOUR", "FAIL", "CONFORMING"}) {
    if (line.substr(0, lead.size()) != lead) continue;
    return painted(lead == "CONFORMING" ? green : red, lead) + std::string(line.substr(lead.size()));
  }
  // The last column of a table is a verdict.
  const std::size_t blank = line.rfind("  ");
  if (blank == std::string_view::npos) return std::string(line);
  const std::string_view last = line.substr(blank + 2);
  const auto verdict = verdict_named(last);
  if (!verdict || (*verdict != Verdict::pass && !violates(*verdict))) return std::string(line);
  return std::string(line.substr(0, blank + 2)) + painted(violates(*verdict) ? red : green, last);
}

}  // namespace

bool is_capable_terminal(std::FILE* stream) {
  const char* const terminal = std::getenv("TERM");
  return isatty(fileno(stream)) != 0 && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

std::string coloured(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::size_t stop = end == std::string::npos ? text.size() : end;
    result += coloured_line(std::string_view(text).substr(at, stop - at));
    if (end != std::string::npos) result += '\n';
    at = stop + 1;
  }
  return result;
}

void print_coloured(const std::string& text) {
  const char* const no_color = std::getenv("NO_COLOR");
  const bool wanted = is_capable_terminal(stdout) && (no_color == nullptr || no_color[0] == '\0');
  const std::string& shown = wanted ? coloured(text) : text;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

}  // namespace qkcts::cli
