// SPDX-License-Identifier: Apache-2.0
#include "conformance/digest.hpp"

#include <gtest/gtest.h>

#include <span>

namespace qkcts {
namespace {

// FIPS 180-4 examples.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, PiecesGiveTheDigestOfTheWhole) {
  const std::string text(100000, 'q');
  Sha256 sha;
  for (std::size_t at = 0; at < text.size(); at += 997)
    sha.update(std::as_bytes(std::span(text).subspan(at, std::min<std::size_t>(997, text.size() - at))));
  EXPECT_EQ(sha.finish(), sha256_hex(text));
}

TEST(Sha256, FieldsDoNotRunTogether) {
  Sha256 left;
  left.update_field("ab");
  left.update_field("c");
  Sha256 right;
  right.update_field("a");
  right.update_field("bc");
  EXPECT_NE(left.finish(), right.finish());
}

TEST(Sha256, NumbersAreEightBytesLittleEndian) {
  Sha256 sha;
  sha.update_number(0x0102);
  EXPECT_EQ(sha.finish(), sha256_hex(std::string("\x02\x01\0\0\0\0\0\0", 8)));
}

}  // namespace
}  // namespace qkcts
