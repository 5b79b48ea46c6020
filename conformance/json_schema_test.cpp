// SPDX-License-Identifier: Apache-2.0
#include "conformance/json_schema.hpp"

#include <gtest/gtest.h>

#include <span>
#include <stdexcept>

#include "conformance/contract.hpp"
#include "conformance/document.hpp"

namespace qkcts {

std::span<const Document> schema_documents();

namespace {

TEST(JsonSchema, EveryShippedSchemaCompiles) {
  for (const Document& document : schema_documents()) {
    const std::string name(document.name.substr(0, document.name.rfind(".schema")));
    EXPECT_THROW(require_schema(Json(1), name, "x"), InputError) << name << " accepts a bare number";
  }
  EXPECT_THROW(require_schema(Json(1), "absent", "x"), std::logic_error);
}

TEST(JsonSchema, RefusesLongStringsBeforeAnythingElse) {
  try {
    require_schema(Json{{"a", {1, std::string(5000, 'x')}}}, "contract", "x");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "x: /a/1: string is longer than 4096 bytes");
  }
}

}  // namespace
}  // namespace qkcts
