// SPDX-License-Identifier: Apache-2.0
#include "conformance/json.hpp"

#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "conformance/contract.hpp"

namespace qkcts {
namespace {

constexpr int deepest = 64;

std::string place(std::string_view text, std::size_t byte) {
  std::size_t line = 1;
  std::size_t column = 1;
  for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    ++column;
    if (text[i] == '\n') {
      ++line;
      column = 1;
    }
  }
  return fmt::format("{}:{}", line, column);
}

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..." without the exception's name and
// place.
std::string reason_of(const Json::exception& error) {
  std::string_view what = error.what();
  if (const std::size_t end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
  if (what.substr(0, 14) == "parse error at")
    if (const std::size_t end = what.find(": "); end != std::string_view::npos) what.remove_prefix(end + 2);
  std::string reason;
  for (const char c : what) reason += static_cast<unsigned char>(c) < 32 ? ' ' : c;  // keep it one line
  return reason;
}

void append_number(double value, std::string& text) {
  if (!std::isfinite(value)) throw InputError("JSON has no NaN and no infinity");
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, value + 0.0);  // -0 is written as 0
  text.append(digits, end.ptr);
}

void append(const Json& value, std::string& text) {
  if (value.is_object()) {
    text += '{';
    for (auto item = value.begin(); item != value.end(); ++item) {
      if (item != value.begin()) text += ',';
      text += Json(item.key()).dump() + ":";
      append(item.value(), text);
    }
    text += '}';
  } else if (value.is_array()) {
    text += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i != 0) text += ',';
      append(value[i], text);
    }
    text += ']';
  } else if (value.is_number_float()) {
    append_number(value.get<double>(), text);
  } else {
    text += value.dump();
  }
}

}  // namespace

Json parse_json(std::string_view text, std::string_view origin) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (depth >= deepest) throw InputError(fmt::format("{}: nested deeper than {} levels", origin, deepest));
        if (event == Json::parse_event_t::object_start) keys.emplace_back();
        break;
      case Json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!keys.back().insert(parsed.get<std::string>()).second)
          throw InputError(fmt::format("{}: key \"{}\" occurs twice in one object", origin, parsed.get<std::string>()));
        break;
      default:
        break;
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error& error) {
    throw InputError(fmt::format("{}:{}: {}", origin, place(text, error.byte), reason_of(error)));
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("{}: {}", origin, reason_of(error)));
  }
}

std::string canonical_text(const Json& value) {
  std::string text;
  append(value, text);
  return text;
}

}  // namespace qkcts
