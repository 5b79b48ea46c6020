// SPDX-License-Identifier: Apache-2.0
#include "vectors/hdf5_file.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/contract.hpp"
#include "conformance/file.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

std::vector<std::byte> pattern(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 256);
  return bytes;
}

void write_everything(const std::string& path) {
  Hdf5Output file(path);
  file.create_group("group");
  file.create_group("group/inner");
  for (int i = 0; i < 10; ++i) {
    const auto type = static_cast<StoredType>(i);
    const std::string name = "group/t" + std::to_string(i);
    file.write_dataset(name, type, {3, 5}, pattern(15 * stored_size(type)));
    file.write_dataset(name + "_large", type, {300, 500}, pattern(150000 * stored_size(type)));
    file.write_text(name, "text", i == 0 ? "" : "number " + std::to_string(i));
  }
  file.write_texts("", "list", {"a", "", "longer"});
  const std::vector<std::byte> numbers = pattern(24);
  file.write_numbers("group/inner", "numbers", StoredType::binary64, numbers);
  file.close();
}

TEST(Hdf5File, EveryTypeComesBackBitForBit) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.h5");
  write_everything(path);
  const Hdf5Input file(path);
  for (int i = 0; i < 10; ++i) {
    const auto type = static_cast<StoredType>(i);
    const std::string name = "group/t" + std::to_string(i);
    const StoredDataset small = file.describe(name);
    EXPECT_EQ(small.type, type);
    EXPECT_EQ(small.extents, (std::vector<std::uint64_t>{3, 5}));
    EXPECT_EQ(file.read(name), pattern(15 * stored_size(type)));
    EXPECT_EQ(file.read(name + "_large"), pattern(150000 * stored_size(type)));
    EXPECT_EQ(file.read_text(name, "text"), i == 0 ? "" : "number " + std::to_string(i));
  }
  EXPECT_EQ(file.read_texts("", "list"), (std::vector<std::string>{"a", "", "longer"}));
  EXPECT_EQ(file.read_numbers("group/inner", "numbers", StoredType::binary64, 3), pattern(24));
  ASSERT_EQ(file.members("").size(), 1U);
  EXPECT_TRUE(file.members("")[0].is_group);
  EXPECT_EQ(file.members("group").size(), 21U);
  EXPECT_EQ(file.members("group")[0].name, "inner");
}

TEST(Hdf5File, EqualCallsGiveEqualBytes) {
  const TemporaryFolder folder;
  write_everything(folder.file("a.h5"));
  write_everything(folder.file("b.h5"));
  const std::string bytes = file_bytes(folder.file("a.h5"));
  EXPECT_GT(bytes.size(), 10000U);
  EXPECT_TRUE(bytes == file_bytes(folder.file("b.h5")));
}

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Hdf5File, RefusalsNameFileAndObject) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.h5");
  write_everything(path);
  const Hdf5Input file(path);
  EXPECT_EQ(refusal([&] { static_cast<void>(file.describe("group/nothing")); }), path + ": /group/nothing: is missing");
  EXPECT_EQ(refusal([&] { static_cast<void>(file.describe("group/inner")); }), path + ": /group/inner: is no dataset");
  EXPECT_EQ(refusal([&] { static_cast<void>(file.members("group/t1")); }), path + ": /group/t1: is no group");
  EXPECT_EQ(refusal([&] { static_cast<void>(file.describe("group/t1/x")); }), path + ": /group/t1: is no group");
  EXPECT_NE(refusal([&] { static_cast<void>(file.read_text("group", "none")); }).find("missing"), std::string::npos);
  EXPECT_NE(refusal([&] { static_cast<void>(file.read_text("", "list")); }).find("single"), std::string::npos);
  EXPECT_NE(refusal([&] { static_cast<void>(file.read_text("group/inner", "numbers")); }).find("fixed-length"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              static_cast<void>(file.read_numbers("group/inner", "numbers", StoredType::binary64, 2));
            }).find("another type or length"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              static_cast<void>(file.read_numbers("group/inner", "numbers", StoredType::int64, 3));
            }).find("another type or length"),
            std::string::npos);
}

TEST(Hdf5File, WhatCannotBeOpenedIsOneClearError) {
  const TemporaryFolder folder;
  EXPECT_NE(refusal([&] { Hdf5Input file(folder.file("none.h5")); }).find("cannot be opened"), std::string::npos);
  EXPECT_NE(refusal([&] { Hdf5Input file(folder.file("")); }).find("no regular file"), std::string::npos);
  write_bytes(folder.file("text.h5"), "this is no HDF5");
  EXPECT_EQ(refusal([&] { Hdf5Input file(folder.file("text.h5")); }), folder.file("text.h5") + ": is no HDF5 file");
  write_bytes(folder.file("empty.h5"), "");
  EXPECT_NE(refusal([&] { Hdf5Input file(folder.file("empty.h5")); }).find("is no HDF5 file"), std::string::npos);
  EXPECT_THROW(Hdf5Output file(folder.file("no/such/folder.h5")), WriteError);
  EXPECT_THROW(Hdf5Output file("/dev/full"), WriteError);
}

}  // namespace
}  // namespace qkcts
