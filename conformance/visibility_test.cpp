// SPDX-License-Identifier: Apache-2.0
// Every mask clause against a table that is written out, one string per query row: 'x' visible, '.' hidden.
#include <gtest/gtest.h>

#include <limits>

#include "conformance/case.hpp"
#include "conformance/format.hpp"
#include "conformance/visible_keys.hpp"

namespace qkcts {
namespace {

using Picture = std::vector<std::string>;

class VisibilityTable : public testing::Test {
 protected:
  // Lq = 4, Lk = 6.
  void SetUp() override {
    c.shape = {1, 1, 1, 4, 6, 2, 2};
    c.inputs.format = Format::binary32;
  }

  void set_lengths(std::vector<int> lengths) {
    c.contract.terms.mask.kv_lengths = 1;
    c.shape.batch = static_cast<std::int64_t>(lengths.size());
    Tensor tensor = Tensor::zeros(ElementType::int32, {c.shape.batch});
    for (std::size_t i = 0; i < lengths.size(); ++i) tensor.set_pattern(i, static_cast<std::uint64_t>(lengths[i]));
    c.inputs.set(Input::kv_len, tensor);
  }

  // As lists of keys, too: of queries one after another, and of one alone.
  Picture picture(std::int64_t b = 0, std::int64_t h = 0) const {
    const Visibility visibility(c);
    VisibleKeys lists(c);
    Picture rows;
    for (std::int64_t q = 0; q < c.shape.q_len; ++q) {
      rows.emplace_back();
      for (std::int64_t k = 0; k < c.shape.k_len; ++k) rows.back() += visibility.visible(b, h, q, k) ? 'x' : '.';
      std::vector<std::int64_t> listed, alone, expected;
      for (std::int64_t k = 0; k < c.shape.k_len; ++k)
        if (rows.back()[static_cast<std::size_t>(k)] == 'x') expected.push_back(k);
      lists.set(b, h, q, listed);
      VisibleKeys(c).set(b, h, q, alone);
      EXPECT_EQ(listed, expected);
      EXPECT_EQ(alone, expected);
    }
    return rows;
  }

  Case c;
  qkcts_mask& mask = c.contract.terms.mask;
};

TEST_F(VisibilityTable, NothingHidden) {
  EXPECT_EQ(picture(), (Picture{"xxxxxx", "xxxxxx", "xxxxxx", "xxxxxx"}));
}

TEST_F(VisibilityTable, CausalTopLeft) {
  mask.causal = 1;
  EXPECT_EQ(picture(), (Picture{"x.....", "xx....", "xxx...", "xxxx.."}));
}

TEST_F(VisibilityTable, CausalBottomRight) {
  mask.causal = 1;
  mask.alignment = QKCTS_BOTTOM_RIGHT;
  EXPECT_EQ(picture(), (Picture{"xxx...", "xxxx..", "xxxxx.", "xxxxxx"}));
  c.shape.k_len = 2;  // more queries than keys: the first rows see nothing
  EXPECT_EQ(picture(), (Picture{"..", "..", "x.", "xx"}));
}

TEST_F(VisibilityTable, CausalBottomRightValid) {
  mask.causal = 1;
  mask.alignment = QKCTS_BOTTOM_RIGHT_VALID;
  set_lengths({5, 2, 0});
  EXPECT_EQ(picture(0), (Picture{"xx....", "xxx...", "xxxx..", "xxxxx."}));
  EXPECT_EQ(picture(1), (Picture{"......", "......", "x.....", "xx...."}));
  EXPECT_EQ(picture(2), (Picture{"......", "......", "......", "......"}));
}

TEST_F(VisibilityTable, CausalOffset) {
  mask.causal = 1;
  mask.alignment = QKCTS_OFFSET;
  mask.offset = 1;
  EXPECT_EQ(picture(), (Picture{"xx....", "xxx...", "xxxx..", "xxxxx."}));
  mask.offset = -2;
  EXPECT_EQ(picture(), (Picture{"......", "......", "x.....", "xx...."}));
}

TEST_F(VisibilityTable, KeyLengths) {
  set_lengths({6, 3, 0});
  EXPECT_EQ(picture(0), (Picture{"xxxxxx", "xxxxxx", "xxxxxx", "xxxxxx"}));
  EXPECT_EQ(picture(1), (Picture{"xxx...", "xxx...", "xxx...", "xxx..."}));
  EXPECT_EQ(picture(2), (Picture{"......", "......", "......", "......"}));
}

TEST_F(VisibilityTable, Window) {
  mask.has_window = 1;
  mask.window_left = 1;
  mask.window_right = 2;
  EXPECT_EQ(picture(), (Picture{"xxx...", "xxxx..", ".xxxx.", "..xxxx"}));
  mask.alignment = QKCTS_BOTTOM_RIGHT;
  EXPECT_EQ(picture(), (Picture{".xxxx.", "..xxxx", "...xxx", "....xx"}));
  mask.alignment = QKCTS_TOP_LEFT;
  mask.window_right = -1;
  EXPECT_EQ(picture(), (Picture{"xxxxxx", "xxxxxx", ".xxxxx", "..xxxx"}));
  mask.window_right = 0;
  mask.window_left = -1;
  EXPECT_EQ(picture(), (Picture{"x.....", "xx....", "xxx...", "xxxx.."}));
}

TEST_F(VisibilityTable, WindowWithCausal) {
  mask.has_window = mask.causal = 1;
  mask.window_left = 1;
  mask.window_right = 3;
  mask.alignment = QKCTS_OFFSET;
  mask.offset = 2;
  EXPECT_EQ(picture(), (Picture{".xx...", "..xx..", "...xx.", "....xx"}));
}

TEST_F(VisibilityTable, BooleanBroadcastsOverBatchAndHeads) {
  c.shape.batch = 2;
  c.shape.q_heads = 2;
  c.shape.q_len = 1;
  c.shape.k_len = 2;
  mask.boolean = 1;
  Tensor full = Tensor::zeros(ElementType::boolean, {2, 2, 1, 2});
  for (const std::size_t i : {0U, 3U, 4U, 5U}) full.set_pattern(i, 1);
  c.inputs.set(Input::mask, full);
  EXPECT_EQ(picture(0, 0), (Picture{"x."}));
  EXPECT_EQ(picture(0, 1), (Picture{".x"}));
  EXPECT_EQ(picture(1, 0), (Picture{"xx"}));
  EXPECT_EQ(picture(1, 1), (Picture{".."}));
  Tensor per_head = Tensor::zeros(ElementType::boolean, {1, 2, 1, 2});
  per_head.set_pattern(3, 1);
  c.inputs.set(Input::mask, per_head);
  EXPECT_EQ(picture(1, 0), (Picture{".."}));
  EXPECT_EQ(picture(1, 1), (Picture{".x"}));
  Tensor one = Tensor::zeros(ElementType::boolean, {1, 1, 1, 2});
  one.set_pattern(0, 1);
  c.inputs.set(Input::mask, one);
  EXPECT_EQ(picture(1, 1), (Picture{"x."}));
}

TEST_F(VisibilityTable, MinusInfinityInABiasHides) {
  c.shape.q_len = 1;
  c.contract.terms.score.bias_order = QKCTS_BIAS_AFTER_SOFTCAP;
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16}) {
    c.inputs.format = format;
    Tensor bias = Tensor::zeros(element_type(format), {1, 1, 1, 6});
    bias.set_pattern(1, encode(format, -std::numeric_limits<double>::infinity()));
    bias.set_pattern(2, encode(format, -parameters(format).largest));  // very negative, but visible
    c.inputs.set(Input::bias, bias);
    EXPECT_EQ(picture(), (Picture{"x.xxxx"})) << parameters(format).name;
  }
}

TEST_F(VisibilityTable, ChunksCountFromKeyZero) {
  c.contract.terms.regions.chunk = 2;
  EXPECT_EQ(picture(), (Picture{"xx....", "xx....", "..xx..", "..xx.."}));
  mask.alignment = QKCTS_OFFSET;
  mask.offset = -3;  // query 0 stands at -3, in the chunk -4 .. -3; query 3 at 0
  EXPECT_EQ(picture(), (Picture{"......", "......", "......", "xx...."}));
  mask.offset = 1;
  mask.causal = 1;
  EXPECT_EQ(picture(), (Picture{"xx....", "..x...", "..xx..", "....x."}));
}

TEST_F(VisibilityTable, DocumentsSeeTheirOwn) {
  c.contract.terms.regions.documents = 1;
  const auto ids = [](std::vector<int> values) {
    Tensor tensor = Tensor::zeros(ElementType::int32, {1, static_cast<std::int64_t>(values.size())});
    for (std::size_t i = 0; i < values.size(); ++i) tensor.set_pattern(i, static_cast<std::uint32_t>(values[i]));
    return tensor;
  };
  c.inputs.set(Input::q_document_ids, ids({7, -1, 7, 2}));
  c.inputs.set(Input::k_document_ids, ids({7, 7, -1, 7, 3, -1}));
  EXPECT_EQ(picture(), (Picture{"xx.x..", "..x..x", "xx.x..", "......"}));
}

TEST_F(VisibilityTable, APrefixWidensTheCausalPartAlone) {
  mask.causal = 1;
  c.contract.terms.regions.prefix = 1;
  Tensor prefix = Tensor::zeros(ElementType::int32, {1});
  prefix.set_pattern(0, 3);
  c.inputs.set(Input::prefix_len, prefix);
  EXPECT_EQ(picture(), (Picture{"xxx...", "xxx...", "xxx...", "xxxx.."}));
  set_lengths({2});
  EXPECT_EQ(picture(), (Picture{"xx....", "xx....", "xx....", "xx...."}));
}

TEST(HeadMapping, BlockOrTile) {
  qkcts_contract terms{};
  const qkcts_shape shape{1, 6, 3, 1, 1, 1, 1};
  std::vector<std::int64_t> block, tile;
  for (std::int64_t h = 0; h < 6; ++h) block.push_back(kv_head_of(terms, shape, h));
  terms.heads.mapping = QKCTS_HEADS_TILE;
  for (std::int64_t h = 0; h < 6; ++h) tile.push_back(kv_head_of(terms, shape, h));
  EXPECT_EQ(block, (std::vector<std::int64_t>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(tile, (std::vector<std::int64_t>{0, 1, 2, 0, 1, 2}));
}

TEST_F(VisibilityTable, EveryConditionMustHold) {
  mask.causal = 1;
  set_lengths({3});
  EXPECT_EQ(picture(), (Picture{"x.....", "xx....", "xxx...", "xxx..."}));
}

}  // namespace
}  // namespace qkcts
