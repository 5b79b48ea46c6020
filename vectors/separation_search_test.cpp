// SPDX-License-Identifier: Apache-2.0
#include "vectors/separation_search.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/separation.hpp"
#include "vectors/case_digest.hpp"

namespace qkcts {
namespace {

SeparationSearch small_search(const char* own, const char* other) {
  SeparationSearch search;
  search.own = shipped_contract(own);
  search.other = shipped_contract(other);
  search.shape = {1, 2, 1, 3, 4, 8, 6};
  search.steps = 40;
  return search;
}

StageRows rows_of(const GoldenCase& golden) {
  StageRows rows;
  for (const qkcts_stage stage : all_stages) rows[stage] = golden.stages[stage].values.rows;
  return rows;
}

std::string refusal(const SeparationSearch& search) {
  try {
    search_separation(search);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

// At unit scale the place of an epsilon of 1e-5 cannot be seen in the output; the search finds the small rows.
TEST(SeparationSearch, FindsWhereEpsilonDecides) {
  SeparationSearch search = small_search("clause_eps_inside_root", "clause_eps_outside_root");
  search.stage = QKCTS_STAGE_Q_NORM;
  const SearchResult result = search_separation(search);
  ASSERT_GE(result.improvements.size(), 2U);
  for (std::size_t i = 1; i < result.improvements.size(); ++i)
    EXPECT_GT(result.improvements[i].separation, result.improvements[i - 1].separation);
  EXPECT_GT(result.improvements.back().separation, 8 * result.improvements.front().separation);
  EXPECT_EQ(result.golden.family, "separating");
  EXPECT_EQ(result.golden.input.slug,
            "clause_eps_inside_root/separating/binary32_1x2x1x3x4x8x6_from_clause_eps_outside_root");
  EXPECT_EQ(result.golden.digest, "") << "given by the writer";
}

// What it says is what the case holds.
TEST(SeparationSearch, ItsCaseHasTheSeparationThatItPrints) {
  SeparationSearch search = small_search("clause_eps_inside_root", "clause_eps_outside_root");
  search.steps = 10;
  const SearchResult result = search_separation(search);
  const Separator separator(result.golden.input, rows_of(result.golden), {shipped_profile("f32")});
  Case other = result.golden.input;
  other.contract = search.other;
  EXPECT_EQ(largest_separation(separator.to(other), 0).value, result.improvements.back().separation);
}

TEST(SeparationSearch, IsTheSameForASeedAndANumberOfSteps) {
  SeparationSearch search = small_search("clause_eps_inside_root", "clause_layer_norm_outside_root");
  search.other = search.own;
  search.other.name = "centred";
  search.other.terms.q_norm.center = 1;
  search.steps = 12;
  const std::string digest = case_digest(search_separation(search).golden);
  EXPECT_EQ(case_digest(search_separation(search).golden), digest);
  search.seed = 1;
  EXPECT_NE(case_digest(search_separation(search).golden), digest);
  search.seed = 0;
  search.steps = 0;
  const SearchResult start = search_separation(search);
  EXPECT_EQ(start.improvements.size(), 1U);
  EXPECT_NE(case_digest(start.golden), digest);
}

TEST(SeparationSearch, AnEndFromOutsideKeepsTheBestSoFar) {
  SeparationSearch search = small_search("clause_eps_inside_root", "clause_eps_outside_root");
  int asked = 0;
  const SearchResult result = search_separation(search, [&] { return ++asked > 3; });
  EXPECT_LE(result.improvements.back().step, 3U);
  search.steps = 3;
  EXPECT_EQ(case_digest(search_separation(search).golden), case_digest(result.golden));
}

TEST(SeparationSearch, RefusesContractsThatReadOtherInputs) {
  EXPECT_NE(refusal(small_search("clause_eps_inside_root", "qwen3_rmsnorm")).find("do not take the same inputs"),
            std::string::npos);
  EXPECT_EQ(refusal(small_search("clause_eps_inside_root", "clause_eps_inside_root")),
            "clause_eps_inside_root and clause_eps_inside_root are one contract");
  SeparationSearch search = small_search("clause_eps_inside_root", "clause_eps_outside_root");
  search.stage = QKCTS_STAGE_CAPPED;
  EXPECT_EQ(refusal(search), "the two contracts do not have the wanted stage in common");
}

}  // namespace
}  // namespace qkcts
