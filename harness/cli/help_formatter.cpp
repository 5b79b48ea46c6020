// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/help_formatter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/wrapped_text.hpp"

namespace qkcts::cli {
namespace {

constexpr std::size_t description_column = 26;
// The end of a range that has none, as the options write it: 1 << 30.
constexpr std::string_view no_limit = "1073741824";

std::string row(const std::string& left, const std::string& description) {
  std::string head = "  " + left;
  if (text_columns(head) + 2 > description_column)
    return head + "\n" + wrapped(std::string(description_column, ' '), description);
  head.resize(head.size() + description_column - text_columns(head), ' ');
  return wrapped(head, description);
}

// CLI11 writes a type and, behind colons, what is checked: "INT:INT in [1 - 10000]", "TEXT:{none,all}".
struct ValueWords {
  std::string type, limits;
};

ValueWords value_words(const std::string& type_name) {
  const std::size_t colon = std::min(type_name.find(':'), type_name.size());
  ValueWords words{type_name.substr(0, colon), {}};
  const std::string check = type_name.substr(std::min(colon + 1, type_name.size()));
  const std::size_t bracket = check.find('['), dash = check.find(" - ");
  if (!check.empty() && check.front() == '{') {
    words.type = check;
  } else if (bracket != std::string::npos && dash != std::string::npos) {
    const std::string least = check.substr(bracket + 1, dash - bracket - 1);
    const std::string most = check.substr(dash + 3, std::min(check.find(']', dash), check.size()) - dash - 3);
    words.limits = most == no_limit ? least + " or more" : fmt::format("{} to {}", least, most);
  } else if (check == "POSITIVE") {
    words.limits = "above 0";
  } else if (check == "NONNEGATIVE") {
    words.limits = "0 or more";
  }
  if (words.type == "INT" || words.type == "UINT") words.type = "N";
  if (words.type == "FLOAT") words.type = "X";
  return words;
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());  // they are kept by address
  return fmt::format("{}", fmt::join(names, ", "));
}

// A command that is too long is broken as a shell reads it.
std::string broken_command(const std::string& line) {
  const std::string indent(line.find_first_not_of(' ') + 4, ' ');
  std::string result, rest = line;
  while (text_columns(rest) > terminal_columns) {
    const std::size_t end = rest.rfind(' ', terminal_columns - 2);
    if (end == std::string::npos || end < indent.size()) break;
    result += rest.substr(0, end) + " \\\n";
    rest = indent + rest.substr(end + 1);
  }
  return result + rest + "\n";
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const ValueWords words = value_words(option->get_type_name());
    std::vector<std::string> remarks;
    if (!words.limits.empty()) remarks.push_back(words.limits);
    if (!option->get_default_str().empty()) remarks.push_back("default " + option->get_default_str());
    if (option->get_required() && !is_positional) remarks.emplace_back("required");
    if (!option->get_needs().empty()) remarks.push_back("with " + names_of(option->get_needs()));
    if (!option->get_excludes().empty()) remarks.push_back("not with " + names_of(option->get_excludes()));
    std::string left = is_positional ? usage_name(option) : make_option_name(option, false);
    if (!is_positional && option->get_type_size() != 0) left += " " + words.type;
    return row(left, remarks.empty() ? option->get_description()
                                     : fmt::format("{} ({})", option->get_description(), fmt::join(remarks, "; ")));
  }

  std::string make_option_usage(const CLI::Option* option) const override {
    const std::string name = usage_name(option);
    return option->get_required() ? name : "[" + name + "]";
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string text = CLI::Formatter::make_usage(app, std::move(name));
    std::replace(text.begin(), text.end(), '\n', ' ');
    return "\n" + wrapped("", text, 4);
  }

  std::string make_description(const CLI::App* app) const override { return wrapped("", app->get_description()); }
  std::string make_subcommand(const CLI::App* sub) const override {
    return row(sub->get_name(), sub->get_description());
  }

  std::string make_footer(const CLI::App* app) const override {
    const std::string footer = app->get_footer();
    std::string result;
    for (std::size_t at = 0; at < footer.size();) {
      const std::size_t end = std::min(footer.find('\n', at), footer.size());
      const std::string line = footer.substr(at, end - at);
      const bool is_command = line.find("qkcts ") != std::string::npos && line.rfind("Exit code", 0) != 0;
      result += is_command ? broken_command(line) : wrapped("", line, 2);
      at = end + 1;
    }
    return result;
  }

 private:
  // What follows a name that stands for several words is said by option_text().
  static std::string usage_name(const CLI::Option* option) {
    if (!option->get_option_text().empty()) return option->get_name(true, false) + option->get_option_text();
    const bool is_list = option->get_expected_max() >= CLI::detail::expected_max_vector_size;
    return option->get_name(true, false) + (is_list ? "..." : "");
  }
};

}  // namespace

void format_help(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>());
}

}  // namespace qkcts::cli
