// SPDX-License-Identifier: Apache-2.0
#include "conformance/json.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "conformance/contract.hpp"
#include "conformance/file.hpp"
#include "conformance/json_in_parts.hpp"

namespace qkcts {
namespace {

TEST(CanonicalText, SortsKeysAndWritesShortestNumbers) {
  EXPECT_EQ(canonical_text(parse_json(R"( {"b": [1, 2.50, null, true], "a": {"z": "\u00e9\n", "y": 1e-6}} )", "x")),
            R"({"a":{"y":1e-06,"z":"é\n"},"b":[1,2.5,null,true]})");
  EXPECT_EQ(canonical_text(Json(1000000.0)), canonical_text(Json(1e6)));
  EXPECT_EQ(canonical_text(Json(-0.0)), "0");
  EXPECT_THROW(canonical_text(Json(std::nan(""))), InputError);
}

TEST(CanonicalText, NumbersReadBackToTheSameBits) {
  std::uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const double value = std::bit_cast<double>(state);
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(parse_json(canonical_text(Json(value)), "x").get<double>(), value);
  }
}

TEST(ParseJson, CountsLinesAndColumns) {
  try {
    parse_json("{\n  \"a\": 1,\n  b\n}", "file");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("file:3:3: ", 0), 0U) << error.what();
  }
}

TEST(ParseJson, KeysMayRepeatInDifferentObjects) {
  EXPECT_NO_THROW(parse_json(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})", "x"));
  EXPECT_THROW(parse_json(R"({"b": [{"a": 1, "a": 2}]})", "x"), InputError);
}

TEST(ParseJson, ARepeatedKeyIsNamedWithItsObject) {
  const auto refusal = [](const char* text) -> std::string {
    try {
      parse_json(text, "file");
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(R"({"a": 1, "a": 2})"), "file: /: key \"a\" occurs twice in one object");
  EXPECT_EQ(refusal(R"({"q_norm": {"eps": 1, "root": {}, "eps": 2}})"),
            "file: /q_norm: key \"eps\" occurs twice in one object");
  // Elements before it, whatever they are, count.
  EXPECT_EQ(refusal(R"({"g": [1, [2, 3], {"a": 1}, {"z": [], "b": {"c": 1, "c": 1}}]})"),
            "file: /g/3/b: key \"c\" occurs twice in one object");
  EXPECT_EQ(refusal(R"([{"line\nbreak": 1, "line\nbreak": 1}])"),
            "file: /0: key \"line break\" occurs twice in one object");
}

// What is handed over, what is returned, and what is said of a fault.
std::string told(const std::function<Json(const std::function<void(const Json& item)>& take)>& parse) {
  std::string items;
  try {
    const Json rest = parse([&](const Json& item) { items += item.dump() + "\n"; });
    return items + rest.dump();
  } catch (const InputError& error) {
    return items + error.what();
  }
}

TEST(ParseJson, AFileIsReadInPartsAsItsTextIs) {
  const std::string path = testing::TempDir() + "in_parts." + std::to_string(::getpid()) + ".json";
  for (const std::string text :
       {R"({"a": 1, "list": [{"b": 2}, {"b": [3, {"c": 4}]}], "other": [{"d": 5}]})", "{\n \"list\": [{},\n  {b}]}",
        R"({"list": [{"b": 2}, {"b": 1, "b": 2}]})", R"({"list": [{"b": 2})", R"({"list": []} more)", "", "7"}) {
    write_file_atomically(path, text);
    EXPECT_EQ(told([&](const auto& take) { return parse_json_file_in_parts(path, 1000, "list", take); }),
              told([&](const auto& take) { return parse_json_in_parts(text, path, "list", take); }));
  }
  EXPECT_NE(told([&](const auto& take) {
              return parse_json_in_parts(R"({"list": [{"b": 2}]})", "x", "list", take);
            }).find("{\"b\":2}\n{\"list\":[]}"),
            std::string::npos);
  write_file_atomically(path, std::string(1001, ' '));
  EXPECT_NE(told([&](const auto& take) {
              return parse_json_file_in_parts(path, 1000, "list", take);
            }).find("is longer than 1000 bytes"),
            std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace qkcts
