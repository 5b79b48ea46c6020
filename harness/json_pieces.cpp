// SPDX-License-Identifier: Apache-2.0
#include "harness/json_pieces.hpp"

#include <fmt/format.h>

#include <string_view>

namespace qkcts {
namespace {

std::string indented(const Json& value, std::size_t level) {
  // Paths and words of the command line may hold any bytes; everything else is clean already.
  const std::string text = value.dump(1, ' ', false, Json::error_handler_t::replace);
  std::string moved;
  moved.reserve(text.size() + text.size() / 4);
  for (const char c : text) {  // within a string there is no end of a line
    moved += c;
    if (c == '\n') moved.append(level, ' ');
  }
  return moved;
}

}  // namespace

void write_json_list(const TextSink& sink, std::size_t level, const std::function<void(const JsonSink& sink)>& write) {
  const std::string line = "\n" + std::string(level, ' ');
  bool some = false;
  write([&](const Json& item) {
    sink((some ? "," : "[") + line + " " + indented(item, level + 1));
    some = true;
  });
  sink(some ? line + "]" : "[]");
}

void write_json_object(const TextSink& sink, std::size_t level, const Json& object, const LateMembers& late) {
  const std::string line = "\n" + std::string(level, ' ');
  std::string_view before = "{";
  for (const auto& [key, value] : object.items()) {
    sink(fmt::format("{}{} {}: ", before, line, Json(key).dump()));
    before = ",";
    if (const auto written = late.find(key); written != late.end()) {
      written->second(level + 1);
    } else {
      sink(indented(value, level + 1));
    }
  }
  sink(object.empty() ? "{}" : line + "}");
}

}  // namespace qkcts
