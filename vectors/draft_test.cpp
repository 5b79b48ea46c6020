// SPDX-License-Identifier: Apache-2.0
// Ordinary drafts: no clause may hide behind another, and each has something to act on.
#include "vectors/family_draft.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "vectors/generate.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

constexpr Format formats[] = {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16};

Case drawn(const std::string& contract, Format format, const std::string& shape, std::uint64_t seed = 1) {
  const PlannedCase planned = sample_plan(contract, "gaussian", format, shape);
  Case c = draw_case(planned.family, planned.contract, planned.shape, planned.format, seed).c;
  EXPECT_EQ(case_fault(c), "") << contract;
  return c;
}

std::size_t distinct(const std::vector<double>& values) {
  return std::set<double>(values.begin(), values.end()).size();
}

TEST(OrdinaryDraft, SlopesDifferInEveryHeadAndTheirProductsRound) {
  for (const Format format : formats) {
    const Tensor slopes = drawn("clause_alibi_relative", format, "1,6,3,4,9,8,6").inputs.at(Input::alibi_slopes);
    EXPECT_EQ(slopes.type, element_type(accumulator_format(format)));
    EXPECT_EQ(distinct(slopes.values()), 6U);
    std::vector<double> sorted = slopes.values();
    EXPECT_FALSE(std::is_sorted(sorted.begin(), sorted.end(), std::greater<>())) << "as the usual slopes are";
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i + 1 < sorted.size(); ++i) EXPECT_GT(sorted[i + 1], 1.0001 * sorted[i]);
    for (const double m : slopes.values()) {
      EXPECT_GE(m, 0x1p-8);
      EXPECT_LT(m, 1);
      const double product = decode(accumulator_format(format), encode(accumulator_format(format), 5 * m));
      EXPECT_NE(std::fma(5, m, -product), 0) << "five slopes do not round";
    }
  }
}

TEST(OrdinaryDraft, SinksDifferInEveryHeadAndAreOfTheSizeOfScores) {
  for (const Format format : formats) {
    const std::vector<double> sinks =
        drawn("clause_sink_column", format, "1,6,3,4,9,24,6").inputs.at(Input::sink).values();
    EXPECT_EQ(distinct(sinks), 6U);
    const double size = 0.11 * std::sqrt(24.0);  // of a score of independent rows of rms 1
    for (const double z : sinks) {
      EXPECT_GE(z, 0.9 * size);
      EXPECT_LE(z, 3.5 * size);
    }
  }
}

TEST(OrdinaryDraft, DocumentsAreSeveralUnsortedAndOfTheirOwnInEveryBatchEntry) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Case c = drawn("clause_mask_documents", Format::binary32, "2,2,1,5,9,8,6", seed);
    const std::vector<double> ids = c.inputs.at(Input::k_document_ids).values();
    const std::vector<double> first(ids.begin(), ids.begin() + 9), second(ids.begin() + 9, ids.end());
    EXPECT_EQ(distinct(first), 3U);
    EXPECT_EQ(distinct(second), 2U);
    EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
    EXPECT_FALSE(std::is_sorted(first.begin(), first.end(), std::greater<>()));
    EXPECT_NE(first, second);
    const Visibility visibility(c);
    std::size_t hidden_by_document = 0;
    for (std::int64_t t = 0; t < 5; ++t) {
      EXPECT_TRUE(visibility.visible(0, 0, t, t + 4)) << "a query sees the key beside which it stands";
      for (std::int64_t j = 0; j <= t + 4; ++j) hidden_by_document += visibility.visible(0, 0, t, j) ? 0 : 1;
    }
    EXPECT_GT(hidden_by_document, 0U);
  }
}

TEST(OrdinaryDraft, PrefixesDifferAndShowWhatCausalHides) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Case c = drawn("clause_mask_prefix", Format::binary32, "3,2,1,7,9,8,6", seed);
    const std::vector<double> lengths = c.inputs.at(Input::prefix_len).values();
    EXPECT_EQ(distinct(lengths), 3U);
    const std::vector<double> keys = c.inputs.at(Input::kv_len).values();
    const Visibility visibility(c);
    for (std::int64_t b = 0; b < 3; ++b) {
      EXPECT_GE(lengths[static_cast<std::size_t>(b)], 1);
      EXPECT_LE(lengths[static_cast<std::size_t>(b)], 8);
      // Query 0 stands at key 2; the prefix reaches at least to key 3, but not beyond the keys that there are.
      EXPECT_EQ(visibility.visible(b, 0, 0, 3), keys[static_cast<std::size_t>(b)] > 3);
      EXPECT_FALSE(visibility.visible(b, 0, 0, 8));
    }
  }
  EXPECT_EQ(drawn("clause_mask_prefix", Format::binary32, "1,1,1,1,1,8,6").inputs.at(Input::prefix_len).values()[0], 1);
}

TEST(OrdinaryDraft, LogScalesLieOnBothSidesOfTheCap) {
  for (const Format format : formats) {
    const Case c = drawn("clause_scale_exp_per_head", format, "1,6,3,4,9,24,6");
    const std::vector<double> scale = c.inputs.at(Input::scale).values();
    ASSERT_EQ(scale.size(), 6U);
    EXPECT_EQ(distinct(scale), 6U);
    const double cap = c.contract.terms.logits.scale_exp_cap;
    EXPECT_EQ(std::count_if(scale.begin(), scale.end(), [&](double t) { return t < cap - 0.2; }), 3);
    EXPECT_EQ(std::count_if(scale.begin(), scale.end(), [&](double t) { return t > cap + 0.2; }), 3);
  }
}

TEST(OrdinaryDraft, AScalePerHeadKeepsScoresModest) {
  const std::vector<double> scale =
      drawn("clause_scale_per_head", Format::binary32, "1,6,3,4,9,24,6").inputs.at(Input::scale).values();
  ASSERT_EQ(scale.size(), 6U);
  EXPECT_EQ(distinct(scale), 6U);
  for (const double s : scale) {
    EXPECT_GT(s * 24, 4.9);  // rows of rms 1: the largest score
    EXPECT_LT(s * 24, 9.1);
  }
}

TEST(OrdinaryDraft, TheTemperatureStepsWithinTheRowsOfEveryBatchEntry) {
  const auto floors = [](const Case& c, std::size_t b) {
    const qkcts_logits& logits = c.contract.terms.logits;
    const std::vector<double> ids = c.inputs.at(Input::q_position_ids).values();
    std::vector<double> found;
    for (std::size_t t = 0; t < static_cast<std::size_t>(c.shape.q_len); ++t)
      found.push_back(std::floor((ids[b * static_cast<std::size_t>(c.shape.q_len) + t] + logits.query_shift) /
                                 logits.query_period));
    return found;
  };
  PlannedCase planned = sample_plan("clause_query_temperature", "gaussian", Format::binary32, "3,2,1,6,9,8,6");
  for (const double period : {1.0, 4.0, 64.0, 8192.0})
    for (const double shift : {0.0, 1.0, 5.0}) {
      planned.contract.terms.logits.query_period = period;
      planned.contract.terms.logits.query_shift = shift;
      const Case c = draw_case("gaussian", planned.contract, planned.shape, Format::binary32, 1).c;
      ASSERT_EQ(case_fault(c), "");
      std::set<double> firsts;
      for (std::size_t b = 0; b < 3; ++b) {
        const std::vector<double> found = floors(c, b);
        EXPECT_EQ(found[3], found[2] + 1) << "period " << period << ", shift " << shift;
        firsts.insert(found[0]);
      }
      EXPECT_EQ(firsts.size(), 3U);
    }
}

TEST(OrdinaryDraft, StepsTooFarAwayLeaveThePositionsAsTheyAre) {
  PlannedCase planned = sample_plan("clause_query_temperature", "gaussian", Format::binary32, "2,2,1,6,9,8,6");
  for (const auto& [period, shift] : {std::pair{0x1p53, 0.0}, {1.0, 0x1p53}, {0x1p53, 0x1p53}}) {
    planned.contract.terms.logits.query_period = period;
    planned.contract.terms.logits.query_shift = shift;
    EXPECT_EQ(case_fault(draw_case("gaussian", planned.contract, planned.shape, Format::binary32, 1).c), "");
    EXPECT_NE(family_fault("temperature_steps", planned.contract, planned.shape, Format::binary32), "");
  }
}

// With tables the ids are their rows; without, positions, and never those of the tables by accident.
TEST(OrdinaryDraft, PositionsWithoutTablesAreThemselves) {
  const auto plan = [](const char* contract) {
    const PlannedCase planned = sample_plan(contract, "gaussian", Format::binary32, "2,2,1,3,4,8,6");
    return draw_case(planned.family, planned.contract, planned.shape, planned.format, 1);
  };
  const DrawnCase table = plan("clause_rope_ntk"), computed = plan("clause_rope_computed");
  EXPECT_EQ(table.first_position, 3);
  EXPECT_GT(table.table_rows, 0);
  EXPECT_EQ(computed.first_position, 0);
  EXPECT_EQ(computed.table_rows, 0);
  EXPECT_FALSE(computed.c.inputs.has(Input::cos));
  for (const Input input : {Input::q_position_ids, Input::k_position_ids}) {
    const std::vector<double> rows = table.c.inputs.at(input).values(), ids = computed.c.inputs.at(input).values();
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i] + 3, ids[i]);
  }
}

TEST(OrdinaryDraft, TheRatioOfALogarithmPassesOneWithinTheFirstEntry) {
  const Case c = drawn("clause_query_temperature_ratio", Format::binary32, "2,2,1,6,9,8,6");
  const qkcts_logits& logits = c.contract.terms.logits;
  const std::vector<double> ids = c.inputs.at(Input::q_position_ids).values();
  const auto ratio = [&](std::size_t i) { return (ids[i] + logits.query_shift) / logits.query_period; };
  EXPECT_LT(ratio(2), 1);
  EXPECT_EQ(ratio(3), 1);
  EXPECT_GT(ratio(4), 1);
  EXPECT_GT(ratio(6), 1.5) << "the second entry stands further away";
}

// Who takes one axis for another is noticed: the widths are nobody else's extent, and differ from each other.
TEST(OrdinaryDraft, WhatIsProjectedHasAWidthOfItsOwn) {
  for (const char* shape : {"2,4,2,5,8,12,10", "1,1,1,1,1,8,8", "1,3,3,13,17,8,12", "2,4,4,7,11,2,16"})
    for (const char* family : {"gaussian", "tied"}) {
      const PlannedCase p = sample_plan("clause_projection_bias", family, Format::binary32, shape);
      const Case c = draw_case(family, p.contract, p.shape, p.format, 1).c;
      ASSERT_EQ(case_fault(c), "");
      const std::int64_t q = c.inputs.at(Input::q_x).shape[2], k = c.inputs.at(Input::k_x).shape[2];
      EXPECT_NE(q, k) << shape;
      const qkcts_shape& s = p.shape;
      for (const std::int64_t extent : {s.batch, s.q_heads, s.kv_heads, s.q_len, s.k_len, s.head_dim, s.v_head_dim,
                                        s.q_heads * s.head_dim, s.kv_heads * s.head_dim}) {
        EXPECT_NE(q, extent) << shape << " " << family;
        EXPECT_NE(k, extent) << shape << " " << family;
      }
    }
}

double mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return sum / static_cast<double>(values.size());
}

// Norms follow or not: q and k come out as large as they would be without a projection, and the bias is a good part.
TEST(OrdinaryDraft, AProjectionKeepsTheSizeAndItsBiasIsNotSmall) {
  for (const Format format : formats) {
    const Case c = drawn("clause_projection_bias", format, "2,4,2,20,30,24,10");
    for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
      const double size = mean_square(rows_of(c, side).values());
      EXPECT_GT(size, 0.8);
      EXPECT_LT(size, 2);
      const bool query = side == DraftSide::query;
      const double bias = mean_square(c.inputs.at(query ? Input::q_weight_bias : Input::k_weight_bias).values());
      EXPECT_GT(bias, 0.1);
    }
  }
}

// What a family wants of q and k is what its projection makes, bit for bit: the same draft without a projection has
// the same rows.
TEST(PlantedProjection, GivesTheRowsThatTheFamilyDrew) {
  for (const Format format : formats)
    for (const char* family : {"correlated", "norm40", "absorbed_tail", "subnormal", "tied"}) {
      PlannedCase p = sample_plan("clause_projection_bias", family, format, "2,4,2,5,8,12,10");
      Case projected = draw_case(family, p.contract, p.shape, format, 5).c;
      p.contract.terms.projection = {};
      const Case plain = draw_case(family, p.contract, p.shape, format, 5).c;
      EXPECT_EQ(rows_of(projected, DraftSide::query).values(), plain.inputs.at(Input::q).values()) << family;
      EXPECT_EQ(rows_of(projected, DraftSide::key).values(), plain.inputs.at(Input::k).values()) << family;
      Tensor& weight = *projected.inputs.tensors[static_cast<std::size_t>(Input::q_weight)];
      for (std::size_t i = 0; i < weight.count(); ++i)
        if (weight.value(i) == 1) weight.set_pattern(i, encode(format, -1));
      EXPECT_NE(rows_of(projected, DraftSide::query).values(), plain.inputs.at(Input::q).values()) << family;
    }
}

// Head h, pair i: the frequency of pair h R/2 + i of a rotation that is as wide as all heads.
TEST(TablesPerHead, AreThoseOfTheFullWidth) {
  const Case c = make_case(sample_plan("clause_rope_tables_per_head", "gaussian", Format::binary32, "1,3,3,5,8,12,10"));
  ASSERT_EQ(case_fault(c), "");
  const Tensor &cos = c.inputs.at(Input::cos), &sin = c.inputs.at(Input::sin);
  ASSERT_EQ(cos.shape, (std::vector<std::int64_t>{3, cos.shape[1], 6}));
  constexpr double first_position = 3;
  for (std::int64_t h = 0; h < 3; ++h)
    for (std::int64_t p = 0; p < cos.shape[1]; ++p)
      for (std::int64_t i = 0; i < 6; ++i) {
        const double exponent = -2.0 * static_cast<double>(h * 6 + i) / (3 * 12);
        const double angle =
            (first_position + static_cast<double>(p)) * std::pow(c.contract.terms.rope.theta, exponent);
        const auto at = static_cast<std::size_t>((h * cos.shape[1] + p) * 6 + i);
        EXPECT_NEAR(cos.value(at), std::cos(angle), 0x1p-24);
        EXPECT_NEAR(sin.value(at), std::sin(angle), 0x1p-24);
      }
}

}  // namespace
}  // namespace qkcts
