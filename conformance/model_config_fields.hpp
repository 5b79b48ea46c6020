// SPDX-License-Identifier: Apache-2.0
// The keys of one configuration object, with a record of what became of each.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "conformance/json.hpp"
#include "conformance/model_config.hpp"

namespace qkcts {

class ConfigFields {
 public:
  // `place` is where the object stands in the file ("/text_config"; empty: the file itself).
  ConfigFields(const Json& object, std::string_view origin, std::string_view place)
      : object_(object), origin_(origin), place_(place) {}

  // Keys may lead into objects: "attn_config/clip_qkv".
  // The value, or nullptr if the key is missing or null. has() tells a null from a missing key.
  const Json* find(std::string_view key) const;
  bool has(std::string_view key) const;
  // As find(), of that type; throws InputError if it is something else.
  std::optional<double> number(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;

  // What became of a key, by its whole path. A fate of an object covers every key inside it.
  void use(std::string_view key, std::string_view clause);
  void pass_over(std::string_view key, std::string_view why);
  bool seen(std::string_view key) const { return record_.find(key) != record_.end(); }

  [[noreturn]] void refuse(std::string_view key, std::string_view reason) const;

  // Every key that is neither used nor passed over must be irrelevant by name; throws InputError for the first that is
  // not. `table` holds "irrelevant", whole names and beginnings that end with '*', and "harmless", names with a value;
  // `nested` the objects that are looked into.
  void settle_leftover(const Json& table, const std::set<std::string>& nested, std::string_view family);

  // Sorted by the path of the key, which is not the order of the file.
  void append_to(std::vector<ModelConfigField>& used, std::vector<ModelConfigField>& ignored) const;

 private:
  const Json* at(std::string_view key) const;  // nullptr: missing
  struct Fate {
    bool used = false;
    std::string text;
  };
  const Json& object_;
  std::string origin_;
  std::string place_;
  std::map<std::string, Fate, std::less<>> record_;
};

}  // namespace qkcts
