// SPDX-License-Identifier: Apache-2.0
// A stage judged in blocks against its elements judged one by one: every figure of the report, whatever stands there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "harness/handmade_case.hpp"
#include "harness/judgement.hpp"

namespace qkcts {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
constexpr std::array<Format, 4> all_formats = {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16};

// Rows of a stage, of which every other one is stored, and what was returned.
struct Stage {
  qkcts_stage stage = QKCTS_STAGE_PROBS;
  Format format = Format::binary32;  // in which it is stored
  GoldenCase golden;
  std::vector<std::byte> got;

  std::size_t size() const { return static_cast<std::size_t>(parameters(format).bits / 8); }
  std::uint64_t pattern(std::size_t element) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, got.data() + element * size(), size());
    return bits;
  }
};

// What makes one stage differ from another: how many elements are what in 1000.
struct Mixture {
  unsigned other_rule = 0, other_trust = 0, hostile_value = 0, hostile_got = 0, poison = 0, zero = 0;
  double spread = 3;  // of got around z, in units of the least Delta
};

double pick(std::mt19937_64& random, std::initializer_list<double> of) {
  return of.begin()[random() % of.size()];
}

Stage stage_of(qkcts_stage kind, Format storage, std::size_t rows, std::size_t length, const Mixture& mixture,
               std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> mantissa(-2, 2);
  const auto one_in_thousand = [&](unsigned n) { return random() % 1000 < n; };
  Stage made{kind, stage_format(kind, storage), {}, {}};
  std::vector<HandmadeElement> elements;
  std::vector<std::uint64_t> patterns;
  for (std::size_t i = 0; i < rows * length; ++i) {
    HandmadeElement e;
    e.hi = std::ldexp(mantissa(random), static_cast<int>(random() % 24) - 20);
    e.lo = static_cast<std::int16_t>(random() % 257) - 128;
    double unit = ulp(made.format, e.hi);
    if (one_in_thousand(mixture.hostile_value)) {
      e.hi =
          pick(random, {0, -0.0, nan, inf, -inf, 0x1p-130, -0x1p-810, 0x1p-1074, 65519, 0x1.fffffep127, 0x1p1010, 1});
      e.lo = random() % 2 == 0 ? std::int16_t{0} : static_cast<std::int16_t>(random());
      if (!std::isfinite(e.hi)) e.lo = 0;
      unit = std::isfinite(e.hi) ? ulp(made.format, e.hi) : 1;
      e.delta = static_cast<float>(pick(random, {0, 0x1p-149, 0x1p-120, 0x1p-20, 1, 20, 0x1.fffffep127, inf}));
    } else {
      e.delta = static_cast<float>(unit * static_cast<double>(random() % 8 + 1));
    }
    if (one_in_thousand(mixture.other_rule)) {
      e.rule = static_cast<ElementRule>(random() % 7);
      if (e.rule == ElementRule::not_finite || e.rule == ElementRule::free) e.hi = nan;
    }
    if (one_in_thousand(mixture.other_trust)) e.trust = random() % 2 == 0 ? Trust::mistrusted : Trust::domain;
    const double off = static_cast<double>(e.delta) < inf ? mixture.spread * static_cast<double>(e.delta) / 2 : 1;
    std::uint64_t got = encode(made.format, e.hi + off * mantissa(random));
    if (one_in_thousand(mixture.hostile_got))
      got = encode(made.format, pick(random, {0, -0.0, nan, inf, -inf, e.hi, -e.hi, e.hi * 2, 1, 0x1p-149}));
    if (one_in_thousand(mixture.hostile_got))
      got = random() & (~std::uint64_t{0} >> (64 - parameters(made.format).bits));
    if (one_in_thousand(mixture.zero)) got = 0;
    if (one_in_thousand(mixture.poison)) got = poison_pattern(made.format);
    elements.push_back(e);
    patterns.push_back(got);
  }
  made.golden = one_row_case(kind, storage, elements);
  made.golden.input.shape.q_len = static_cast<std::int64_t>(2 * rows + 1);
  made.golden.input.shape.k_len = static_cast<std::int64_t>(length);
  std::vector<std::uint32_t>& stored = made.golden.stages[kind].values.rows;
  stored.clear();
  made.got.resize((2 * rows + 1) * length * made.size());
  for (std::size_t row = 0; row < rows; ++row) {
    stored.push_back(static_cast<std::uint32_t>(2 * row + 1));
    for (std::size_t column = 0; column < length; ++column)
      std::memcpy(made.got.data() + ((2 * row + 1) * length + column) * made.size(), &patterns[row * length + column],
                  made.size());
  }
  if (mixture.poison > 0) {  // in a row that nobody looks at, too
    const std::uint64_t poison = poison_pattern(made.format);
    std::memcpy(made.got.data() + 2 * length * made.size(), &poison, made.size());
  }
  return made;
}

// A report by the book: one element after the other, everything kept.
struct Plain {
  ElementCounts counts;
  std::vector<JudgedElement> failures;
  std::optional<JudgedElement> worst;
  std::vector<double> ulps;
  double sum = 0, signed_sum = 0, outward_sum = 0, max_ratio = 0;
  HeatMap heat;
  std::uint64_t unwritten = 0;
};

void count(const JudgedElement& e, ElementCounts& counts) {
  const bool by_delta = e.rule == ElementRule::budget || e.rule == ElementRule::budget_exact;
  if (e.breach != Breach::none) ++counts.failed;
  if (e.rule == ElementRule::hidden) {
    ++counts.hidden;
  } else if (e.rule == ElementRule::free || (by_delta && e.trust == Trust::domain)) {
    ++counts.domain;
  } else if (!by_delta) {
    ++counts.exact;
  } else {
    ++(e.trust == Trust::mistrusted ? counts.mistrusted : counts.judged);
  }
}

Plain plain_judgement(const Stage& made) {
  const GoldenStage& stage = made.golden.stages[made.stage];
  const auto length = static_cast<std::size_t>(made.golden.input.shape.k_len);
  Plain plain;
  plain.heat = HeatMap(stage.values.rows.size(), length);
  for (std::size_t i = 0; i < made.got.size() / made.size(); ++i)
    plain.unwritten += made.pattern(i) == poison_pattern(made.format) ? 1 : 0;
  for (std::size_t i = 0; i < stage.values.hi.size(); ++i) {
    const std::size_t stored = i / length, row = stage.values.rows[stored], column = i % length;
    const RowContext context =
        row_context(stage.values, stored * length, length, made.golden.input.contract.terms.softmax);
    JudgedElement e = judge_element(made.stage, made.golden.input.inputs.format, made.pattern(row * length + column),
                                    stage, i, stage.budgets[0], context);
    e.place = {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column)};
    count(e, plain.counts);
    const bool failed = e.breach != Breach::none;
    if (failed && plain.failures.size() < failures_kept) plain.failures.push_back(e);
    const bool measured =
        e.trust != Trust::domain && (e.rule == ElementRule::budget || e.rule == ElementRule::budget_exact);
    if (measured) {
      plain.ulps.push_back(e.ulps);
      plain.sum += e.ulps;
      plain.signed_sum += e.got_value < e.exact.hi ? -e.ulps : e.ulps;
      plain.outward_sum += std::fabs(e.got_value) < std::fabs(e.exact.hi) ? -e.ulps : e.ulps;
      plain.max_ratio = std::max(plain.max_ratio, e.ratio);
    }
    if (!measured && !failed) continue;
    plain.heat.add(stored, column, e.ratio);
    if (!plain.worst || std::tie(e.ratio, e.ulps) > std::tie(plain.worst->ratio, plain.worst->ulps)) plain.worst = e;
  }
  return plain;
}

void expect_same_element(const JudgedElement& a, const JudgedElement& b) {
  EXPECT_EQ(a.place.row, b.place.row);
  EXPECT_EQ(a.place.column, b.place.column);
  EXPECT_EQ(a.got, b.got);
  EXPECT_EQ(a.expected, b.expected);
  EXPECT_EQ(a.breach, b.breach);
  EXPECT_EQ(a.clause, b.clause);
  EXPECT_EQ(a.ulps, b.ulps);
  EXPECT_EQ(a.ratio, b.ratio);
}

// Two orders of adding n numbers differ by at most n 2^-52 of the sum of their magnitudes.
void expect_mean(double mean, double sum, const Plain& plain) {
  const auto n = static_cast<double>(plain.ulps.size());
  if (std::isfinite(plain.sum)) {
    EXPECT_NEAR(mean, sum / n, 0x1p-52 * (plain.sum + sum / n));
  } else {
    EXPECT_EQ(std::isnan(mean), std::isnan(sum));
    EXPECT_TRUE(std::isnan(sum) || mean == sum / n) << mean << " " << sum;
  }
}

void expect_spread(const StageJudgement& whole, const Plain& plain) {
  std::vector<double> ulps = plain.ulps;
  std::sort(ulps.begin(), ulps.end());
  std::array<std::uint64_t, histogram_edges.size() + 1> histogram{};
  for (const double u : ulps)
    ++histogram[static_cast<std::size_t>(std::lower_bound(histogram_edges.begin(), histogram_edges.end(), u) -
                                         histogram_edges.begin())];
  EXPECT_EQ(whole.histogram, histogram);
  EXPECT_EQ(whole.max_ratio, plain.max_ratio);
  if (ulps.empty()) return;
  EXPECT_EQ(whole.p99_ulp, ulps[(ulps.size() * 99 + 99) / 100 - 1]);
  EXPECT_EQ(whole.max_ulp, ulps.back());
  expect_mean(whole.mean_ulp, plain.sum, plain);
  expect_mean(whole.signed_mean_ulp, plain.signed_sum, plain);
  expect_mean(whole.outward_mean_ulp, plain.outward_sum, plain);
}

void expect_heat(const HeatMap& heat, const HeatMap& plain) {
  for (std::size_t row = 0; row < plain.rows(); ++row)
    for (std::size_t column = 0; column < plain.columns(); ++column) {
      const auto due = static_cast<double>(plain.at(row, column)), is = static_cast<double>(heat.at(row, column));
      EXPECT_TRUE(is == due || std::fabs(is - due) <= due * 0x1p-21 + 0x1p-49) << is << " " << due;
    }
}

Verdict expect_same(const Stage& made) {
  const Plain plain = plain_judgement(made);
  const StageJudgement whole = judge_stage(made.golden, made.stage, 0, made.got);
  EXPECT_EQ(whole.counts.judged, plain.counts.judged);
  EXPECT_EQ(whole.counts.exact, plain.counts.exact);
  EXPECT_EQ(whole.counts.mistrusted, plain.counts.mistrusted);
  EXPECT_EQ(whole.counts.domain, plain.counts.domain);
  EXPECT_EQ(whole.counts.hidden, plain.counts.hidden);
  EXPECT_EQ(whole.counts.failed, plain.counts.failed);
  EXPECT_EQ(whole.unwritten, plain.unwritten);
  EXPECT_EQ(whole.failures.size(), plain.failures.size());
  for (std::size_t i = 0; i < std::min(whole.failures.size(), plain.failures.size()); ++i)
    expect_same_element(whole.failures[i], plain.failures[i]);
  EXPECT_EQ(whole.worst.has_value(), plain.worst.has_value());
  if (whole.worst && plain.worst) expect_same_element(*whole.worst, *plain.worst);
  expect_spread(whole, plain);
  expect_heat(whole.heat, plain.heat);
  const std::uint64_t sure = plain.counts.judged + plain.counts.exact;
  EXPECT_EQ(whole.verdict == Verdict::error_unwritten, plain.unwritten > 0);
  EXPECT_EQ(whole.verdict == Verdict::pass, plain.unwritten == 0 && plain.counts.failed == 0 && sure > 0);
  EXPECT_EQ(whole.verdict == Verdict::fail, plain.unwritten == 0 && plain.counts.failed > 0);
  return whole.verdict;
}

// Every figure, with what may stand in a stage more and more mixed.
TEST(StageJudgement, IsTheSumOfItsElements) {
  const std::vector<Mixture> mixtures = {{0, 0, 0, 0, 0, 0, 0.4},        {0, 0, 0, 0, 0, 0, 3},
                                         {3, 3, 0, 0, 0, 0, 0.4},        {0, 0, 0, 0, 0, 1000, 1},
                                         {300, 30, 3, 3, 0, 0, 1},       {0, 0, 1000, 300, 0, 0, 1},
                                         {500, 300, 300, 300, 0, 30, 3}, {0, 0, 0, 0, 3, 0, 0.4},
                                         {100, 100, 100, 100, 10, 0, 2}, {0, 0, 2, 0, 0, 300, 0}};
  std::array<std::size_t, 16> verdicts{};
  for (const qkcts_stage stage : {QKCTS_STAGE_PROBS, QKCTS_STAGE_SCORES, QKCTS_STAGE_MASKED})
    for (const Format format : all_formats)
      for (std::size_t m = 0; m < mixtures.size(); ++m)
        for (const std::size_t length : {1, 7, 48, 64, 65, 200, 257, 300, 513, 640}) {
          const Verdict verdict =
              expect_same(stage_of(stage, format, length == 48 ? 40 : 3, length, mixtures[m], 100 * m + length));
          ASSERT_FALSE(testing::Test::HasFailure())
              << stage_name(stage) << " " << parameters(format).name << " mixture " << m << " length " << length;
          ++verdicts[static_cast<std::size_t>(verdict)];
        }
  for (const Verdict verdict : {Verdict::pass, Verdict::fail, Verdict::error_unwritten})
    EXPECT_GT(verdicts[static_cast<std::size_t>(verdict)], 50U) << "each is met";
}

// One wrong element anywhere among thousands that are right.
TEST(StageJudgement, OneWrongElementIsFoundAnywhere) {
  for (const Format format : all_formats) {
    Stage made = stage_of(QKCTS_STAGE_PROBS, format, 3, 200, {0, 0, 0, 0, 0, 0, 0.4}, 5);
    for (std::size_t i = 0; i < 600; i += 7) {
      StageBudget& budget = made.golden.stages[made.stage].budgets[0];
      const float before = budget.delta[i];
      const double hi = made.golden.stages[made.stage].values.hi[i];
      const std::size_t place = ((2 * (i / 200) + 1) * 200 + i % 200) * made.size();
      const std::uint64_t was = made.pattern(place / made.size());
      const std::uint64_t wrong = encode(format, hi + 1.01 * static_cast<double>(before) + 2 * ulp(format, hi));
      std::memcpy(made.got.data() + place, &wrong, made.size());
      const StageJudgement judgement = judge_stage(made.golden, made.stage, 0, made.got);
      ASSERT_EQ(judgement.verdict, Verdict::fail);
      ASSERT_EQ(judgement.counts.failed, 1U);
      ASSERT_EQ(judgement.failures.at(0).place.column, i % 200);
      std::memcpy(made.got.data() + place, &was, made.size());
    }
  }
}

// All at the same part of Delta, so that ulps say which is the worst, and the first of equal ones it is.
TEST(StageJudgement, TheWorstOfEqualOnesIsTheSame) {
  for (const Format format : all_formats)
    for (const std::size_t count : {1, 63, 64, 99, 100, 101, 128, 199, 256, 257, 513, 1025}) {
      std::mt19937_64 random(count);
      Stage row{QKCTS_STAGE_PROBS, format, {}, {}}, rising = row;
      std::vector<HandmadeElement> elements, rising_elements;
      std::vector<double> got, rising_got;
      const double unit = ulp(format, 1);
      for (std::size_t i = 0; i < count; ++i) {
        const double off = unit * static_cast<double>(random() % 4 + 1);
        const Trust trust = random() % 3 == 0 ? Trust::mistrusted : Trust::judged;  // which is judged in its own way
        elements.push_back({1, static_cast<float>(2 * off), ElementRule::budget, trust, 0});
        got.push_back(1 + off);
        const double step = unit * static_cast<double>(1 + i / 64);
        rising_elements.push_back({1, static_cast<float>(2 * step), ElementRule::budget, Trust::judged, 0});
        rising_got.push_back(1 + step);
      }
      row.golden = one_row_case(row.stage, format, elements);
      row.got = stage_bytes(format, got);
      rising.golden = one_row_case(row.stage, format, rising_elements);
      rising.got = stage_bytes(format, rising_got);
      const Verdict verdict = expect_same(row);
      EXPECT_TRUE(verdict == Verdict::pass || count == 1);
      EXPECT_EQ(expect_same(rising), Verdict::pass);
    }
}

// Nothing is off at all: the first element is the worst.
TEST(StageJudgement, OfExactElementsTheFirstIsTheWorst) {
  for (const Format format : all_formats) {
    Stage row{QKCTS_STAGE_PROBS, format, {}, {}};
    const std::vector<HandmadeElement> elements(600, {1, 0x1p-20f, ElementRule::budget, Trust::judged, 0});
    row.golden = one_row_case(row.stage, format, elements);
    row.got = stage_bytes(format, std::vector<double>(elements.size(), 1));
    EXPECT_EQ(expect_same(row), Verdict::pass);
  }
}

}  // namespace
}  // namespace qkcts
