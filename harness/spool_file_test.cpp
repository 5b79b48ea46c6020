// SPDX-License-Identifier: Apache-2.0
#include "harness/spool_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <string>
#include <string_view>

namespace qkcts {
namespace {

SpoolFile::Place put(SpoolFile& file, std::string_view text, SpoolFile::Place old = {}) {
  return file.put(std::as_bytes(std::span(text)), old);
}

std::string text_at(const SpoolFile& file, SpoolFile::Place place) {
  const std::vector<std::byte> bytes = file.get(place);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(SpoolFile, GivesBackWhatWasPut) {
  SpoolFile file;
  const auto first = put(file, "first"), second = put(file, "second");
  EXPECT_EQ(text_at(file, first), "first");
  EXPECT_EQ(text_at(file, second), "second");
  const auto shorter = put(file, "1st", first);
  EXPECT_EQ(shorter.start, first.start);
  const auto longer = put(file, "the second", second);
  EXPECT_EQ(text_at(file, shorter), "1st");
  EXPECT_EQ(text_at(file, longer), "the second");
}

TEST(SpoolFile, NothingTakesNoPlace) {
  SpoolFile file;
  const auto first = put(file, "first"), nothing = put(file, "");
  EXPECT_EQ(text_at(file, nothing), "");
  EXPECT_EQ(text_at(file, first), "first");
}

// From somewhere within the second text on: files of this process end there.
TEST(SpoolFile, WhatTheFileDoesNotTakeStaysInMemory) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  SpoolFile file;
  const std::string a(3000, 'a'), b(3000, 'b'), c(100, 'c'), d(4000, 'd');
  const auto at_a = put(file, a);
  const auto at_b = put(file, b), at_c = put(file, c);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(text_at(file, at_a), a);
  EXPECT_EQ(text_at(file, at_b), b);
  EXPECT_EQ(text_at(file, at_c), c);
  const auto at_d = put(file, d, at_b);
  EXPECT_EQ(text_at(file, at_d), d);
  EXPECT_EQ(text_at(file, put(file, c, at_a)), c) << "shorter, where the file holds the longer one";
  EXPECT_EQ(text_at(file, at_c), c);
}

}  // namespace
}  // namespace qkcts
