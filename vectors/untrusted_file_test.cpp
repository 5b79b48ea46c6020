// SPDX-License-Identifier: Apache-2.0
#include "vectors/untrusted_file.hpp"

#include <gtest/gtest.h>

#include "conformance/contract.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

std::string refusal(const std::string& path) {
  try {
    check_untrusted_corpus(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(UntrustedFile, AGoodFilePassesAndABadOneSaysWhy) {
  const TemporaryFolder folder;
  const std::string path =
      write_corpus(folder, "a.h5", {sample_golden("plain_sdpa", "gaussian", Format::binary32, "1,2,1,3,4,8,6")});
  EXPECT_EQ(refusal(path), "accepted");
  write_bytes(folder.file("bad.h5"), "not HDF5");
  EXPECT_EQ(refusal(folder.file("bad.h5")), folder.file("bad.h5") + ": is no HDF5 file");
  EXPECT_NE(refusal(folder.file("none.h5")).find("cannot be opened"), std::string::npos);
}

}  // namespace
}  // namespace qkcts
