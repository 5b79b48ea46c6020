// SPDX-License-Identifier: Apache-2.0
#include "vectors/case_separation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "conformance/neighbour.hpp"
#include "reference/separation.hpp"
#include "vectors/case_digest.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/sample_golden.hpp"
#include "vectors/verify.hpp"

namespace qkcts {
namespace {

GoldenCase sample() {
  return sample_golden("clause_eps_inside_root", "eps_edge", Format::binary32, "1,2,1,7,9,8,6");
}

std::string refusal(const GoldenCase& golden) {
  const TemporaryFolder folder;
  try {
    static_cast<void>(CorpusReader(write_corpus(folder, "a.h5", {golden})).read(golden.input.slug));
  } catch (const InputError& error) {
    const std::string what = error.what();
    return what.substr(what.find("/cases"));
  }
  return "accepted";
}

std::size_t place_of(const GoldenCase& golden, const std::string& neighbour) {
  const std::vector<std::string>& names = golden.separation.neighbours;
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), neighbour) - names.begin());
}

TEST(CaseSeparation, IsMadeWithTheCaseAndComesBackFromTheFile) {
  const GoldenCase golden = sample();
  ASSERT_GE(golden.separation.neighbours.size(), 10U);
  const TemporaryFolder folder;
  const CorpusReader reader(write_corpus(folder, "a.h5", {golden}));
  EXPECT_EQ(reader.info().format_version, 4);
  const GoldenCase read = reader.read(golden.input.slug);
  EXPECT_EQ(read.separation.neighbours, golden.separation.neighbours);
  ASSERT_EQ(read.separation.values.size(), golden.separation.values.size());
  for (std::size_t i = 0; i < read.separation.values.size(); ++i)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(read.separation.values[i]),
              std::bit_cast<std::uint32_t>(golden.separation.values[i]));
  EXPECT_EQ(read.separation.places, golden.separation.places);
  ASSERT_TRUE(read.jacobian.has_value());
  EXPECT_EQ(read.jacobian->max, golden.jacobian->max);
  EXPECT_GT(read.jacobian->max, 0);
  EXPECT_LE(read.jacobian->max, 0.25 + 1e-6);
  EXPECT_EQ(read.digest, case_digest(golden));
}

// Lower bounds: never above what the whole case gives. Here the few rows find everything that exceeds 1.
TEST(CaseSeparation, AreLowerBoundsThatTellAsMuch) {
  const GoldenCase golden = sample();
  const SeparationRecord full = full_separations(golden);
  // Where one row has no value, under no epsilon for example, the whole case has none, though others may tell.
  EXPECT_LE(full.neighbours.size(), golden.separation.neighbours.size());
  std::size_t telling = 0;
  for (std::size_t neighbour = 0; neighbour < full.neighbours.size(); ++neighbour) {
    const std::size_t same = place_of(golden, full.neighbours[neighbour]);
    ASSERT_LT(same, golden.separation.neighbours.size()) << full.neighbours[neighbour];
    float quick_best = 0, full_best = 0;
    for (const qkcts_stage stage : all_stages) {
      if (!golden.stages[stage].present) continue;
      const float quick = separation_entry(golden, golden.separation, same, stage, 0).value;
      const float whole = separation_entry(golden, full, neighbour, stage, 0).value;
      EXPECT_EQ(std::isnan(quick), std::isnan(whole)) << full.neighbours[neighbour] << " " << stage_name(stage);
      if (std::isnan(quick)) continue;
      EXPECT_LE(quick, whole) << full.neighbours[neighbour] << " " << stage_name(stage);
      quick_best = std::max(quick_best, quick);
      full_best = std::max(full_best, whole);
    }
    EXPECT_EQ(quick_best > 1, full_best > 1) << full.neighbours[neighbour];
    telling += full_best > 1 ? 1 : 0;
  }
  EXPECT_GE(telling, 8U);
}

TEST(CaseSeparation, SaysWhereEpsilonDecides) {
  const GoldenCase golden = sample();
  const std::size_t outside = place_of(golden, "q_norm.root=outside_root");
  ASSERT_LT(outside, golden.separation.neighbours.size());
  const SeparationEntry entry = separation_entry(golden, golden.separation, outside, QKCTS_STAGE_Q_NORM, 0);
  EXPECT_GT(entry.value, 1000);
  EXPECT_EQ(separation_entry(golden, golden.separation, outside, QKCTS_STAGE_K_NORM, 0).value, 0) << "k is as it was";
}

TEST(CaseSeparation, WhatIsNoTableOfLowerBoundsIsRefused) {
  const GoldenCase good = sample();
  ASSERT_EQ(refusal(good), "accepted");
  const auto changed = [&](auto change) {
    GoldenCase bad = good;
    change(bad.separation);
    return refusal(bad);
  };
  const auto found = [&](const SeparationRecord& record) {  // an element that is named
    return static_cast<std::size_t>(
        std::find_if(record.values.begin(), record.values.end(), [](float x) { return x > 0; }) -
        record.values.begin());
  };
  const auto nothing = [&](const SeparationRecord& record) {
    return static_cast<std::size_t>(
        std::find_if(record.values.begin(), record.values.end(), [](float x) { return x == 0; }) -
        record.values.begin());
  };
  const auto says = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(says(changed([&](auto& r) { r.values[found(r)] = -1; }), "holds a negative number"));
  EXPECT_TRUE(says(changed([&](auto& r) { r.values[nothing(r)] = -0.0F; }), "holds a negative number"));
  EXPECT_TRUE(says(changed([&](auto& r) { r.values[nothing(r)] = std::bit_cast<float>(0x7fc00001U); }), "canonical"));
  EXPECT_TRUE(says(changed([&](auto& r) { r.places[2 * nothing(r)] = 1; }), "where there is none"));
  EXPECT_TRUE(says(changed([&](auto& r) { r.places[2 * found(r)] = 100000; }), "not stored"));
  EXPECT_TRUE(says(changed([&](auto& r) { r.places[2 * found(r) + 1] = 100000; }), "not stored"));
  EXPECT_TRUE(says(changed([](auto& r) { r.neighbours[1] = r.neighbours[0]; }), "no list of different clauses"));
  EXPECT_TRUE(says(changed([](auto& r) { r.neighbours[1] = "nothing"; }), "no list of different clauses"));
  EXPECT_TRUE(says(changed([](auto& r) { r.neighbours[1] = "a\n=b"; }), "no list of different clauses"));
  EXPECT_EQ(changed([](auto& r) { r = {}; }), "accepted") << "a case without neighbours";
}

TEST(CaseSeparation, EveryBitIsInTheDigest) {
  const GoldenCase golden = sample();
  const std::string digest = case_digest(golden);
  GoldenCase other = golden;
  other.separation.values[3] = std::nextafter(other.separation.values[3], 1e30F);
  EXPECT_NE(case_digest(other), digest);
  other = golden;
  other.separation.neighbours[0] += "x";
  EXPECT_NE(case_digest(other), digest);
  other = golden;
  ++other.separation.places[0];
  EXPECT_NE(case_digest(other), digest);
  other = golden;
  other.jacobian->median += 1e-9;
  EXPECT_NE(case_digest(other), digest);
  EXPECT_NE(case_digest(without_separation(golden)), digest);
}

TEST(CaseSeparation, VerifyRecomputesThem) {
  const TemporaryFolder folder;
  VerifyOptions all;
  all.sample = 100;
  GoldenCase golden = sample();
  EXPECT_TRUE(verify_corpus(write_corpus(folder, "a.h5", {golden}), all).mismatches.empty());
  const std::size_t outside = place_of(golden, "q_norm.root=outside_root");
  GoldenCase bad = golden;
  bad.separation.neighbours.erase(bad.separation.neighbours.begin() + static_cast<std::ptrdiff_t>(outside));
  const auto per_neighbour =
      static_cast<std::ptrdiff_t>(golden.separation.values.size() / golden.separation.neighbours.size());
  const auto from = static_cast<std::ptrdiff_t>(outside) * per_neighbour;
  bad.separation.values.erase(bad.separation.values.begin() + from,
                              bad.separation.values.begin() + from + per_neighbour);
  bad.separation.places.erase(bad.separation.places.begin() + 2 * from,
                              bad.separation.places.begin() + 2 * (from + per_neighbour));
  std::vector<VerifyMismatch> found = verify_corpus(write_corpus(folder, "b.h5", {bad}), all).mismatches;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].what, "neighbours of the separations differ");
  bad = golden;
  float& value =
      *std::find_if(bad.separation.values.begin(), bad.separation.values.end(), [](float x) { return x > 0; });
  value = std::nextafter(value, 0.0F);
  found = verify_corpus(write_corpus(folder, "c.h5", {bad}), all).mismatches;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].what.find("separation"), std::string::npos) << found[0].what;
}

// docs/epsilon.md: without its epsilon a row differs by the share sqrt(1 + eps/t) - 1, against two budgets of its own.
TEST(CaseSeparation, OfAMissingEpsilonIsWhatTheoryPredicts) {
  for (const Format format : {Format::binary32, Format::bfloat16, Format::binary16}) {
    SCOPED_TRACE(parameters(format).name);
    const GoldenCase golden = sample_golden("clause_eps_inside_root", "eps_ladder", format, "1,1,1,34,1,128,8");
    ASSERT_FALSE(golden.profiles.empty());
    const Case& c = golden.input;
    const GoldenStage& q_norm = golden.stages[QKCTS_STAGE_Q_NORM];
    CaseView view;
    for (const qkcts_stage stage : all_stages)
      if (golden.stages[stage].present) view[stage] = {&golden.stages[stage].values, &golden.stages[stage].budgets};
    const Separator separator(c, view, profiles_named(golden.profiles, {}));
    qkcts_contract terms = c.contract.terms;
    terms.q_norm.eps = 0;
    const auto found = separator.by_row(*case_under(c, terms), QKCTS_STAGE_Q_NORM);
    const std::vector<double> q = c.inputs.at(Input::q).values();
    int compared = 0;
    for (std::size_t row = 0; row < 34; ++row) {
      double squares = 0, least = 1;
      for (std::size_t d = row * 128; d < row * 128 + 128; ++d) {
        squares += q[d] * q[d];
        const double z = std::abs(q_norm.values.hi[d]);
        if (z > 0) least = std::min(least, static_cast<double>(q_norm.budgets[0].delta[d]) / z);
      }
      const double share = c.contract.terms.q_norm.eps / (squares / 128);
      if (share > 1.0 / 16 || share < 1.0 / 40000) continue;
      ++compared;
      EXPECT_NEAR(found[row][0].value / ((std::sqrt(1 + share) - 1) / (2 * least)), 1, 0.1) << "row " << row;
    }
    EXPECT_GE(compared, 10);
  }
}

}  // namespace
}  // namespace qkcts
