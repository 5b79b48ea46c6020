// SPDX-License-Identifier: Apache-2.0
#include "harness/unwritten_elements.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "harness/handmade_case.hpp"
#include "harness/judgement.hpp"

namespace qkcts {
namespace {

TEST(UnwrittenElements, AreCountedInWhateverStepsTheyAreSought) {
  constexpr std::size_t length = 37, rows = 9;
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16, Format::e5m2}) {
    const auto size = static_cast<std::size_t>(parameters(format).bits / 8);
    std::vector<std::byte> tensor = stage_bytes(format, std::vector<double>(length * rows, 1.5));
    for (const std::size_t place : {5 * length + 3, 5 * length + 4, rows * length - 1}) {
      const std::uint64_t poison = poison_pattern(format);
      std::memcpy(tensor.data() + place * size, &poison, size);
    }
    for (const std::size_t step : {std::size_t{1}, std::size_t{2}, rows}) {
      UnwrittenElements unwritten(format, tensor, length);
      for (std::size_t row = step; row <= rows; row += step) unwritten.search_to(row * length);
      unwritten.search_to(length);  // nothing is sought twice
      unwritten.search_to(rows * length);
      EXPECT_EQ(unwritten.count(), 3U);
      ASSERT_TRUE(unwritten.first());
      EXPECT_EQ(unwritten.first()->row, 5U);
      EXPECT_EQ(unwritten.first()->column, 3U);
    }
    UnwrittenElements partly(format, tensor, length);
    partly.search_to(2 * length);
    partly.skip_to(6 * length);
    partly.search_to(rows * length);
    EXPECT_EQ(partly.count(), 1U) << "the last one";
    UnwrittenElements before(format, tensor, length);
    before.search_to(5 * length);
    EXPECT_EQ(before.count(), 0U);
    EXPECT_FALSE(before.first());
  }
}

// In rows before, between and after those that are stored, too.
TEST(UnwrittenElements, AreFoundInRowsThatAreNotStored) {
  for (const std::uint32_t stored : {0U, 1U})
    for (const std::uint32_t row : {0U, 1U}) {
      GoldenCase golden = plain_golden_case();
      ProvenStage& values = golden.stages[QKCTS_STAGE_OUTPUT].values;  // both rows are 2, 3.5
      values.rows = {stored};
      std::vector<std::byte> bytes = stage_bytes(Format::binary32, {2, 3.5, 2, 3.5});
      EXPECT_EQ(judge_stage(golden, QKCTS_STAGE_OUTPUT, 0, bytes).verdict, Verdict::pass);
      const std::uint64_t poison = poison_pattern(Format::binary32);
      std::memcpy(bytes.data() + (2 * row + 1) * sizeof(float), &poison, sizeof(float));
      const StageJudgement judgement = judge_stage(golden, QKCTS_STAGE_OUTPUT, 0, bytes);
      EXPECT_EQ(judgement.verdict, Verdict::error_unwritten);
      EXPECT_EQ(judgement.unwritten, 1U);
      ASSERT_TRUE(judgement.first_unwritten);
      EXPECT_EQ(judgement.first_unwritten->row, row);
      EXPECT_EQ(judgement.first_unwritten->column, 1U);
    }
}

}  // namespace
}  // namespace qkcts
