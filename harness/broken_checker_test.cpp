// SPDX-License-Identifier: Apache-2.0
// Who checks the checker: a list of outputs with what is due to each. The judge agrees with all of it, and every broken
// judge of the catalogue (kind harness) is caught by some line.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "harness/case_run.hpp"
#include "harness/handmade_case.hpp"
#include "harness/judgement.hpp"

namespace qkcts {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr qkcts_stage stage = QKCTS_STAGE_OUTPUT;

struct Line {
  const char* what;
  Format storage;
  std::vector<HandmadeElement> due;
  std::vector<double> got;
  bool passes;
  std::optional<std::size_t> unwritten = {};  // where the poison still stands
  std::optional<Limit> limit = {};            // of the user
};

std::vector<std::byte> bytes_of(const Line& line) {
  const Format format = stage_format(stage, line.storage);
  std::vector<std::byte> bytes = stage_bytes(format, line.got);
  const std::uint64_t poison = poison_pattern(format);
  const std::size_t size = bytes.size() / line.got.size();
  if (line.unwritten) std::memcpy(bytes.data() + *line.unwritten * size, &poison, size);
  return bytes;
}

Verdict judged(const Line& line, const std::vector<std::byte>& bytes) {
  return judge_stage(one_row_case(stage, line.storage, line.due), stage, 0, bytes, line.limit).verdict;
}

// Budgets of a good kernel: half an ulp for the store and a little more for the sums.
std::vector<HandmadeElement> elements(const std::vector<double>& values, double relative) {
  std::vector<HandmadeElement> list;
  for (const double value : values) list.push_back({value, static_cast<float>(std::abs(value) * relative)});
  return list;
}

std::vector<double> times(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

// Truncated to the 8 bits of a significand of bfloat16.
std::vector<double> truncated(std::vector<double> values) {
  for (double& value : values) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    value = std::ldexp(std::floor(fraction * 256) / 256, exponent);
  }
  return values;
}

const std::vector<Line>& lines() {
  static const std::vector<Line> list = [] {
    const std::vector<double> ordinary = {0.75, -1.25, 0.5, 2.5};
    const std::vector<double> small = times(ordinary, 0x1p-20);
    const std::vector<double> long_fractions = {1.2633, 1.7476, 1.1227, 1.9038};
    std::vector<HandmadeElement> due_16;  // six tenths of an ulp of bfloat16
    for (const double value : long_fractions) due_16.push_back({value, 0x1.3p-8f});
    const std::vector<HandmadeElement> due = elements(ordinary, 0x1p-22);
    std::vector<double> one_off = ordinary;
    one_off[2] *= 1.0625;
    const auto with = [&](double special) {
      std::vector<double> values = ordinary;
      values[1] = special;
      return values;
    };
    std::vector<HandmadeElement> nan_due = due, infinity_due = due;
    nan_due[1] = {nan, 0, ElementRule::special};
    infinity_due[1] = {inf, 0, ElementRule::special};
    std::vector<double> slightly_off = ordinary;
    slightly_off[0] *= 1 + 0x1p-16;
    Limit lax;
    lax.atol = 1;
    return std::vector<Line>{
        {"the right values", Format::binary32, due, ordinary, true},
        {"the right small values", Format::binary32, elements(small, 0x1p-22), small, true},
        {"values to the nearest of bfloat16", Format::bfloat16, due_16, long_fractions, true},
        {"NaN in every place", Format::binary32, due, {nan, nan, nan, nan}, false},
        {"NaN in one place", Format::binary32, due, with(nan), false},
        {"infinity for a number", Format::binary32, due, with(inf), false},
        {"zeros for small values", Format::binary32, elements(small, 0x1p-22), {0, 0, 0, 0}, false},
        {"a constant", Format::binary32, due, {0.5, 0.5, 0.5, 0.5}, false},
        {"one element off by a sixteenth", Format::binary32, due, one_off, false},
        {"one element off in the last place of many", Format::binary32, due, with(-1.25 * (1 + 0x1p-10)), false},
        {"values truncated to bfloat16", Format::bfloat16, due_16, truncated(long_fractions), false},
        {"the values of the row before", Format::binary32, due, {-1.25, 0.5, 2.5, 0.75}, false},
        {"the negated values", Format::binary32, due, times(ordinary, -1), false},
        {"NaN where it is due", Format::binary32, nan_due, with(nan), true},
        {"a number where NaN is due", Format::binary32, nan_due, ordinary, false},
        {"infinity where it is due", Format::binary32, infinity_due, with(inf), true},
        {"the largest number where infinity is due", Format::binary32, infinity_due, with(0x1.fffffep127), false},
        {"nothing written where NaN is due", Format::binary32, nan_due, with(nan), false, 1},
        {"a value without a trusted budget, alone",
         Format::binary32,
         {{1, 2, ElementRule::budget, Trust::mistrusted}},
         {1},
         false},
        {"an element that is not decided, alone",
         Format::binary32,
         {{nan, 0, ElementRule::free, Trust::domain}},
         {0},
         false},
        {"beyond the budget and within a limit of the user", Format::binary32, due, slightly_off, false, {}, lax},
    };
  }();
  return list;
}

using Checker = std::function<bool(const Line&)>;

// The line that a checker gets wrong; empty if none.
std::string complaint(const Checker& passes) {
  for (const Line& line : lines())
    if (passes(line) != line.passes) return line.what;
  return {};
}

TEST(BrokenChecker, TheJudgeIsNone) {
  EXPECT_EQ(complaint([](const Line& line) { return judged(line, bytes_of(line)) == Verdict::pass; }), "");
}

// Error/Delta of one element, as a naive checker has it.
double ratio(const Line& line, std::size_t i) {
  return std::abs(line.got[i] - line.due[i].hi) / line.due[i].delta;
}

TEST(BrokenChecker, NanThatIsNeverLarger) {
  EXPECT_EQ(complaint([](const Line& line) {
              for (std::size_t i = 0; i < line.got.size(); ++i)
                if (ratio(line, i) > 1) return false;  // false for NaN
              return true;
            }),
            "NaN in every place");
}

TEST(BrokenChecker, AbsoluteToleranceThatSwallowsSmallValues) {
  EXPECT_EQ(complaint([](const Line& line) {
              for (std::size_t i = 0; i < line.got.size(); ++i)
                if (!(std::abs(line.got[i] - line.due[i].hi) <= 1e-2 + 1e-2 * std::abs(line.due[i].hi))) return false;
              return true;
            }),
            "zeros for small values");
}

TEST(BrokenChecker, MeanInPlaceOfTheMaximum) {
  EXPECT_EQ(complaint([](const Line& line) {
              double error = 0, size = 0;
              for (std::size_t i = 0; i < line.got.size(); ++i) {
                error += std::abs(line.got[i] - line.due[i].hi);
                size += std::abs(line.due[i].hi);
              }
              return error <= size / 100;
            }),
            "one element off by a sixteenth");
}

// The largest error within an ulp of the format: a store that truncates meets it, and its bias is never seen.
TEST(BrokenChecker, MaximumOfAnUlpThatTruncationMeets) {
  EXPECT_EQ(complaint([](const Line& line) {
              for (std::size_t i = 0; i < line.got.size(); ++i)
                if (!(std::abs(line.got[i] - line.due[i].hi) <= ulp(line.storage, line.due[i].hi))) return false;
              return true;
            }),
            "values truncated to bfloat16");
}

TEST(BrokenChecker, ChecksumThatForgetsPlaces) {
  EXPECT_EQ(complaint([](const Line& line) {
              double got = 0, due = 0, room = 0;
              for (std::size_t i = 0; i < line.got.size(); ++i) {
                got += line.got[i];
                due += line.due[i].hi;
                room += line.due[i].delta;
              }
              return std::abs(got - due) <= room;
            }),
            "the values of the row before");
}

TEST(BrokenChecker, MagnitudesAlone) {
  EXPECT_EQ(complaint([](const Line& line) {
              for (std::size_t i = 0; i < line.got.size(); ++i)
                if (!(std::abs(std::abs(line.got[i]) - std::abs(line.due[i].hi)) <= line.due[i].delta)) return false;
              return true;
            }),
            "the negated values");
}

TEST(BrokenChecker, FirstElementAlone) {
  EXPECT_EQ(complaint([](const Line& line) { return ratio(line, 0) <= 1; }), "NaN in one place");
}

// A relation of the row to itself, not to any due value.
TEST(BrokenChecker, FiniteIsEnough) {
  EXPECT_EQ(complaint([](const Line& line) {
              for (const double got : line.got)
                if (!std::isfinite(got)) return false;
              return true;
            }),
            "zeros for small values");
}

// As a mask of what is finite leaves them out.
TEST(BrokenChecker, SpecialValuesLeftOut) {
  EXPECT_EQ(complaint([](const Line& line) {
              for (std::size_t i = 0; i < line.got.size(); ++i)
                if (std::isfinite(line.due[i].hi) && !(ratio(line, i) <= 1)) return false;
              return true;
            }),
            "a number where NaN is due");
}

// What follows is the judge but for one thing.
TEST(BrokenChecker, PoisonTakenForNan) {
  EXPECT_EQ(complaint([](const Line& line) {
              return judged(line, stage_bytes(stage_format(stage, line.storage), line.got)) == Verdict::pass;
            }),
            "nothing written where NaN is due");
}

TEST(BrokenChecker, TrustThatIsNotLookedAt) {
  EXPECT_EQ(complaint([](Line line) {
              for (HandmadeElement& element : line.due)
                if (element.trust == Trust::mistrusted) element.trust = Trust::judged;
              return judged(line, bytes_of(line)) == Verdict::pass;
            }),
            "a value without a trusted budget, alone");
}

TEST(BrokenChecker, WhatIsNotJudgedPasses) {
  EXPECT_EQ(complaint([](const Line& line) {
              const Verdict verdict = judged(line, bytes_of(line));
              return verdict == Verdict::pass || verdict == Verdict::domain;
            }),
            "an element that is not decided, alone");
}

TEST(BrokenChecker, LimitInPlaceOfTheBudget) {
  EXPECT_EQ(complaint([](const Line& line) {
              const StageJudgement judgement =
                  judge_stage(one_row_case(stage, line.storage, line.due), stage, 0, bytes_of(line), line.limit);
              return judgement.limit ? judgement.limit->violations == 0 : judgement.verdict == Verdict::pass;
            }),
            "beyond the budget and within a limit of the user");
}

// One that looks at the first call alone, as if nothing were claimed of the others.
TEST(BrokenChecker, ClaimThatIsNotHeld) {
  const auto runner = in_process_runner(resolve_adapter(QKCTS_TEST_ADAPTERS "/liblying_repeatable.so?fault=restless"));
  AdapterDescription description = description_from_json(runner->open(true).description, "lying");
  const GoldenCase golden = plain_golden_case();
  ASSERT_EQ(description.bitwise_repeatable, Claim::made);
  EXPECT_EQ(run_case(*runner, description, golden, {}).verdict, Verdict::not_repeatable);
  description.bitwise_repeatable = Claim::not_made;
  EXPECT_EQ(run_case(*runner, description, golden, {}).verdict, Verdict::pass);
}

}  // namespace
}  // namespace qkcts
