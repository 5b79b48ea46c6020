// SPDX-License-Identifier: Apache-2.0
#include "vectors/format_version.hpp"

#include <gtest/gtest.h>

#include "vectors/case_digest.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/hdf5_library.hpp"
#include "vectors/sample_golden.hpp"
#include "vectors/schema.hpp"

namespace qkcts {
namespace {

using hdf5::Handle;

GoldenCase first_version_case() {
  return sample_golden("clause_kv_lengths", "padded", Format::bfloat16, "2,2,1,3,4,8,6");
}

std::string refusal(const std::string& path) {
  try {
    const CorpusReader reader(path);
    for (const std::string& slug : reader.slugs()) static_cast<void>(reader.read(slug));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

void set_version(const std::string& path, std::uint32_t version) {
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
  const Handle attribute(H5Aopen(file, schema::attribute::format_version, H5P_DEFAULT), H5Aclose);
  ASSERT_GE(H5Awrite(attribute, H5T_NATIVE_UINT32, &version), 0);
}

TEST(FormatVersion, IsTheSmallestThatKnowsTheContract) {
  qkcts_contract terms = shipped_contract("clause_kv_lengths").terms;
  EXPECT_EQ(format_version_of(terms), 1U);
  terms.softmax.hidden_values = QKCTS_HIDDEN_EXCLUDED;
  EXPECT_EQ(format_version_of(terms), 2U);
  terms.softmax.hidden_values = QKCTS_HIDDEN_FINITE;
  terms.q_range.multiplier = 1;  // at its default a clause says nothing new
  EXPECT_EQ(format_version_of(terms), 1U);
  terms.q_range.multiplier = 2;
  EXPECT_EQ(format_version_of(terms), 2U);
}

// Each new clause has a shipped contract of its own; what was there before stays a file of version 1.
TEST(FormatVersion, OfEveryShippedContract) {
  std::size_t later = 0;
  for (const std::string& name : shipped_contracts())
    if (format_version_of(shipped_contract(name).terms) == 2) ++later;
  EXPECT_GE(later, 26U);
  EXPECT_EQ(format_version_of(shipped_contract("qwen3_rmsnorm").terms), 1U);
  EXPECT_EQ(format_version_of(shipped_contract("clause_temperature_softcap").terms), 1U);
  EXPECT_EQ(format_version_of(shipped_contract("clause_heads_tile").terms), 2U);
}

TEST(FormatVersion, AFileSaysIt) {
  const TemporaryFolder folder;
  const GoldenCase old = first_version_case();
  const GoldenCase later = golden_with_excluded_keys(Format::bfloat16);
  EXPECT_EQ(CorpusReader(write_corpus(folder, "1.h5", {old})).info().format_version, 1);
  EXPECT_EQ(CorpusReader(write_corpus(folder, "2.h5", {later})).info().format_version, 2);
  GoldenCase renamed = old;
  renamed.input.slug = "another";
  EXPECT_EQ(CorpusReader(write_corpus(folder, "3.h5", {renamed, later})).info().format_version, 2);
}

TEST(FormatVersion, AFileThatSaysAnotherIsRefused) {
  const TemporaryFolder folder;
  const std::string old = write_corpus(folder, "1.h5", {first_version_case()});
  const std::string later = write_corpus(folder, "2.h5", {golden_with_excluded_keys(Format::bfloat16)});
  EXPECT_EQ(refusal(old), "accepted");
  EXPECT_EQ(refusal(later), "accepted");
  set_version(old, 2);
  set_version(later, 1);
  EXPECT_EQ(refusal(old), old + ": has format version 2, but its contracts make it version 1");
  EXPECT_EQ(refusal(later), later + ": has format version 1, but its contracts make it version 2");
  for (const std::uint32_t version : {0U, 3U}) {
    set_version(old, version);
    EXPECT_NE(refusal(old).find("this program reads versions 1 to 2"), std::string::npos);
  }
}

// Neither the writer nor the reader nor HDF5 may touch a payload, a sign or the signalling bit.
TEST(FormatVersion, EveryBitOfANaNSurvives) {
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16}) {
    SCOPED_TRACE(parameters(format).name);
    const TemporaryFolder folder;
    const GoldenCase golden = golden_with_excluded_keys(format);
    ASSERT_EQ(case_fault(golden.input), "");
    const CorpusReader reader(write_corpus(folder, "a.h5", {golden}));
    const GoldenCase read = reader.read(golden.input.slug);
    for (const Input input : {Input::k, Input::v})
      EXPECT_EQ(read.input.inputs.at(input).bytes, golden.input.inputs.at(input).bytes) << input_name(input);
    EXPECT_EQ(read.digest, case_digest(golden));
    const ProvenStage& k_norm = read.stages[QKCTS_STAGE_K_NORM].values;
    EXPECT_EQ(k_norm.rule, golden.stages[QKCTS_STAGE_K_NORM].values.rule);
    EXPECT_EQ(k_norm.expected, golden.stages[QKCTS_STAGE_K_NORM].values.expected);
  }
}

TEST(FormatVersion, OneBitOfAPayloadChangesTheDigest) {
  GoldenCase golden = golden_with_excluded_keys(Format::binary32);
  const std::string digest = case_digest(golden);
  Tensor& v = *golden.input.inputs.tensors[static_cast<std::size_t>(Input::v)];
  v.set_pattern(3 * 6, v.pattern(3 * 6) ^ 4);
  EXPECT_NE(case_digest(golden), digest);
}

TEST(FormatVersion, ANaNThatAQuerySeesIsRefused) {
  const TemporaryFolder folder;
  GoldenCase golden = golden_with_excluded_keys(Format::binary32);
  Tensor& v = *golden.input.inputs.tensors[static_cast<std::size_t>(Input::v)];
  v.set_pattern(4 * 6, 0x7fc00000);  // key 0 of batch entry 1, where every key is seen
  EXPECT_NE(refusal(write_corpus(folder, "a.h5", {golden})).find("which a query sees"), std::string::npos);
  GoldenCase finite = first_version_case();  // under `finite` no key may hold one
  finite.input.inputs.tensors[static_cast<std::size_t>(Input::v)]->set_pattern(3 * 6, 0x7fc0);
  EXPECT_NE(refusal(write_corpus(folder, "b.h5", {finite})), "accepted");
}

TEST(FormatVersion, HiddenRowsStandOnlyWhereTheContractHidesThem) {
  const TemporaryFolder folder;
  const auto refused = [&](GoldenCase golden, qkcts_stage stage) {
    golden.stages[stage].values.rule[0] = ElementRule::hidden;
    return refusal(write_corpus(folder, "a.h5", {golden})).find("in a stage that hides nothing") != std::string::npos;
  };
  EXPECT_TRUE(refused(first_version_case(), QKCTS_STAGE_K_NORM));
  EXPECT_FALSE(refused(golden_with_excluded_keys(Format::binary16), QKCTS_STAGE_K_NORM));
  EXPECT_TRUE(refused(golden_with_excluded_keys(Format::binary16), QKCTS_STAGE_Q_NORM));
  EXPECT_TRUE(refused(golden_with_excluded_keys(Format::binary16), QKCTS_STAGE_PROBS));
  EXPECT_TRUE(refused(golden_with_excluded_keys(Format::binary16), QKCTS_STAGE_LSE));
  EXPECT_TRUE(refused(golden_with_excluded_keys(Format::binary16), QKCTS_STAGE_OUTPUT));
  EXPECT_FALSE(refused(first_version_case(), QKCTS_STAGE_SCORES));
}

TEST(FormatVersion, WithoutTablesTheFirstPositionIsZero) {
  const TemporaryFolder folder;
  GoldenCase golden = first_version_case();
  golden.first_position = 3;
  EXPECT_NE(refusal(write_corpus(folder, "a.h5", {golden})).find("first_position is not 0"), std::string::npos);
}

}  // namespace
}  // namespace qkcts
