// SPDX-License-Identifier: Apache-2.0
// The double-word tier stores what MPFR alone stores, bit for bit.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include "reference/double_word_kernels.hpp"
#include "reference/refinement.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

bool same_bits(const std::vector<double>& x, const std::vector<double>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  });
}

// The first difference of two results, as one line; empty if there is none.
std::string difference(const ReferenceResult& x, const ReferenceResult& y) {
  for (const qkcts_stage s : all_stages) {
    const std::string name(stage_name(s));
    const ProvenStage& a = x.stages[s];
    const ProvenStage& b = y.stages[s];
    if (a.rows != b.rows) return name + " rows";
    if (a.expected != b.expected) return name + " expected";
    if (!same_bits(a.hi, b.hi)) return name + " hi";
    if (a.lo != b.lo) return name + " lo";
    if (a.rule != b.rule) return name + " rule";
    if (!same_bits(x.exact.values[s], y.exact.values[s])) return name + " exact";
  }
  if (!same_bits(x.statistics.entropy, y.statistics.entropy)) return "entropy";
  if (!same_bits(x.statistics.p_max, y.statistics.p_max)) return "p_max";
  if (!same_bits(x.statistics.score_max, y.statistics.score_max)) return "score_max";
  if (x.exact_cases != y.exact_cases) return "exact cases";
  return {};
}

// Every other row, so that stored and other rows are compared.
StageRows some_rows(const Case& c) {
  StageRows rows = every_row(c);
  for (std::vector<std::uint32_t>& of_stage : rows)
    std::erase_if(of_stage, [](std::uint32_t row) { return row % 2 == 1; });
  return rows;
}

class FastTierContract : public testing::TestWithParam<std::string> {};

TEST_P(FastTierContract, StoresWhatMpfrStores) {
  const Contract contract = shipped_contract(GetParam());
  const char* extra = std::getenv("QKCTS_TIER_SEEDS");
  const std::uint64_t seeds = extra != nullptr ? std::strtoull(extra, nullptr, 10) : 1;
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16}) {
    for (const SampleValues values :
         {SampleValues::full, SampleValues::coarse, SampleValues::wide, SampleValues::tiny}) {
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const std::int64_t width = contract.terms.rope.rotated > 8 ? 24 : 8;
        const std::int64_t kv_heads = contract.terms.rotation.tables == QKCTS_TABLES_PER_HEAD ? 4 : 2;
        const Case c = sample_case(contract, {format, values, seed, {1, 4, kv_heads, 3, 5, width, 6}});
        if (!case_fault(c).empty()) continue;
        RefinementLimits slow;
        slow.tier = Tier::mpfr;
        ReferenceResult by_mpfr;
        try {
          by_mpfr = refine(c, some_rows(c), slow);
        } catch (const UndecidedError&) {
          EXPECT_THROW(refine(c, some_rows(c), {}), UndecidedError);
          continue;
        } catch (const InputError&) {
          EXPECT_THROW(refine(c, some_rows(c), {}), InputError);
          continue;
        }
        for (const Kernels& kernels : all_kernels()) {
          RefinementLimits fast;
          fast.kernels = {&kernels, 1};
          EXPECT_EQ(difference(refine(c, some_rows(c), fast), by_mpfr), "")
              << kernels.name << ", " << parameters(format).name << ", values " << static_cast<int>(values) << ", seed "
              << seed;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, FastTierContract, testing::ValuesIn(shipped_contracts()),
                         [](const auto& each) { return each.param; });

Case ordinary_case(const std::string& name) {
  return sample_case(shipped_contract(name), {Format::binary32, SampleValues::full, 1, {1, 4, 2, 3, 5, 8, 6}});
}

// The comparison above would hold for a tier that proves nothing.
TEST(FastTier, ProvesOrdinaryCases) {
  for (const char* name :
       {"qwen3_rmsnorm", "henry2020_l2", "flax_qk_layernorm", "gemma3_rmsnorm", "rmsnorm_softcap", "olmo2_full_width",
        "clause_norm_bias", "clause_rope_then_norm", "plain_sdpa", "clause_v_norm", "clause_v_full_width",
        "clause_projection", "clause_projection_bias", "clause_projection_input_norm", "clause_projection_two_norms"}) {
    const Case c = ordinary_case(name);
    const std::uint64_t all = refine(c, every_row(c), {level_count, Tier::mpfr, {}}).left_open;
    EXPECT_GT(all, 200u) << name;
    EXPECT_LE(refine(c, every_row(c), {}).left_open, all / 50) << name;
  }
}

// Rows with and without visible keys: the means of normed values are left to MPFR, the rest is proven.
TEST(FastTier, LeavesMeansOfNormedValues) {
  Contract contract = shipped_contract("clause_v_norm_hidden");
  contract.terms.v_range = {};  // a clamp would be declined
  for (const Format format : {Format::binary64, Format::binary32, Format::bfloat16}) {
    Case c = sample_case(contract, {format, SampleValues::full, 4, {2, 4, 2, 3, 5, 8, 6}});
    set_values(c, Input::kv_len, std::vector<double>{0, 4});
    const ReferenceResult fast = refine(c, every_row(c), {});
    const ReferenceResult slow = refine(c, every_row(c), {level_count, Tier::mpfr, {}});
    EXPECT_EQ(difference(fast, slow), "");
    std::uint64_t means = 0;
    for (const double lse : slow.exact.values[QKCTS_STAGE_LSE]) means += std::isinf(lse) ? 6 : 0;
    EXPECT_GT(means, 0u);
    EXPECT_GE(fast.left_open, means);
    EXPECT_LE(fast.left_open, means + slow.left_open / 20);
  }
}

// Without an instruction set nothing would be compared, here and in the tests of the kernels.
TEST(FastTier, SomeKernelsRunHereEachOnce) {
  std::set<std::string_view> names;
  for (const Kernels& kernels : all_kernels()) EXPECT_TRUE(names.insert(kernels.name).second) << kernels.name;
  EXPECT_FALSE(names.empty());
}

TEST(FastTier, LeavesEverythingOpenWithoutKernels) {
  const Case c = ordinary_case("qwen3_rmsnorm");
  const std::uint64_t all = refine(c, every_row(c), {level_count, Tier::mpfr, {}}).left_open;
  EXPECT_EQ(refine(c, every_row(c), {level_count, Tier::automatic, {}}).left_open, all);
}

// A clause of rows of attention leaves those open, all of them; one of q and k leaves everything.
TEST(FastTier, DeclinesWhatItDoesNotCover) {
  for (const char* name : {"clause_sink_column", "clause_base_two", "clause_rope_computed"}) {
    const Case c = ordinary_case(name);
    std::uint64_t of_vectors = 0;
    for (const qkcts_stage stage : all_stages)
      if ((stages_of(c.contract.terms) & ~attention_stages & bit(stage)) != 0)
        of_vectors += static_cast<std::uint64_t>(row_count(stage, c.shape) * row_length(stage, c.shape));
    const bool covers_vectors = std::string_view(name) != "clause_rope_computed";
    const std::uint64_t all = refine(c, every_row(c), {level_count, Tier::mpfr, {}}).left_open;
    const std::uint64_t left = refine(c, every_row(c), {}).left_open;
    EXPECT_GE(left, covers_vectors ? all - of_vectors : all) << name;
    EXPECT_LE(left, covers_vectors ? all - of_vectors + of_vectors / 50 : all) << name;
  }
}

}  // namespace
}  // namespace qkcts
