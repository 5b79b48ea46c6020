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
  return without_separation(sample_golden("clause_kv_lengths", "padded", Format::bfloat16, "2,2,1,3,4,8,6"));
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
  terms.v_range.multiplier = 1;
  EXPECT_EQ(format_version_of(terms), 2U);
  terms.v_range.multiplier = 2;
  EXPECT_EQ(format_version_of(terms), 3U);
}

// What 1.2 put into structs and enumerations of 1.1 is known by its value.
TEST(FormatVersion, TellsTheVersionsOfOneField) {
  qkcts_contract terms = shipped_contract("clause_query_temperature").terms;
  EXPECT_EQ(format_version_of(terms), 2U);
  terms.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG_RATIO;
  EXPECT_EQ(format_version_of(terms), 3U);
  terms = shipped_contract("clause_rope_ntk").terms;
  EXPECT_EQ(format_version_of(terms), 2U);
  terms.rotation.tables = QKCTS_TABLES_PER_HEAD;
  EXPECT_EQ(format_version_of(terms), 3U);
  terms = shipped_contract("plain_sdpa").terms;
  terms.rounding.probs = QKCTS_BFLOAT16;
  EXPECT_EQ(format_version_of(terms), 3U);
}

// Each new clause has a shipped contract of its own; what was there before stays a file of version 1.
TEST(FormatVersion, OfEveryShippedContract) {
  std::size_t of_version[4] = {};
  for (const std::string& name : shipped_contracts()) ++of_version[format_version_of(shipped_contract(name).terms)];
  EXPECT_GE(of_version[2], 26U);
  EXPECT_GE(of_version[3], 27U);
  EXPECT_EQ(format_version_of(shipped_contract("qwen3_rmsnorm").terms), 1U);
  EXPECT_EQ(format_version_of(shipped_contract("clause_temperature_softcap").terms), 1U);
  EXPECT_EQ(format_version_of(shipped_contract("clause_heads_tile").terms), 2U);
  EXPECT_EQ(format_version_of(shipped_contract("clause_projection").terms), 3U);
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
  EXPECT_EQ(refusal(old), old + ": has format version 2, but its contracts, profiles and cases make it version 1");
  EXPECT_EQ(refusal(later), later + ": has format version 1, but its contracts, profiles and cases make it version 2");
  for (const std::uint32_t version : {0U, 5U}) {
    set_version(old, version);
    EXPECT_NE(refusal(old).find("this program reads versions 1 to 4"), std::string::npos);
  }
}

// Everything that came with version 3 is written and read: inputs, stages, three axes of tables.
TEST(FormatVersion, TheThirdVersionIsWrittenAndRead) {
  const TemporaryFolder folder;
  std::vector<GoldenCase> cases = {
      sample_golden("clause_projection_two_norms", "gaussian", Format::bfloat16, "2,4,2,3,5,8,6"),
      sample_golden("clause_v_full_width", "gaussian", Format::binary32, "1,4,2,3,5,8,6"),
      sample_golden("clause_rope_tables_per_head", "gaussian", Format::binary16, "1,3,3,4,5,8,6"),
      sample_golden("clause_round_eager", "gaussian", Format::binary32, "1,4,2,3,5,8,6")};
  for (GoldenCase& golden : cases) golden = without_separation(golden);
  const CorpusReader reader(write_corpus(folder, "a.h5", cases));
  EXPECT_EQ(reader.info().format_version, 3);
  for (const GoldenCase& golden : cases) {
    const GoldenCase read = reader.read(golden.input.slug);
    EXPECT_EQ(read.digest, case_digest(golden));
    for (std::size_t i = 0; i < input_count; ++i) {
      const auto &was = golden.input.inputs.tensors[i], &is = read.input.inputs.tensors[i];
      ASSERT_EQ(was.has_value(), is.has_value()) << input_name(static_cast<Input>(i));
      if (!was) continue;
      EXPECT_EQ(was->shape, is->shape) << input_name(static_cast<Input>(i));
      EXPECT_EQ(was->bytes, is->bytes) << input_name(static_cast<Input>(i));
    }
    for (const qkcts_stage stage : all_stages) {
      ASSERT_EQ(golden.stages[stage].present, read.stages[stage].present) << stage_name(stage);
      EXPECT_EQ(golden.stages[stage].values.expected, read.stages[stage].values.expected) << stage_name(stage);
      EXPECT_EQ(reader.outline(golden.input.slug).stages[stage].present, golden.stages[stage].present);
    }
  }
  const GoldenCase projected = reader.read(cases[0].input.slug);
  EXPECT_TRUE(projected.stages[QKCTS_STAGE_Q_PROJ].present && projected.input.inputs.has(Input::k_x_gain));
  EXPECT_FALSE(projected.input.inputs.has(Input::q));
  EXPECT_EQ(reader.read(cases[2].input.slug).input.inputs.at(Input::cos).shape.size(), 3U);
}

// The widths of what is projected are nowhere said but in the tensors themselves, so these have to agree.
TEST(FormatVersion, TensorsOfAProjectionThatDoNotFitEachOtherAreRefused) {
  const TemporaryFolder folder;
  const GoldenCase good = sample_golden("clause_projection_input_norm", "gaussian", Format::binary32, "1,4,2,3,5,8,6");
  EXPECT_EQ(refusal(write_corpus(folder, "a.h5", {good})), "accepted");
  const auto refused = [&](Input input, const std::vector<std::int64_t>& shape) {
    GoldenCase bad = good;
    Tensor& tensor = *bad.input.inputs.tensors[static_cast<std::size_t>(input)];
    tensor = Tensor::zeros(tensor.type, shape);
    return refusal(write_corpus(folder, "b.h5", {bad}));
  };
  const std::int64_t width = good.input.inputs.at(Input::q_x).shape[2];
  EXPECT_NE(refused(Input::q_x, {1, 3, width + 1}).find("width"), std::string::npos);
  EXPECT_NE(refused(Input::q_weight, {width - 1, 32}).find("width"), std::string::npos);
  EXPECT_NE(refused(Input::q_weight, {width, 31}).find("has another shape"), std::string::npos);
  EXPECT_NE(refused(Input::q_x_gain, {width + 1}).find("width"), std::string::npos);
  EXPECT_NE(refused(Input::k_x_bias, {1}), "accepted");
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

TEST(FormatVersion, ANaNThatAQuerySeesIsRefusedBeforeVersionFour) {
  const TemporaryFolder folder;
  GoldenCase golden = golden_with_excluded_keys(Format::binary32);
  Tensor& v = *golden.input.inputs.tensors[static_cast<std::size_t>(Input::v)];
  v.set_pattern(4 * 6, 0x7fc00000);  // key 0 of batch entry 1, where every key is seen
  EXPECT_NE(refusal(write_corpus(folder, "a.h5", {golden})).find("need the statistic jacobian"), std::string::npos);
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
