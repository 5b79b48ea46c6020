// SPDX-License-Identifier: Apache-2.0
#include "harness/adapter_library.hpp"

#include <gtest/gtest.h>

#include "harness/adapter_error.hpp"
#include "harness/adapter_runner.hpp"
#include "harness/test_adapters/test_adapters.hpp"

namespace qkcts {
namespace {

std::string load_fault(const std::string& path) {
  try {
    const AdapterLibrary library(path);
    return {};
  } catch (const AdapterError& error) {
    return error.what();
  }
}

TEST(AdapterLibrary, UsableLibraryIsLoadedAndDescribed) {
  EXPECT_EQ(load_fault(test_adapter("lying")), "");
  EXPECT_NE(AdapterLibrary(test_adapter("lying")).describe().find("\"name\": \"lying\""), std::string::npos);
}

TEST(AdapterLibrary, EachUnusableTableHasItsMessage) {
  EXPECT_NE(load_fault("/nonexistent/libnothing.so").find("cannot be loaded"), std::string::npos);
  EXPECT_NE(load_fault(test_adapter("odd_no_symbol")).find("exports no function qkcts_adapter"), std::string::npos);
  EXPECT_NE(load_fault(test_adapter("odd_major")).find("speaks ABI version 2, this program version 1"),
            std::string::npos);
  EXPECT_NE(load_fault(test_adapter("odd_short")).find("struct_size of its table is"), std::string::npos);
  EXPECT_NE(load_fault(test_adapter("odd_null_function")).find("null function"), std::string::npos);
  EXPECT_NE(load_fault(test_adapter("odd_null_table")).find("null pointer"), std::string::npos);
}

TEST(AdapterLibrary, LargerTableOfALaterMinorVersionIsAccepted) {
  qkcts_adapter_table table = AdapterLibrary(test_adapter("lying")).table();
  EXPECT_EQ(table_fault(&table), "");
  table.struct_size += 64;
  table.abi_minor += 1;
  EXPECT_EQ(table_fault(&table), "");
}

TEST(AdapterSpec, OptionsFollowTheQuestionMark) {
  const AdapterSpec spec = resolve_adapter(test_adapter("lying") + "?fault=nan,other=1");
  EXPECT_EQ(spec.path, test_adapter("lying"));
  EXPECT_EQ(spec.options, "fault=nan,other=1");
  EXPECT_THROW(resolve_adapter("no_such_adapter"), AdapterError);
  EXPECT_THROW(resolve_adapter("/nonexistent/lib.so"), AdapterError);
}

}  // namespace
}  // namespace qkcts
