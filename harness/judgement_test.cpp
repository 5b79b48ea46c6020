// SPDX-License-Identifier: Apache-2.0
#include "harness/judgement.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "harness/handmade_case.hpp"

namespace qkcts {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr qkcts_stage probs = QKCTS_STAGE_PROBS;

StageJudgement judge(const std::vector<HandmadeElement>& elements, const std::vector<double>& got,
                     qkcts_stage stage = probs, Format storage = Format::binary32) {
  return judge_stage(one_row_case(stage, storage, elements), stage, 0, stage_bytes(stage_format(stage, storage), got));
}

TEST(Judgement, ValueWithinItsBudgetPassesAndValueBeyondFails) {
  const StageJudgement good = judge({{1.0, 0x1p-22f}}, {1.0 + 0x1p-22});
  EXPECT_EQ(good.verdict, Verdict::pass);
  EXPECT_EQ(good.max_ratio, 1.0);
  EXPECT_EQ(good.max_ulp, 2.0);
  const StageJudgement bad = judge({{1.0, 0x1p-22f}}, {1.0 + 0x1.8p-22});
  EXPECT_EQ(bad.verdict, Verdict::fail);
  ASSERT_EQ(bad.failures.size(), 1u);
  EXPECT_EQ(bad.failures[0].breach, Breach::budget);
  EXPECT_EQ(bad.max_ratio, 1.5);
}

// z = 1 + 100/256 ulp64: the low part decides both ways.
TEST(Judgement, LowPartOfTheExactValueDecides) {
  const float delta = 0x1p-53f;  // half an ulp64 of 1
  const auto at = [&](std::int16_t lo) {
    return judge({{1.0, delta, ElementRule::budget, Trust::judged, lo}}, {1.0}, probs, Format::binary64);
  };
  EXPECT_EQ(at(100).verdict, Verdict::pass);
  EXPECT_EQ(at(128).verdict, Verdict::pass);  // exactly on the border
  const StageJudgement above =
      judge({{1.0, delta, ElementRule::budget, Trust::judged, 100}}, {1.0 + 0x1p-52}, probs, Format::binary64);
  EXPECT_EQ(above.verdict, Verdict::fail);  // 156/256 ulp64 off
  EXPECT_EQ(at(129).verdict, Verdict::fail);
}

// Where the contract rounds a stage itself, Delta may be 0: the number of the point and no other.
TEST(Judgement, ADeltaOfZeroAllowsOneNumber) {
  for (const qkcts_stage stage : {probs, QKCTS_STAGE_V_NORM, QKCTS_STAGE_Q_PROJ, QKCTS_STAGE_SCORES}) {
    const HandmadeElement due = {0.0078125, 0.0f, ElementRule::budget_exact};
    EXPECT_EQ(judge({due}, {0.0078125}, stage).verdict, Verdict::pass) << stage_name(stage);
    EXPECT_EQ(judge({due}, {0.0078125}, stage).max_ratio, 0) << stage_name(stage);
    const StageJudgement beside = judge({due}, {0.0078125 + 0x1p-30}, stage);
    EXPECT_EQ(beside.verdict, Verdict::fail) << stage_name(stage);
    ASSERT_EQ(beside.failures.size(), 1U);
    EXPECT_EQ(beside.failures[0].breach, Breach::budget);
    EXPECT_TRUE(std::isinf(beside.max_ratio));
    EXPECT_EQ(judge({due}, {nan}, stage).verdict, Verdict::fail);
  }
  EXPECT_EQ(judge({{0.0, 0.0f, ElementRule::budget_exact}}, {-0.0}).verdict, Verdict::pass);
}

// Rows of keys that nobody sees are of QK-HIDDEN in every stage of keys and values, and are not judged.
TEST(Judgement, HiddenRowsOfKeysAndValuesAreNotJudged) {
  for (const qkcts_stage stage : {QKCTS_STAGE_K_PROJ, QKCTS_STAGE_K_NORM, QKCTS_STAGE_V_NORM, QKCTS_STAGE_K_ROPE}) {
    const JudgedElement element = judge_element(
        stage, Format::binary32, encode(Format::binary32, 5),
        one_row_case(stage, Format::binary32, {{nan, 0.0f, ElementRule::hidden}}).stages[stage], 0,
        one_row_case(stage, Format::binary32, {{nan, 0.0f, ElementRule::hidden}}).stages[stage].budgets[0], {});
    EXPECT_EQ(element.breach, Breach::none) << stage_name(stage);
    EXPECT_EQ(element.clause, "QK-HIDDEN-01") << stage_name(stage);
  }
}

// The trap of every checker that asks `error > tolerance`: NaN is never greater.
TEST(Judgement, NanNeverPassesAsANumber) {
  EXPECT_EQ(judge({{1.0, 1e30f}}, {nan}).verdict, Verdict::fail);
  EXPECT_EQ(judge({{0.0, 1e30f}}, {nan}).failures.at(0).breach, Breach::value_class);
  EXPECT_EQ(judge({{0.0, 0, ElementRule::exact_clause}}, {nan}).verdict, Verdict::fail);
  EXPECT_EQ(judge({{1.0, 2.0f, ElementRule::budget, Trust::mistrusted}}, {nan}).verdict, Verdict::fail);
}

TEST(Judgement, NanIsDueWhereTheContractSaysSo) {
  EXPECT_EQ(judge({{nan, 0, ElementRule::exact_clause}}, {nan}).verdict, Verdict::pass);
  EXPECT_EQ(judge({{nan, 0, ElementRule::exact_clause}}, {0.0}).failures.at(0).breach, Breach::value_class);
}

TEST(Judgement, InfinityIsNoLargeNumber) {
  EXPECT_EQ(judge({{1.0, 1e30f}}, {inf}).verdict, Verdict::fail);
  EXPECT_EQ(judge({{-inf, 0, ElementRule::exact_clause}}, {-inf}, QKCTS_STAGE_LSE).verdict, Verdict::pass);
  EXPECT_EQ(judge({{-inf, 0, ElementRule::exact_clause}}, {-1e38}, QKCTS_STAGE_LSE).verdict, Verdict::fail);
}

// binary16: largest 65504, ulp 32, so that results from 65520 on round to infinity.
TEST(Judgement, BothSidesOfTheOverflowThresholdAreAcceptedWithinDelta) {
  const auto verdict = [](double z, float delta, double got) {
    return judge({{z, delta}}, {got}, QKCTS_STAGE_OUTPUT, Format::binary16).verdict;
  };
  EXPECT_EQ(verdict(65500, 20, inf), Verdict::pass);   // 65500 + 20 reaches 65520
  EXPECT_EQ(verdict(65500, 19, inf), Verdict::fail);   // 65519 does not
  EXPECT_EQ(verdict(65500, 20, -inf), Verdict::fail);  // the wrong side
  EXPECT_EQ(verdict(-65500, 20, -inf), Verdict::pass);
  EXPECT_EQ(verdict(65530, 26, 65504), Verdict::pass);  // infinity is expected, 65504 is within Delta
  EXPECT_EQ(verdict(65530, 25, 65504), Verdict::fail);
  EXPECT_EQ(verdict(70000, 10, inf), Verdict::pass);  // beyond the threshold for certain
  EXPECT_EQ(verdict(70000, 10, 65504), Verdict::fail);
}

// QK-SPECIAL-04. An infinity may come out as NaN, for sums may be compensated; a number never does.
TEST(Judgement, ClassesAfterSpecialValues) {
  const auto verdict = [](ElementRule rule, double due, double got) { return judge({{due, 0, rule}}, {got}).verdict; };
  EXPECT_EQ(verdict(ElementRule::special, nan, nan), Verdict::pass);
  EXPECT_EQ(verdict(ElementRule::special, nan, 0.0), Verdict::fail);
  EXPECT_EQ(verdict(ElementRule::special, nan, inf), Verdict::fail);
  EXPECT_EQ(verdict(ElementRule::special, inf, inf), Verdict::pass);
  EXPECT_EQ(verdict(ElementRule::special, inf, nan), Verdict::pass);
  EXPECT_EQ(verdict(ElementRule::special, inf, -inf), Verdict::fail);
  EXPECT_EQ(verdict(ElementRule::special, inf, 3e38), Verdict::fail);
  EXPECT_EQ(verdict(ElementRule::not_finite, nan, -inf), Verdict::pass);
  EXPECT_EQ(verdict(ElementRule::not_finite, nan, nan), Verdict::pass);
  EXPECT_EQ(verdict(ElementRule::not_finite, nan, 3e38), Verdict::fail);
  EXPECT_EQ(judge({{nan, 0, ElementRule::special}}, {0.0}).failures.at(0).clause, "QK-SPECIAL");
  EXPECT_EQ(judge({{nan, 0, ElementRule::special}}, {nan}).counts.exact, 1u);
}

TEST(Judgement, OpenElementsAreNoPass) {
  constexpr float none = std::numeric_limits<float>::infinity();
  const HandmadeElement open = {nan, none, ElementRule::free, Trust::domain};
  for (const double got : {0.0, nan, inf}) EXPECT_EQ(judge({open}, {got}).verdict, Verdict::domain);
  EXPECT_EQ(judge({open, {1.0, 0.5f}}, {nan, 1.0}).counts.domain, 1u);
}

TEST(Judgement, ZeroesOfEitherSignAreOneValue) {
  EXPECT_EQ(judge({{0.0, 0, ElementRule::exact_clause}}, {-0.0}).verdict, Verdict::pass);
  EXPECT_EQ(judge({{0.0, 0}}, {-0.0}).verdict, Verdict::pass);
  EXPECT_EQ(judge({{0.0, 0}}, {-0.0}).max_ratio, 0.0);
}

TEST(Judgement, ExactClauseHasNoTolerance) {
  const StageJudgement leak = judge({{0.0, 1.0f, ElementRule::exact_clause}}, {1e-40});
  EXPECT_EQ(leak.verdict, Verdict::fail);
  EXPECT_EQ(leak.failures.at(0).breach, Breach::exact_clause);
  EXPECT_EQ(leak.counts.exact, 1u);
}

TEST(Judgement, MistrustedElementsCanFailButNeverMakeAPass) {
  const HandmadeElement mistrusted = {1.0, 2.0f, ElementRule::budget, Trust::mistrusted};
  EXPECT_EQ(judge({mistrusted}, {1.0}).verdict, Verdict::mistrusted);
  EXPECT_EQ(judge({mistrusted}, {4.0}).verdict, Verdict::fail);
  const StageJudgement mixed = judge({mistrusted, {1.0, 0.5f}}, {1.0, 1.0});
  EXPECT_EQ(mixed.verdict, Verdict::pass);
  EXPECT_EQ(mixed.counts.mistrusted, 1u);
  EXPECT_EQ(mixed.counts.judged, 1u);
}

TEST(Judgement, DomainElementsAreCountedApartAndNeverJudged) {
  const HandmadeElement domain = {1.0, std::numeric_limits<float>::infinity(), ElementRule::budget, Trust::domain};
  EXPECT_EQ(judge({domain}, {nan}).verdict, Verdict::domain);
  EXPECT_EQ(judge({domain}, {nan}).counts.domain, 1u);
  EXPECT_EQ(judge({domain, {1.0, 0.5f}}, {inf, 1.0}).verdict, Verdict::pass);
}

// Keys that no query sees, under hidden_values excluded: whatever the kernel makes of their NaN.
TEST(Judgement, HiddenKeysAreFreeButWritten) {
  const HandmadeElement hidden = {nan, 0, ElementRule::hidden};
  for (const qkcts_stage stage : {QKCTS_STAGE_K_NORM, QKCTS_STAGE_K_ROPE}) {
    for (const double got : {nan, inf, 3.0}) {
      const StageJudgement result = judge({hidden, {1.0, 0.5f}}, {got, 1.0}, stage);
      EXPECT_EQ(result.verdict, Verdict::pass);
      EXPECT_EQ(result.counts.hidden, 1u);
    }
    EXPECT_EQ(judge({hidden, {1.0, 0.5f}}, {nan, 2.0}, stage).verdict, Verdict::fail);
    const GoldenCase golden = one_row_case(stage, Format::binary32, {hidden, {1.0, 0.5f}});
    std::vector<std::byte> bytes = stage_bytes(Format::binary32, {1.0, 1.0});
    const std::uint64_t poison = poison_pattern(Format::binary32);
    std::memcpy(bytes.data(), &poison, 4);
    const StageJudgement unwritten = judge_stage(golden, stage, 0, bytes);
    EXPECT_EQ(unwritten.verdict, Verdict::error_unwritten);
    EXPECT_EQ(unwritten.failures.at(0).clause, "QK-HIDDEN-01");
  }
}

TEST(Judgement, HiddenPositionsOfScoresAreFree) {
  const HandmadeElement hidden = {3.0, 0, ElementRule::hidden};
  EXPECT_EQ(judge({hidden, {1.0, 0.5f}}, {nan, 1.0}, QKCTS_STAGE_SCORES).verdict, Verdict::pass);
  EXPECT_EQ(judge({hidden}, {3.0}, QKCTS_STAGE_SCORES).verdict, Verdict::skipped);  // nothing judged is no pass
}

// A sentinel must be so low that its exponential is 0 in binary32: more than 103.97 below the row maximum.
TEST(Judgement, SentinelsAreMeasuredFromTheRowMaximum) {
  const HandmadeElement hidden = {-inf, 0, ElementRule::hidden}, visible = {-9950.0, 1.0f};
  const auto verdict = [&](double sentinel) {
    return judge({hidden, visible}, {sentinel, -9950.0}, QKCTS_STAGE_MASKED).verdict;
  };
  EXPECT_EQ(verdict(-inf), Verdict::pass);
  EXPECT_EQ(verdict(-1e30), Verdict::pass);
  EXPECT_EQ(verdict(-10054.5), Verdict::pass);
  EXPECT_EQ(verdict(-10000.0), Verdict::fail);  // "very negative" is not enough: exp(-50) is visible
  EXPECT_EQ(verdict(-10053.5), Verdict::fail);  // exp(-103.5) = 1.12e-45 is the smallest subnormal
  EXPECT_EQ(verdict(nan), Verdict::fail);
  EXPECT_EQ(verdict(inf), Verdict::fail);
}

// In base 2 the weight is 2^x: 150 below the maximum, not 104.
TEST(Judgement, SentinelsOfBaseTwoAreMeasuredInIt) {
  GoldenCase golden = one_row_case(QKCTS_STAGE_MASKED, Format::binary32, {{-inf, 0, ElementRule::hidden}, {0.0, 1.0f}});
  const auto verdict = [&](double sentinel) {
    return judge_stage(golden, QKCTS_STAGE_MASKED, 0, stage_bytes(Format::binary32, {sentinel, 0.0})).verdict;
  };
  EXPECT_EQ(verdict(-110.0), Verdict::pass);
  golden.input.contract.terms.softmax.base = QKCTS_BASE_TWO;
  EXPECT_EQ(verdict(-110.0), Verdict::fail);
  EXPECT_EQ(verdict(-149.0), Verdict::fail);
  EXPECT_EQ(verdict(-151.0), Verdict::pass);
}

// A row that only the sink fills is no empty row: what it returns is the sink's clause.
TEST(Judgement, ARowOfTheSinkAloneIsItsClause) {
  GoldenCase golden = one_row_case(QKCTS_STAGE_OUTPUT, Format::binary32, {{0.0, 0, ElementRule::exact_clause}});
  const auto clause = [&] {
    return judge_stage(golden, QKCTS_STAGE_OUTPUT, 0, stage_bytes(Format::binary32, {1.0})).failures.at(0).clause;
  };
  EXPECT_EQ(clause(), "QK-EMPTY-01");
  golden.input.contract.terms.softmax.sink = QKCTS_SINK_COLUMN;
  EXPECT_EQ(clause(), "QK-SINK-01");
}

TEST(Judgement, RowWithoutVisibleKeysAdmitsAnySentinelButNoNan) {
  const HandmadeElement hidden = {-inf, 0, ElementRule::hidden};
  EXPECT_EQ(judge({hidden, hidden}, {-1e9, -inf}, QKCTS_STAGE_MASKED).verdict, Verdict::skipped);
  EXPECT_EQ(judge({hidden, hidden}, {-1e9, nan}, QKCTS_STAGE_MASKED).verdict, Verdict::fail);
}

TEST(Judgement, UnwrittenElementsHaveAVerdictOfTheirOwnInEveryFormat) {
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16}) {
    const GoldenCase golden = one_row_case(QKCTS_STAGE_OUTPUT, format, {{1.0, 0.5f}, {1.0, 0.5f}});
    std::vector<std::byte> bytes = stage_bytes(format, {1.0, 1.0});
    EXPECT_EQ(judge_stage(golden, QKCTS_STAGE_OUTPUT, 0, bytes).verdict, Verdict::pass);
    const std::uint64_t poison = poison_pattern(format);
    std::memcpy(bytes.data() + bytes.size() / 2, &poison, bytes.size() / 2);
    const StageJudgement result = judge_stage(golden, QKCTS_STAGE_OUTPUT, 0, bytes);
    EXPECT_EQ(result.verdict, Verdict::error_unwritten);
    EXPECT_EQ(result.unwritten, 1u);
    EXPECT_EQ(result.first_unwritten->column, 1u);
    EXPECT_EQ(result.failures.at(0).place.column, 1u);
  }
}

TEST(Judgement, PoisonIsASignallingNanOfEachFormat) {
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16}) {
    const std::uint64_t pattern = poison_pattern(format);
    EXPECT_TRUE(std::isnan(decode(format, pattern)));
    const int quiet_bit = parameters(format).precision - 2;
    EXPECT_EQ(pattern >> quiet_bit & 1, 0u) << parameters(format).name;
  }
}

TEST(Judgement, UnwrittenRowsThatAreNotStoredAreFoundToo) {
  GoldenCase golden = one_row_case(QKCTS_STAGE_OUTPUT, Format::binary32, {{1.0, 0.5f}});
  golden.input.shape.q_len = 2;  // the second row is not stored
  std::vector<std::byte> bytes = stage_bytes(Format::binary32, {1.0, 1.0});
  EXPECT_EQ(judge_stage(golden, QKCTS_STAGE_OUTPUT, 0, bytes).verdict, Verdict::pass);
  const std::uint64_t poison = poison_pattern(Format::binary32);
  std::memcpy(bytes.data() + 4, &poison, 4);
  EXPECT_EQ(judge_stage(golden, QKCTS_STAGE_OUTPUT, 0, bytes).verdict, Verdict::error_unwritten);
}

TEST(Judgement, StoredRowsAreFoundInTheWholeTensor) {
  GoldenCase golden = one_row_case(QKCTS_STAGE_OUTPUT, Format::binary32, {{7.0, 0.5f}});
  golden.input.shape.q_len = 3;
  golden.stages[QKCTS_STAGE_OUTPUT].values.rows = {2};
  const auto verdict = [&](double third) {
    return judge_stage(golden, QKCTS_STAGE_OUTPUT, 0, stage_bytes(Format::binary32, {0, 0, third}));
  };
  EXPECT_EQ(verdict(7).verdict, Verdict::pass);
  EXPECT_EQ(verdict(8).verdict, Verdict::fail);
  EXPECT_EQ(coordinate_text(QKCTS_STAGE_OUTPUT, golden.input.shape, verdict(8).failures.at(0).place), "b0 h0 t2 c0");
}

TEST(Judgement, StatisticsDescribeTheErrorsInUlp) {
  const double ulp = 0x1p-23;
  const StageJudgement result =
      judge({{1.0, 1.0f}, {1.0, 1.0f}, {1.0, 1.0f}, {1.0, 1.0f}}, {1.0, 1.0 + ulp, 1.0 - ulp, 1.0 + 3 * ulp});
  EXPECT_EQ(result.max_ulp, 3.0);
  EXPECT_EQ(result.mean_ulp, 1.25);
  EXPECT_EQ(result.signed_mean_ulp, 0.75);
  EXPECT_EQ(result.p99_ulp, 3.0);
  EXPECT_EQ(result.histogram[0], 1u);  // exactly right
  EXPECT_EQ(result.histogram[4], 2u);  // (1/2, 1]
  EXPECT_EQ(result.histogram[6], 1u);  // (2, 4]
  EXPECT_EQ(result.worst->place.column, 3u);
}

TEST(Judgement, OwnLimitIsJudgedBesideDeltaAndNeverInsteadOfIt) {
  const GoldenCase golden = one_row_case(QKCTS_STAGE_OUTPUT, Format::binary32, {{1.0, 0x1p-20f}});
  const auto judged = [&](double got, const Limit& limit) {
    return judge_stage(golden, QKCTS_STAGE_OUTPUT, 0, stage_bytes(Format::binary32, {got}), limit);
  };
  Limit two_ulp;
  two_ulp.max_ulp = 2;
  EXPECT_EQ(judged(1.0 + 0x1p-22, two_ulp).limit->violations, 0u);
  const StageJudgement strict = judged(1.0 + 0x1.8p-22, two_ulp);  // 3 ulp, well inside Delta
  EXPECT_EQ(strict.verdict, Verdict::pass);
  EXPECT_EQ(strict.limit->violations, 1u);
  Limit lax;
  lax.atol = 1;
  lax.rtol = 1;
  const StageJudgement wrong = judged(1.5, lax);
  EXPECT_EQ(wrong.verdict, Verdict::fail);
  EXPECT_EQ(wrong.limit->violations, 0u);
  Limit ratio;
  ratio.max_ratio = 0.5;
  EXPECT_EQ(judged(1.0 + 0x1.8p-21, ratio).limit->violations, 1u);
  EXPECT_EQ(judged(nan, lax).limit->violations, 1u);
}

}  // namespace
}  // namespace qkcts
