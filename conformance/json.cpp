// SPDX-License-Identifier: Apache-2.0
#include "conformance/json.hpp"

#include <charconv>
#include <cmath>
#include <istream>
#include <iterator>
#include <memory>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "conformance/contract.hpp"
#include "conformance/file.hpp"
#include "conformance/json_in_parts.hpp"

namespace qkcts {
namespace {

constexpr int deepest = 64;

template <class Character>
std::string place(Character character, Character end, std::size_t byte) {
  std::size_t line = 1;
  std::size_t column = 1;
  for (std::size_t i = 0; i + 1 < byte && character != end; ++i, ++character) {
    ++column;
    if (*character == '\n') {
      ++line;
      column = 1;
    }
  }
  return fmt::format("{}:{}", line, column);
}

// Keeps a message one line.
std::string printable(std::string_view text) {
  std::string line;
  for (const char c : text) line += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  return line;
}

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..." without the exception's name and
// place.
std::string reason_of(const Json::exception& error) {
  std::string_view what = error.what();
  if (const std::size_t end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
  if (what.substr(0, 14) == "parse error at")
    if (const std::size_t end = what.find(": "); end != std::string_view::npos) what.remove_prefix(end + 2);
  return printable(what);
}

// An object or array that the parser is in.
struct Open {
  bool is_array;
  std::size_t values;          // begun so far
  std::string key;             // the last one
  std::set<std::string> keys;  // of an object
};

// JSON pointer to the innermost one.
std::string pointer_to(const std::vector<Open>& open) {
  std::string pointer;
  for (std::size_t i = 0; i + 1 < open.size(); ++i)
    pointer += "/" + (open[i].is_array ? std::to_string(open[i].values - 1) : printable(open[i].key));
  return pointer.empty() ? "/" : pointer;
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

// `parse` reads the document, `place_of` says where in it a byte is.
Json parsed_in_parts(std::string_view origin, std::string_view key, const std::function<void(const Json& item)>& take,
                     const std::function<Json(const Json::parser_callback_t& watch)>& parse,
                     const std::function<std::string(std::size_t byte)>& place_of) {
  std::vector<Open> open;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (depth >= deepest) throw InputError(fmt::format("{}: nested deeper than {} levels", origin, deepest));
        if (!open.empty()) ++open.back().values;
        open.push_back({event == Json::parse_event_t::array_start, 0, {}, {}});
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        open.pop_back();
        if (take && event == Json::parse_event_t::object_end && open.size() == 2 && open[1].is_array &&
            !open[0].is_array && open[0].key == key) {
          take(parsed);
          return false;  // it is not kept
        }
        break;
      case Json::parse_event_t::value:
        if (!open.empty()) ++open.back().values;
        break;
      case Json::parse_event_t::key:
        open.back().key = parsed.get<std::string>();
        if (!open.back().keys.insert(open.back().key).second)
          throw InputError(fmt::format("{}: {}: key \"{}\" occurs twice in one object", origin, pointer_to(open),
                                       printable(open.back().key)));
        break;
    }
    return true;
  };
  try {
    return parse(watch);
  } catch (const Json::parse_error& error) {
    throw InputError(fmt::format("{}:{}: {}", origin, place_of(error.byte), reason_of(error)));
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("{}: {}", origin, reason_of(error)));
  }
}

}  // namespace

Json parse_json(std::string_view text, std::string_view origin) {
  return parse_json_in_parts(text, origin, {}, nullptr);
}

Json parse_json_in_parts(std::string_view text, std::string_view origin, std::string_view key,
                         const std::function<void(const Json& item)>& take) {
  return parsed_in_parts(
      origin, key, take, [&](const auto& watch) { return Json::parse(text.begin(), text.end(), watch); },
      [&](std::size_t byte) { return place(text.begin(), text.end(), byte); });
}

Json parse_json_file_in_parts(const std::string& path, std::uint64_t longest, std::string_view key,
                              const std::function<void(const Json& item)>& take) {
  const std::unique_ptr<std::istream> file = open_text_file(path, longest);
  return parsed_in_parts(
      path, key, take, [&](const auto& watch) { return Json::parse(*file, watch); },
      [&](std::size_t byte) {
        file->clear();
        file->seekg(0);
        return place(std::istreambuf_iterator<char>(*file), {}, byte);
      });
}

std::string canonical_text(const Json& value) {
  std::string text;
  append(value, text);
  return text;
}

}  // namespace qkcts
