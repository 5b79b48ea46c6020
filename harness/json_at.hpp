// SPDX-License-Identifier: Apache-2.0
// A value inside a document that its schema has admitted, and where it stands, for what a schema cannot say.
#pragma once

#include <string>
#include <vector>

#include "conformance/contract.hpp"
#include "conformance/json.hpp"

namespace qkcts {

class JsonAt {
 public:
  JsonAt(const Json& document, std::string origin) : value_(&document), place_(std::move(origin) + ": ") {}
  // Of a document that is not held whole, what stands at this JSON pointer.
  static JsonAt part(const Json& value, const std::string& origin, const std::string& pointer) {
    return {value, origin + ": ", pointer};
  }

  JsonAt operator[](const std::string& key) const { return {value_->at(key), place_, "/" + key}; }
  std::vector<JsonAt> items() const {
    std::vector<JsonAt> list;
    list.reserve(value_->size());
    for (std::size_t i = 0; i < value_->size(); ++i) list.push_back({value_->at(i), place_, "/" + std::to_string(i)});
    return list;
  }

  const Json& json() const { return *value_; }
  bool is_null() const { return value_->is_null(); }
  bool has(const std::string& key) const { return value_->contains(key); }
  template <class T>
  T get() const {
    return value_->get<T>();
  }
  std::string text() const { return value_->get<std::string>(); }

  // Throws InputError "ORIGIN: /json/pointer: what".
  [[noreturn]] void refuse(const std::string& what) const { throw InputError(place_ + ": " + what); }

 private:
  JsonAt(const Json& value, const std::string& place, const std::string& step) : value_(&value), place_(place + step) {}

  const Json* value_;
  std::string place_;  // origin and JSON pointer
};

}  // namespace qkcts
