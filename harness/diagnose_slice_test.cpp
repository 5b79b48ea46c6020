// SPDX-License-Identifier: Apache-2.0
// A part of a case holds the elements that it says, under every axis that an input can have.
#include <gtest/gtest.h>

#include "harness/diagnose_slice.hpp"
#include "vectors/generate.hpp"

namespace qkcts {
namespace {

Case made(const std::string& contract, const std::string& family, const std::string& shape) {
  PlannedCase planned;
  planned.contract = shipped_contract(contract);
  planned.family = family;
  planned.shape = shape_from_text(shape);
  planned.slug = case_slug(planned.contract, family, planned.format, planned.shape, 0);
  planned.seed = case_seed(1, planned.slug);
  return make_case(planned);
}

TEST(Slice, TheWholeIsTheCaseItself) {
  for (const std::string& name : shipped_contracts()) {
    const Contract contract = shipped_contract(name);
    Case c;
    try {
      c = made(name, "gaussian", "2,4,4,3,4,16,6");
    } catch (const InputError&) {
      continue;  // the family does not fit
    }
    const std::optional<Case> whole = sliced(c, whole_slice(c.shape));
    ASSERT_TRUE(whole) << name;
    for (std::size_t i = 0; i < input_count; ++i) {
      const auto input = static_cast<Input>(i);
      ASSERT_EQ(whole->inputs.has(input), c.inputs.has(input)) << name << " " << input_name(input);
      if (!c.inputs.has(input)) continue;
      EXPECT_EQ(whole->inputs.at(input).shape, c.inputs.at(input).shape) << name << " " << input_name(input);
      EXPECT_EQ(whole->inputs.at(input).bytes, c.inputs.at(input).bytes) << name << " " << input_name(input);
    }
  }
}

TEST(Slice, KeepsTheElementsThatItNames) {
  const Case c = made("qwen3_rmsnorm", "gaussian", "2,4,2,3,5,8,6");
  Slice slice = whole_slice(c.shape);
  slice.batch = {1};
  slice.kv_heads = {1};
  slice.group = {0};
  slice.q_len = {0, 2};
  slice.k_len = {1, 2, 4};
  slice.head_dim = {0, 1, 2, 3};
  const std::optional<Case> part = sliced(c, slice);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->shape.q_heads, 1);
  EXPECT_EQ(part->shape.head_dim, 4);
  // Query head 2 is the first of the group of key head 1.
  const auto q = [&](const Case& of, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) {
    const qkcts_shape& s = of.shape;
    return of.inputs.at(Input::q).value(static_cast<std::size_t>(((b * s.q_heads + h) * s.q_len + t) * s.head_dim + d));
  };
  EXPECT_EQ(q(*part, 0, 0, 1, 3), q(c, 1, 2, 2, 3));
  const auto k = [&](const Case& of, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) {
    const qkcts_shape& s = of.shape;
    return of.inputs.at(Input::k).value(
        static_cast<std::size_t>(((b * s.kv_heads + h) * s.k_len + t) * s.head_dim + d));
  };
  EXPECT_EQ(k(*part, 0, 0, 2, 1), k(c, 1, 1, 4, 1));
  EXPECT_EQ(part->inputs.at(Input::q_gain).value(3), c.inputs.at(Input::q_gain).value(3));
}

TEST(Slice, TileMappingKeepsEachQueryWithItsKeys) {
  const Case c = made("clause_heads_tile", "gaussian", "1,6,3,2,3,8,4");
  Slice slice = whole_slice(c.shape);
  slice.kv_heads = {1, 2};
  slice.group = {1};
  const std::optional<Case> part = sliced(c, slice);
  ASSERT_TRUE(part);
  // Heads 4 and 5 of the case read key heads 1 and 2.
  const auto at = static_cast<std::size_t>(c.shape.q_len * c.shape.head_dim);
  EXPECT_EQ(part->inputs.at(Input::q).value(0), c.inputs.at(Input::q).value(4 * at));
  EXPECT_EQ(part->inputs.at(Input::q).value(at), c.inputs.at(Input::q).value(5 * at));
}

TEST(Slice, LengthsAreShortenedAndOddLanesOfARotationRefused) {
  const Case c = made("clause_kv_lengths", "padded", "3,2,1,3,6,8,4");
  Slice slice = whole_slice(c.shape);
  slice.k_len = {0, 1};
  const std::optional<Case> part = sliced(c, slice);
  ASSERT_TRUE(part);
  for (std::size_t b = 0; b < 3; ++b)
    EXPECT_EQ(part->inputs.at(Input::kv_len).value(b), std::min(2.0, c.inputs.at(Input::kv_len).value(b)));

  const Case turned = made("qwen3_rmsnorm", "gaussian", "1,1,1,2,2,8,4");
  Slice odd = whole_slice(turned.shape);
  odd.head_dim = {0, 1, 2};
  EXPECT_FALSE(sliced(turned, odd));
}

}  // namespace
}  // namespace qkcts
