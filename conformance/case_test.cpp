// SPDX-License-Identifier: Apache-2.0
#include "conformance/case.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "conformance/format.hpp"

namespace qkcts {
namespace {

// A valid case of a shipped contract: every input zero, except that masks show every key.
Case zero_case(const char* contract, Format format = Format::binary32) {
  Case c;
  c.contract = shipped_contract(contract);
  c.shape = {2, 4, 2, 3, 5, 32, 8};
  if (c.contract.terms.rotation.tables == QKCTS_TABLES_PER_HEAD) c.shape.q_heads = 2;
  c.inputs.format = format;
  for (const InputRequirement& need : required_inputs(c.contract.terms, c.shape, format)) {
    std::vector<std::int64_t> shape = need.shape;
    for (std::int64_t& extent : shape)
      if (extent < 0) extent = extent == -2 ? 7 : 1;
    c.inputs.set(need.input, Tensor::zeros(need.type, shape));
  }
  return c;
}

std::vector<std::string> input_names(const char* contract) {
  std::vector<std::string> names;
  for (const InputRequirement& need :
       required_inputs(shipped_contract(contract).terms, {1, 4, 2, 3, 5, 32, 8}, Format::binary16))
    names.emplace_back(input_name(need.input));
  return names;
}

TEST(RequiredInputs, FollowFromTheContract) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(input_names("plain_sdpa"), (Names{"q", "k", "v"}));
  EXPECT_EQ(input_names("qwen3_rmsnorm"),
            (Names{"q", "k", "v", "q_gain", "k_gain", "cos", "sin", "q_position_ids", "k_position_ids"}));
  EXPECT_EQ(input_names("henry2020_l2_cross"), (Names{"q", "k", "v", "scale", "kv_len"}));
  EXPECT_EQ(input_names("clause_mixed_norms"), (Names{"q", "k", "v", "q_gain", "k_gain", "q_bias", "k_bias"}));
  EXPECT_EQ(input_names("clause_norm_on_q_only"), (Names{"q", "k", "v", "q_gain"}));
  EXPECT_EQ(input_names("clause_empty_nan"), (Names{"q", "k", "v", "q_gain", "k_gain", "mask", "kv_len"}));
  EXPECT_EQ(input_names("clause_bias_additive"), (Names{"q", "k", "v", "q_gain", "k_gain", "bias"}));
  EXPECT_EQ(input_names("clause_rope_computed"),
            (Names{"q", "k", "v", "q_gain", "k_gain", "q_position_ids", "k_position_ids"}));
  EXPECT_EQ(input_names("clause_query_temperature"), (Names{"q", "k", "v", "q_gain", "k_gain", "q_position_ids"}));
  EXPECT_EQ(input_names("clause_scale_exp_per_head"), (Names{"q", "k", "v", "scale"}));
  EXPECT_EQ(input_names("clause_alibi_relative"), (Names{"q", "k", "v", "q_gain", "k_gain", "alibi_slopes"}));
  EXPECT_EQ(input_names("clause_v_full_width"), (Names{"q", "k", "v", "v_gain", "v_bias"}));
  EXPECT_EQ(input_names("clause_projection_bias"),
            (Names{"v", "q_x", "k_x", "q_weight", "k_weight", "q_weight_bias", "k_weight_bias"}));
  EXPECT_EQ(input_names("clause_projection_input_norm"),
            (Names{"v", "q_x", "k_x", "q_weight", "k_weight", "q_x_gain", "k_x_gain", "k_x_bias", "cos", "sin",
                   "q_position_ids", "k_position_ids"}));
  EXPECT_EQ(input_names("clause_round_eager"), input_names("qwen3_rmsnorm"));
  EXPECT_EQ(input_names("clause_sink_column"), (Names{"q", "k", "v", "q_gain", "k_gain", "sink"}));
  EXPECT_EQ(input_names("clause_mask_documents"),
            (Names{"q", "k", "v", "q_gain", "k_gain", "q_document_ids", "k_document_ids"}));
  EXPECT_EQ(input_names("clause_mask_prefix"), (Names{"q", "k", "v", "q_gain", "k_gain", "kv_len", "prefix_len"}));
}

TEST(RequiredInputs, ParameterAxesUseTheHeadsOfTheirSide) {
  const auto shape_of = [](const char* contract, Input input) {
    for (const InputRequirement& need :
         required_inputs(shipped_contract(contract).terms, {1, 4, 2, 3, 5, 32, 8}, Format::binary16))
      if (need.input == input) return need.shape;
    return std::vector<std::int64_t>{};
  };
  using Extents = std::vector<std::int64_t>;
  EXPECT_EQ(shape_of("clause_gain_head", Input::q_gain), (Extents{4}));
  EXPECT_EQ(shape_of("clause_gain_head", Input::k_gain), (Extents{2}));
  EXPECT_EQ(shape_of("clause_gain_head_head_dim", Input::k_gain), (Extents{2, 32}));
  EXPECT_EQ(shape_of("olmo2_full_width", Input::q_gain), (Extents{128}));
  EXPECT_EQ(shape_of("clause_gain_scalar", Input::q_gain), (Extents{1}));
  EXPECT_EQ(shape_of("clause_scale_per_head", Input::scale), (Extents{4}));
  EXPECT_EQ(shape_of("henry2020_l2", Input::scale), (Extents{1}));
  EXPECT_EQ(shape_of("clause_rope_partial_first", Input::cos), (Extents{-2, 8}));
  EXPECT_EQ(shape_of("qwen3_rmsnorm", Input::cos), (Extents{-2, 16}));
  EXPECT_EQ(shape_of("clause_rope_tables_per_head", Input::cos), (Extents{4, -2, 16}));
  EXPECT_EQ(shape_of("clause_v_norm", Input::v_gain), (Extents{8}));
  EXPECT_EQ(shape_of("clause_v_full_width", Input::v_gain), (Extents{16}));
  EXPECT_EQ(shape_of("clause_projection", Input::k_weight), (Extents{-2, 64}));
  EXPECT_EQ(shape_of("clause_projection_two_norms", Input::k_x_gain), (Extents{1}));
}

TEST(RequiredInputs, TablesAreBinary32ExceptForBinary64) {
  const qkcts_contract terms = shipped_contract("qwen3_rmsnorm").terms;
  for (const Format format : {Format::binary16, Format::binary64})
    for (const InputRequirement& need : required_inputs(terms, {1, 4, 2, 3, 5, 32, 8}, format))
      if (need.input == Input::cos) {
        EXPECT_EQ(need.type, format == Format::binary64 ? ElementType::binary64 : ElementType::binary32);
      }
}

TEST(CaseFault, AcceptsAValidCaseOfEveryContractAndFormat) {
  for (const std::string& name : shipped_contracts())
    for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16})
      EXPECT_EQ(case_fault(zero_case(name.c_str(), format)), "") << name;
}

TEST(CaseFault, NamesWhatIsWrong) {
  struct Row {
    const char* contract;
    const char* expected;
    void (*spoil)(Case&);
  };
  const Row rows[] = {
      {"qwen3_rmsnorm", "input k_gain is missing", [](Case& c) { c.inputs.tensors[4].reset(); }},
      {"plain_sdpa", "input scale is given",
       [](Case& c) { c.inputs.set(Input::scale, Tensor::zeros(ElementType::binary32, {1})); }},
      {"plain_sdpa", "input q: element type", [](Case& c) { c.inputs.tensors[0]->type = ElementType::int32; }},
      {"plain_sdpa", "input v: shape [2, 2, 5, 9], must be [2, 2, 5, 8]",
       [](Case& c) { c.inputs.tensors[2]->shape[3] = 9; }},
      {"plain_sdpa", "bytes do not fill", [](Case& c) { c.inputs.tensors[2]->bytes.pop_back(); }},
      {"qwen3_rmsnorm", "input cos[7]: inf is not finite",
       [](Case& c) { c.inputs.tensors[7]->set_pattern(7, 0x7f800000); }},
      {"qwen3_rmsnorm", "input k_position_ids[9]: position 7 lies outside the 7 rows",
       [](Case& c) { c.inputs.tensors[10]->set_pattern(9, 7); }},
      {"qwen3_rmsnorm", "position -1 lies outside", [](Case& c) { c.inputs.tensors[9]->set_pattern(0, 0xffffffff); }},
      {"qwen3_rmsnorm", "input sin has 8 rows, cos has 7",
       [](Case& c) {
         c.inputs.set(Input::sin, Tensor::zeros(ElementType::binary32, {8, 16}));
       }},
      {"henry2020_l2", "input kv_len[1]: length 6 lies outside 0..5",
       [](Case& c) { c.inputs.tensors[14]->set_pattern(1, 6); }},
      {"clause_mask_boolean", "input mask[0]: byte 2", [](Case& c) { c.inputs.tensors[12]->set_pattern(0, 2); }},
      {"clause_mask_boolean", "must be [1 or full, 1 or full, 3, 5]",
       [](Case& c) {
         c.inputs.set(Input::mask, Tensor::zeros(ElementType::boolean, {3, 1, 3, 5}));
       }},
      {"henry2020_l2", "input scale[0]: nan is not finite",
       [](Case& c) { c.inputs.tensors[11]->set_pattern(0, 0xffc00000); }},
      {"plain_sdpa", "no multiple of kv_heads", [](Case& c) { c.shape.q_heads = 3; }},
      {"clause_projection", "input q is given",
       [](Case& c) {
         c.inputs.set(Input::q, Tensor::zeros(ElementType::binary32, {2, 4, 3, 32}));
       }},
      {"clause_projection_bias", "input q_weight_bias: shape [64], must be [128]",
       [](Case& c) { c.inputs.set(Input::q_weight_bias, Tensor::zeros(ElementType::binary32, {64})); }},
      {"clause_projection", "input k_weight: 6 rows, but k_x has width 7",
       [](Case& c) {
         c.inputs.set(Input::k_weight, Tensor::zeros(ElementType::binary32, {6, 64}));
       }},
      {"clause_projection_input_norm", "input k_x_bias: 8 rows, but k_x has width 7",
       [](Case& c) { c.inputs.set(Input::k_x_bias, Tensor::zeros(ElementType::binary32, {8})); }},
      {"clause_rope_tables_per_head", "input sin has 6 rows, cos has 7",
       [](Case& c) {
         c.inputs.set(Input::sin, Tensor::zeros(ElementType::binary32, {2, 6, 16}));
       }},
      {"clause_rope_tables_per_head", "rope.tables per_head needs q_heads 4 and kv_heads 2 to be equal",
       [](Case& c) { c.shape.q_heads = 4; }},
      {"plain_sdpa", "score.softcap", [](Case& c) { c.contract.terms.score.softcap = -1; }},
  };
  for (const Row& row : rows) {
    Case c = zero_case(row.contract);
    ASSERT_EQ(case_fault(c), "");
    row.spoil(c);
    EXPECT_NE(case_fault(c).find(row.expected), std::string::npos) << row.expected << " but got: " << case_fault(c);
  }
}

// Where no row sees the key, a NaN in the bias says nothing.
TEST(CaseFault, ABiasIsSpecialWhereSomeRowSeesIt) {
  Case c = zero_case("clause_bias_additive");
  c.inputs.tensors[13]->set_pattern(2, 0xff800000);
  EXPECT_EQ(case_fault(c), "");
  c.inputs.tensors[13]->set_pattern(3, 0x7fc00000);
  EXPECT_EQ(case_fault(c), "");
  c.contract.terms.mask.causal = 1;
  EXPECT_NE(case_fault(c).find("input bias[3]: nan stands at a hidden key"), std::string::npos) << case_fault(c);
}

TEST(CaseFault, HiddenKeysMayHoldAnythingWhereTheContractSaysSo) {
  constexpr std::uint64_t quiet_nan = 0x7fc00000;
  Case c = zero_case("clause_hidden_excluded");  // kv_len is 0 everywhere: every key is hidden
  Tensor& lengths = *c.inputs.tensors[static_cast<std::size_t>(Input::kv_len)];
  lengths.set_pattern(0, 2);
  lengths.set_pattern(1, 5);
  const std::size_t in_key_2_of_entry_0 = (0 * 5 + 2) * 32 + 3;
  c.inputs.tensors[static_cast<std::size_t>(Input::k)]->set_pattern(in_key_2_of_entry_0, quiet_nan);
  c.inputs.tensors[static_cast<std::size_t>(Input::v)]->set_pattern((0 * 5 + 4) * 8, 0x7f800000);
  EXPECT_EQ(case_fault(c), "");
  lengths.set_pattern(0, 3);
  EXPECT_EQ(case_fault(c), "") << "a NaN that a query sees is what QK-SPECIAL is about";
  lengths.set_pattern(0, 2);
  c.contract.terms.softmax.hidden_values = QKCTS_HIDDEN_FINITE;
  EXPECT_NE(case_fault(c).find("input k[67]: nan stands at key 2 of batch entry 0, which no query sees"),
            std::string::npos)
      << case_fault(c);
}

TEST(CaseFault, PositionsWithoutTablesAreOnlyNotNegative) {
  Case c = zero_case("clause_rope_computed");
  Tensor& ids = *c.inputs.tensors[static_cast<std::size_t>(Input::k_position_ids)];
  ids.set_pattern(1, 1000000);
  EXPECT_EQ(case_fault(c), "");
  ids.set_pattern(1, 0xffffffff);
  EXPECT_NE(case_fault(c).find("input k_position_ids[1]: position -1 is negative"), std::string::npos);
}

TEST(Input, NamesAreUniqueAndFound) {
  for (std::size_t i = 0; i < input_count; ++i)
    EXPECT_EQ(input_named(input_name(static_cast<Input>(i))), static_cast<Input>(i));
  EXPECT_FALSE(input_named("x").has_value());
}

}  // namespace
}  // namespace qkcts
