// SPDX-License-Identifier: Apache-2.0
// Files that a program with other intentions could have made. Each is one clear error, never a crash of this process.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <set>

#include "vectors/corpus_reader.hpp"
#include "vectors/counter_generator.hpp"
#include "vectors/hdf5_library.hpp"
#include "vectors/sample_golden.hpp"
#include "vectors/schema.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts {
namespace {

using hdf5::Handle;

class HostileFile : public testing::Test {
 protected:
  HostileFile() {
    golden_ = sample_golden("clause_kv_lengths", "padded", Format::bfloat16, "2,2,1,3,4,8,6");
    path_ = write_corpus(folder_, "good.h5", {golden_});
    group_ = "cases/" + golden_.input.slug;
    bytes_ = file_bytes(path_);
  }

  // What the user sees: the check in a child first, then the reader.
  static std::string outcome(const std::string& path) {
    try {
      check_untrusted_corpus(path);
      const CorpusReader reader(path);
      std::string digests = reader.info().digest;
      for (const std::string& slug : reader.slugs()) digests += reader.read(slug).digest;
      return "content " + digests;
    } catch (const InputError& error) {
      return error.what();
    }
  }

  std::string outcome_of_bytes(const std::string& bytes) {
    write_bytes(folder_.file("changed.h5"), bytes);
    return outcome(folder_.file("changed.h5"));
  }

  // The file after an edit with the library's own calls; digests are left as they are.
  std::string outcome_of_edit(const std::function<void(hid_t file)>& edit) {
    const std::string changed = folder_.file("changed.h5");
    write_bytes(changed, bytes_);
    {
      const Handle file(H5Fopen(changed.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
      edit(file);
    }
    return outcome(changed);
  }

  static hid_t vector_space(hsize_t count) { return H5Screate_simple(1, &count, nullptr); }

  void replace_dataset(hid_t file, const std::string& name, hid_t type, std::vector<hsize_t> extents,
                       hid_t list) const {
    const std::string object = group_ + "/" + name;
    H5Ldelete(file, object.c_str(), H5P_DEFAULT);
    const Handle space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
    const Handle made(H5Dcreate2(file, object.c_str(), type, space, H5P_DEFAULT, list, H5P_DEFAULT), H5Dclose);
    ASSERT_TRUE(made.valid());
  }

  void replace_attribute(hid_t file, const std::string& object, const char* name, hid_t type, hsize_t count,
                         const void* data) const {
    const Handle owner(H5Oopen(file, object.c_str(), H5P_DEFAULT), H5Oclose);
    H5Adelete(owner, name);
    const Handle space(count == 0 ? H5Screate(H5S_SCALAR) : vector_space(count), H5Sclose);
    const Handle made(H5Acreate2(owner, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    ASSERT_TRUE(made.valid());
    ASSERT_GE(H5Awrite(made, type, data), 0);
  }

  TemporaryFolder folder_;
  GoldenCase golden_;
  std::string path_, group_, bytes_;
};

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not contain \"" << part << "\"";
}

TEST_F(HostileFile, ControlIsAccepted) {
  EXPECT_TRUE(contains(outcome(path_), "content "));
  EXPECT_EQ(outcome_of_edit([](hid_t) {}), outcome(path_));
}

TEST_F(HostileFile, TruncatedAnywhere) {
  std::set<std::size_t> lengths;
  for (std::size_t i = 0; i < 2048; i += 32) lengths.insert(i);
  for (std::size_t i = 1; i <= 200; ++i) lengths.insert(bytes_.size() * i / 201);
  for (std::size_t i = 1; i <= 16; ++i) lengths.insert(bytes_.size() - i);
  for (const std::size_t length : lengths)
    EXPECT_FALSE(contains(outcome_of_bytes(bytes_.substr(0, length)), "content ")) << "cut to " << length << " bytes";
}

// 1000, or as many as the environment asks for (CTest label fuzz).
std::uint64_t mutation_count() {
  const char* text = std::getenv("QKCTS_MUTATIONS");
  return text == nullptr ? 1000 : std::strtoull(text, nullptr, 10);
}

TEST_F(HostileFile, MutatedBytesGiveTheSameContentOrAnError) {
  const std::uint64_t count = mutation_count();
  const GoldenCase later = golden_with_excluded_keys(Format::bfloat16);
  const std::string originals[] = {bytes_,
                                   file_bytes(write_corpus(folder_, "later.h5", {later}))};  // of either version
  const std::string contents[] = {outcome_of_bytes(originals[0]), outcome_of_bytes(originals[1])};
  for (const std::string& content : contents) ASSERT_TRUE(contains(content, "content "));
  const RandomStream random(2024, 0);
  std::uint64_t refused = 0, unharmed = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string& good = contents[i % 2];
    std::string changed = originals[i % 2];
    const std::uint64_t changes = 1 + random.below(8 * i, 3);
    for (std::uint64_t j = 0; j < changes; ++j) {
      char& byte = changed[random.below(8 * i + 2 * j + 1, changed.size())];
      const auto bit = static_cast<unsigned>(random.below(8 * i + 2 * j + 2, 9));
      byte = static_cast<char>(bit < 8 ? byte ^ (1 << bit) : random.below(i, 256));  // a flipped bit or any byte
    }
    const std::string result = outcome_of_bytes(changed);
    if (result == good) {
      ++unharmed;
    } else {
      ++refused;
      ASSERT_FALSE(contains(result, "content ")) << "mutation " << i << " was accepted with other content";
      ASSERT_EQ(result.rfind(folder_.file("changed.h5") + ":", 0), 0U) << result;
    }
  }
  EXPECT_GT(refused, count / 3);
  RecordProperty("unharmed", std::to_string(unharmed));
}

TEST_F(HostileFile, LinksThatAreNotPlain) {
  const auto external = outcome_of_edit([&](hid_t file) {
    const std::string q = group_ + "/inputs/q";
    H5Ldelete(file, q.c_str(), H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/", file, q.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_TRUE(contains(external, group_ + "/inputs/q: is a soft or external link"));
  const auto soft = outcome_of_edit(
      [&](hid_t file) { H5Lcreate_soft(("/" + group_).c_str(), file, "cases/twin", H5P_DEFAULT, H5P_DEFAULT); });
  EXPECT_TRUE(contains(soft, "cases/twin: is a soft or external link"));
  const auto hard = outcome_of_edit(
      [&](hid_t file) { H5Lcreate_hard(file, group_.c_str(), file, "cases/twin", H5P_DEFAULT, H5P_DEFAULT); });
  EXPECT_TRUE(contains(hard, "is linked more than once"));
  const auto cycle = outcome_of_edit(
      [&](hid_t file) { H5Lcreate_hard(file, "cases", file, "cases/again", H5P_DEFAULT, H5P_DEFAULT); });
  EXPECT_TRUE(contains(cycle, "is linked more than once"));
}

TEST_F(HostileFile, TypesThatPointElsewhere) {
  const Handle text(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(text, H5T_VARIABLE);
  const char* family = "padded";
  const auto variable = outcome_of_edit(
      [&](hid_t file) { replace_attribute(file, group_, schema::attribute::family, text, 0, &family); });
  EXPECT_TRUE(contains(variable, "attribute family is no fixed-length text"));
  const auto sequence = outcome_of_edit([&](hid_t file) {
    const Handle type(H5Tvlen_create(H5T_IEEE_F32LE), H5Tclose);
    replace_dataset(file, "inputs/q", type, {2, 2, 3, 8}, H5P_DEFAULT);
  });
  EXPECT_TRUE(contains(sequence, "has an element type that the format does not know"));
  const auto reference = outcome_of_edit([&](hid_t file) {
    replace_dataset(file, "inputs/q", H5T_STD_REF_OBJ, {2, 2, 3, 8}, H5P_DEFAULT);
  });
  EXPECT_TRUE(contains(reference, "has an element type that the format does not know"));
}

TEST_F(HostileFile, TypesAndShapesThatContradictTheContract) {
  const auto wide = outcome_of_edit([&](hid_t file) {
    replace_dataset(file, "inputs/q", H5T_IEEE_F32LE, {2, 2, 3, 8}, H5P_DEFAULT);
  });
  EXPECT_TRUE(contains(wide, "inputs/q: "));
  const auto big_endian =
      outcome_of_edit([&](hid_t file) { replace_dataset(file, "inputs/kv_len", H5T_STD_I32BE, {2}, H5P_DEFAULT); });
  EXPECT_TRUE(contains(big_endian, "inputs/kv_len: has an element type"));
  const auto longer = outcome_of_edit([&](hid_t file) {
    const Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    replace_dataset(file, "stages/output/value_hi", H5T_IEEE_F64LE, {2, 2, 3, 7}, list);
  });
  EXPECT_TRUE(contains(longer, "stages/output/value_hi: has another shape than the contract says"));
  const auto missing =
      outcome_of_edit([&](hid_t file) { H5Ldelete(file, (group_ + "/stages/lse/budget").c_str(), H5P_DEFAULT); });
  EXPECT_TRUE(contains(missing, "stages/lse/budget: is missing"));
  const auto foreign = outcome_of_edit([&](hid_t file) {
    const Handle made(H5Gcreate2(file, (group_ + "/inputs/extra").c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                      H5Gclose);
  });
  EXPECT_TRUE(contains(foreign, "inputs/extra: does not belong there"));
}

TEST_F(HostileFile, SizesBeyondReason) {
  const hsize_t huge = hsize_t{1} << 35U;
  const auto empty = outcome_of_edit([&](hid_t file) {
    replace_dataset(file, "stages/output/value_hi", H5T_IEEE_F64LE, {huge, huge}, H5P_DEFAULT);
  });
  EXPECT_TRUE(contains(empty, "is impossibly large"));
  const auto hollow = outcome_of_edit([&](hid_t file) {
    replace_dataset(file, "stages/output/value_hi", H5T_IEEE_F64LE, {1024, 1024, 1024}, H5P_DEFAULT);
  });
  EXPECT_TRUE(contains(hollow, "has no data"));
  const auto bomb = outcome_of_edit([&](hid_t file) {
    const Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    const hsize_t chunk[] = {16, 1024, 64};
    H5Pset_chunk(list, 3, chunk);
    H5Pset_shuffle(list);
    H5Pset_deflate(list, 9);
    H5Pset_fletcher32(list);
    replace_dataset(file, "stages/output/value_hi", H5T_IEEE_F64LE, {4096, 1024, 64}, list);
  });
  EXPECT_TRUE(contains(bomb, "has less data than it promises"));
  const std::int64_t shape[7] = {1, 1 << 20, 1, 1 << 20, 1 << 20, 1, 1};
  const auto extents = outcome_of_edit(
      [&](hid_t file) { replace_attribute(file, group_, schema::attribute::shape, H5T_STD_I64LE, 7, shape); });
  EXPECT_TRUE(contains(extents, group_));
  EXPECT_FALSE(contains(extents, "content "));
}

TEST_F(HostileFile, StorageThatTheFormatDoesNotKnow) {
  const auto with_list = [&](const std::function<void(hid_t)>& set) {
    return outcome_of_edit([&](hid_t file) {
      const Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
      set(list);
      replace_dataset(file, "inputs/kv_len", H5T_STD_I32LE, {2}, list);
    });
  };
  EXPECT_TRUE(contains(with_list([](hid_t list) { H5Pset_layout(list, H5D_COMPACT); }), "storage layout"));
  EXPECT_TRUE(contains(with_list([&](hid_t list) { H5Pset_external(list, "/etc/passwd", 0, 8); }), "outside the file"));
  const hsize_t chunk[] = {2};
  EXPECT_TRUE(contains(with_list([&](hid_t list) {
                         H5Pset_chunk(list, 1, chunk);
                         H5Pset_deflate(list, 6);
                       }),
                       "foreign filters"));
  EXPECT_TRUE(contains(with_list([&](hid_t list) {
                         H5Pset_chunk(list, 1, chunk);
                         H5Pset_deflate(list, 6);
                         H5Pset_shuffle(list);
                         H5Pset_fletcher32(list);
                       }),
                       "foreign filters"));
}

TEST_F(HostileFile, DigestsThatDoNotMatch) {
  // The bytes of the first value of `expected`, found by its neighbours, are not guarded by HDF5.
  const std::string zeros(64, '0');
  const Handle text(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(text, 64);
  const auto corpus = outcome_of_edit(
      [&](hid_t file) { replace_attribute(file, "/", schema::attribute::digest, text, 0, zeros.data()); });
  EXPECT_TRUE(contains(corpus, "digest of the corpus does not match"));
  const auto of_case = outcome_of_edit(
      [&](hid_t file) { replace_attribute(file, group_, schema::attribute::digest, text, 0, zeros.data()); });
  EXPECT_TRUE(contains(of_case, "digest"));
  const auto of_contract = outcome_of_edit([&](hid_t file) {
    replace_attribute(file, "contracts/clause_kv_lengths", schema::attribute::digest, text, 0, zeros.data());
  });
  EXPECT_TRUE(contains(of_contract, "contracts/clause_kv_lengths: digest does not match"));
  const auto value = outcome_of_edit([&](hid_t file) {
    const Handle data(H5Dopen2(file, (group_ + "/stages/lse/value_hi").c_str(), H5P_DEFAULT), H5Dclose);
    const double values[12] = {};
    ASSERT_GE(H5Dwrite(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
  });
  EXPECT_TRUE(contains(value, group_ + ": digest does not match"));
}

TEST_F(HostileFile, OtherHdf5FilesAreToldApart) {
  const std::string other = folder_.file("other.h5");
  { const Handle file(H5Fcreate(other.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose); }
  EXPECT_TRUE(contains(outcome(other), "is HDF5, but no qkcts corpus"));
  const std::uint32_t version = 99;
  const auto newer = outcome_of_edit(
      [&](hid_t file) { replace_attribute(file, "/", schema::attribute::format_version, H5T_STD_U32LE, 1, &version); });
  EXPECT_TRUE(contains(newer, "has format version 99, this program reads versions 1 to 4"));
}

}  // namespace
}  // namespace qkcts
