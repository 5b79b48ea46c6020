// SPDX-License-Identifier: Apache-2.0
#include "reference/attention.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "reference/real.hpp"
#include "reference/refinement.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

Contract masked_contract(std::uint32_t empty_row) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.terms.mask.boolean = 1;
  contract.terms.mask.empty_row = empty_row;
  return contract;
}

const ProvenStage& stage(const ReferenceResult& result, qkcts_stage which) {
  return result.stages[which];
}

bool same_bits(const std::vector<double>& x, const std::vector<double>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  });
}

bool same(const ReferenceResult& x, const ReferenceResult& y) {
  for (const qkcts_stage s : all_stages) {
    const ProvenStage& a = stage(x, s);
    const ProvenStage& b = stage(y, s);
    if (a.rows != b.rows || a.expected != b.expected || a.lo != b.lo || a.rule != b.rule || !same_bits(a.hi, b.hi) ||
        !same_bits(x.exact.values[s], y.exact.values[s]))
      return false;
  }
  return same_bits(x.statistics.entropy, y.statistics.entropy) && same_bits(x.statistics.p_max, y.statistics.p_max) &&
         same_bits(x.statistics.score_max, y.statistics.score_max) && x.exact_cases == y.exact_cases;
}

// Row 1 of a single head sees nothing, row 0 sees key 2 only.
Case row_case(std::uint32_t empty_row) {
  SampleSpec spec;
  spec.shape = {1, 1, 1, 2, 3, 4, 2};
  Case c = sample_case(masked_contract(empty_row), spec);
  set_values(c, Input::mask, std::vector<double>{0, 0, 1, 0, 0, 0});
  return c;
}

TEST(Attention, OneVisibleKey) {
  const Case c = row_case(QKCTS_EMPTY_ZERO);
  const ReferenceResult result = evaluate(c, every_row(c));
  EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).hi[2], 1.0);
  EXPECT_EQ(stage(result, QKCTS_STAGE_OUTPUT).hi[0], c.inputs.at(Input::v).value(4));
  EXPECT_EQ(stage(result, QKCTS_STAGE_OUTPUT).hi[1], c.inputs.at(Input::v).value(5));
  EXPECT_EQ(stage(result, QKCTS_STAGE_LSE).hi[0], stage(result, QKCTS_STAGE_SCORES).hi[2]);
  EXPECT_EQ(result.statistics.entropy[0], 0.0);
  EXPECT_EQ(result.statistics.p_max[0], 1.0);
}

TEST(Attention, HiddenKeys) {
  const Case c = row_case(QKCTS_EMPTY_ZERO);
  const ReferenceResult result = evaluate(c, every_row(c));
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).hi[i], 0.0);
    EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).rule[i], ElementRule::exact_clause);
    EXPECT_EQ(stage(result, QKCTS_STAGE_MASKED).hi[i], -std::numeric_limits<double>::infinity());
    EXPECT_EQ(stage(result, QKCTS_STAGE_MASKED).rule[i], ElementRule::hidden);
    EXPECT_EQ(stage(result, QKCTS_STAGE_SCORES).rule[i], ElementRule::hidden);
    EXPECT_NE(stage(result, QKCTS_STAGE_SCORES).hi[i], 0.0);
    EXPECT_EQ(result.exact.values[QKCTS_STAGE_SCORES][i], stage(result, QKCTS_STAGE_SCORES).hi[i]);
  }
  EXPECT_EQ(stage(result, QKCTS_STAGE_SCORES).rule[2], ElementRule::budget);
  EXPECT_EQ(stage(result, QKCTS_STAGE_MASKED).hi[2], stage(result, QKCTS_STAGE_SCORES).hi[2]);
  EXPECT_EQ(stage(result, QKCTS_STAGE_MASKED).rule[2], ElementRule::budget);
}

TEST(Attention, EmptyRowZero) {
  const ReferenceResult result = evaluate(row_case(QKCTS_EMPTY_ZERO), every_row(row_case(QKCTS_EMPTY_ZERO)));
  for (std::size_t i = 3; i < 6; ++i) {
    EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).hi[i], 0.0);
    EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).rule[i], ElementRule::exact_clause);
    EXPECT_EQ(stage(result, QKCTS_STAGE_MASKED).rule[i], ElementRule::hidden);
  }
  EXPECT_EQ(stage(result, QKCTS_STAGE_LSE).hi[1], -std::numeric_limits<double>::infinity());
  EXPECT_EQ(stage(result, QKCTS_STAGE_LSE).rule[1], ElementRule::exact_clause);
  EXPECT_EQ(stage(result, QKCTS_STAGE_OUTPUT).hi[2], 0.0);
  EXPECT_EQ(stage(result, QKCTS_STAGE_OUTPUT).rule[2], ElementRule::exact_clause);
  EXPECT_TRUE(std::isnan(result.statistics.entropy[1]));
}

TEST(Attention, EmptyRowNan) {
  const Case c = row_case(QKCTS_EMPTY_NAN);
  const ReferenceResult result = evaluate(c, every_row(c));
  EXPECT_TRUE(std::isnan(stage(result, QKCTS_STAGE_PROBS).hi[4]));
  EXPECT_TRUE(std::isnan(stage(result, QKCTS_STAGE_LSE).hi[1]));
  EXPECT_TRUE(std::isnan(stage(result, QKCTS_STAGE_OUTPUT).hi[2]));
  EXPECT_TRUE(std::isnan(decode(c.inputs.format, stage(result, QKCTS_STAGE_OUTPUT).expected[3])));
  EXPECT_EQ(stage(result, QKCTS_STAGE_OUTPUT).rule[3], ElementRule::exact_clause);
  EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).hi[0], 0.0);  // a hidden key of a row that is not empty
}

TEST(Attention, EmptyRowUniform) {
  Case c = row_case(QKCTS_EMPTY_UNIFORM);
  set_values(c, Input::v, std::vector<double>{1, 3, 2, 3, 4, 3.5});
  const ReferenceResult result = evaluate(c, every_row(c));
  EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).hi[4], 1.0 / 3);
  EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).rule[4], ElementRule::budget);
  EXPECT_EQ(stage(result, QKCTS_STAGE_OUTPUT).hi[2], 7.0 / 3);
  EXPECT_NE(stage(result, QKCTS_STAGE_OUTPUT).lo[2], 0);
  EXPECT_EQ(stage(result, QKCTS_STAGE_OUTPUT).rule[2], ElementRule::budget);
  EXPECT_EQ(stage(result, QKCTS_STAGE_LSE).hi[1], -std::numeric_limits<double>::infinity());
  EXPECT_EQ(stage(result, QKCTS_STAGE_LSE).rule[1], ElementRule::exact_clause);
}

TEST(Attention, MinusInfiniteBiasHides) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.terms.score.bias_order = QKCTS_BIAS_BEFORE_SOFTCAP;
  contract.terms.score.softcap = 5;
  SampleSpec spec;
  spec.shape = {1, 1, 1, 1, 2, 2, 1};
  Case c = sample_case(contract, spec);
  set_values(c, Input::bias, std::vector<double>{-std::numeric_limits<double>::infinity(), 1});
  ReferenceResult result = evaluate(c, every_row(c));
  EXPECT_EQ(stage(result, QKCTS_STAGE_CAPPED).hi[0], -5);
  EXPECT_EQ(stage(result, QKCTS_STAGE_CAPPED).rule[0], ElementRule::hidden);
  EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).hi[1], 1);
  c.contract.terms.score.bias_order = QKCTS_BIAS_AFTER_SOFTCAP;
  result = evaluate(c, every_row(c));
  EXPECT_EQ(stage(result, QKCTS_STAGE_CAPPED).hi[0], -std::numeric_limits<double>::infinity());
}

// What stands in hidden keys and values reaches nothing but the hidden scores.
TEST(Attention, HiddenKeysAreNeverMultipliedIn) {
  SampleSpec spec;
  spec.shape = {1, 2, 1, 3, 4, 4, 2};
  Contract contract = shipped_contract("plain_sdpa");
  contract.terms.mask.kv_lengths = 1;
  Case c = sample_case(contract, spec);
  set_values(c, Input::kv_len, std::vector<double>{3});
  const ReferenceResult before = evaluate(c, every_row(c));
  for (const Input input : {Input::k, Input::v}) {
    std::vector<double> values = c.inputs.at(input).values();
    for (std::size_t i = values.size() * 3 / 4; i < values.size(); ++i) values[i] = 0x1p+127;
    set_values(c, input, values);
  }
  const ReferenceResult after = evaluate(c, every_row(c));
  for (const qkcts_stage s : {QKCTS_STAGE_MASKED, QKCTS_STAGE_PROBS, QKCTS_STAGE_LSE, QKCTS_STAGE_OUTPUT})
    EXPECT_EQ(stage(before, s).expected, stage(after, s).expected);
  EXPECT_NE(stage(before, QKCTS_STAGE_SCORES).expected, stage(after, QKCTS_STAGE_SCORES).expected);
  EXPECT_EQ(after.highest_precision, 128);  // nor does it cost precision
}

TEST(Attention, HeadsShareKeysInBlocks) {
  SampleSpec spec;
  spec.shape = {2, 6, 2, 1, 1, 2, 1};
  const Case c = sample_case(shipped_contract("plain_sdpa"), spec);
  const ReferenceResult result = evaluate(c, every_row(c));
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t h = 0; h < 6; ++h)
      EXPECT_EQ(stage(result, QKCTS_STAGE_OUTPUT).hi[b * 6 + h], c.inputs.at(Input::v).value(b * 2 + h / 3));
}

TEST(Attention, HeadsShareKeysInTurn) {
  SampleSpec spec;
  spec.shape = {2, 6, 2, 1, 1, 2, 1};
  const Case c = sample_case(shipped_contract("clause_heads_tile"), spec);
  const ReferenceResult result = evaluate(c, every_row(c));
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t h = 0; h < 6; ++h)
      EXPECT_EQ(stage(result, QKCTS_STAGE_OUTPUT).hi[b * 6 + h], c.inputs.at(Input::v).value(b * 2 + h % 2));
}

// Padding that holds NaN, infinities or the largest number: no stage but its own rows differs from zeros there.
TEST(Attention, KeysThatNobodySeesMayHoldAnything) {
  for (const Format format : {Format::binary64, Format::bfloat16}) {
    SampleSpec spec;
    spec.format = format;
    spec.shape = {2, 4, 2, 3, 8, 8, 3};
    Contract contract = shipped_contract("clause_hidden_excluded");
    contract.terms.score.softcap = 3;
    contract.terms.k_norm.axis = QKCTS_AXIS_FULL_WIDTH;
    contract.terms.rope = {QKCTS_NORM_THEN_ROPE, 0, 0, 0, 1000};
    contract.terms.softmax.hidden_values = QKCTS_HIDDEN_FINITE;
    Case c = sample_case(contract, spec);
    c.contract.terms.softmax.hidden_values = QKCTS_HIDDEN_EXCLUDED;
    set_values(c, Input::kv_len, std::vector<double>{3, 5});
    Case poisoned = c;
    Tensor k = c.inputs.at(Input::k);
    Tensor v = c.inputs.at(Input::v);
    Tensor poisoned_k = k;
    Tensor poisoned_v = v;
    const double poison[] = {std::nan(""), std::numeric_limits<double>::infinity(), parameters(format).largest};
    const auto hidden = [](std::size_t token) { return token % 8 >= (token / 16 == 0 ? 3u : 5u); };
    for (const auto& [clean, wild] : {std::pair(&k, &poisoned_k), std::pair(&v, &poisoned_v)}) {
      const auto width = static_cast<std::size_t>(clean->shape[3]);
      for (std::size_t i = 0; i < clean->count(); ++i) {
        if (!hidden(i / width)) continue;
        clean->set_pattern(i, 0);
        wild->set_pattern(i, encode(format, poison[i % 3]));
      }
    }
    c.inputs.set(Input::k, k);
    c.inputs.set(Input::v, v);
    poisoned.inputs.set(Input::k, poisoned_k);
    poisoned.inputs.set(Input::v, poisoned_v);
    const ReferenceResult clean = evaluate(c, every_row(c));
    const ReferenceResult wild = evaluate(poisoned, every_row(poisoned));
    EXPECT_TRUE(same(clean, wild));
    for (const qkcts_stage s : {QKCTS_STAGE_K_NORM, QKCTS_STAGE_K_ROPE}) {
      for (std::size_t i = 0; i < stage(wild, s).hi.size(); ++i) {
        EXPECT_EQ(std::isnan(stage(wild, s).hi[i]), hidden(i / 8));
        EXPECT_EQ(stage(wild, s).rule[i] == ElementRule::hidden, hidden(i / 8));
      }
    }
    for (const qkcts_stage s : {QKCTS_STAGE_SCORES, QKCTS_STAGE_CAPPED})
      for (std::size_t i = 0; i < stage(wild, s).hi.size(); ++i) {
        const bool is_hidden = i % 8 >= (i / 96 == 0 ? 3u : 5u);
        EXPECT_EQ(std::isnan(stage(wild, s).hi[i]), is_hidden);
        EXPECT_EQ(stage(wild, s).rule[i] == ElementRule::hidden, is_hidden);
      }
    for (const qkcts_stage s : {QKCTS_STAGE_PROBS, QKCTS_STAGE_LSE, QKCTS_STAGE_OUTPUT})
      for (const double x : stage(wild, s).hi) EXPECT_FALSE(std::isnan(x));
    poisoned.contract.terms.softmax.hidden_values = QKCTS_HIDDEN_FINITE;
    EXPECT_THROW(evaluate(poisoned, every_row(poisoned)), InputError);
  }
}

// Number of visible keys of each of two queries over five keys.
std::vector<int> visible_keys(std::uint32_t alignment) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.terms.mask.causal = 1;
  contract.terms.mask.alignment = alignment;
  contract.terms.mask.offset = 1;
  contract.terms.mask.kv_lengths = alignment == QKCTS_BOTTOM_RIGHT_VALID ? 1 : 0;
  SampleSpec spec;
  spec.shape = {1, 1, 1, 2, 5, 2, 1};
  Case c = sample_case(contract, spec);
  if (alignment == QKCTS_BOTTOM_RIGHT_VALID) set_values(c, Input::kv_len, std::vector<double>{3});
  const ReferenceResult result = evaluate(c, every_row(c));
  std::vector<int> counts(2, 0);
  for (std::size_t i = 0; i < 10; ++i) counts[i / 5] += stage(result, QKCTS_STAGE_PROBS).hi[i] > 0 ? 1 : 0;
  return counts;
}

TEST(Attention, CausalAlignments) {
  EXPECT_EQ(visible_keys(QKCTS_TOP_LEFT), (std::vector<int>{1, 2}));
  EXPECT_EQ(visible_keys(QKCTS_BOTTOM_RIGHT), (std::vector<int>{4, 5}));
  EXPECT_EQ(visible_keys(QKCTS_BOTTOM_RIGHT_VALID), (std::vector<int>{2, 3}));
  EXPECT_EQ(visible_keys(QKCTS_OFFSET), (std::vector<int>{2, 3}));
}

TEST(Attention, UnderflowAndOverflowOfTheFormats) {
  SampleSpec spec;
  spec.format = Format::binary32;
  spec.shape = {1, 1, 1, 1, 3, 1, 1};
  Contract contract = shipped_contract("plain_sdpa");
  contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  contract.terms.score.scale_value = 1;
  Case c = sample_case(contract, spec);
  set_values(c, Input::q, std::vector<double>{1});
  set_values(c, Input::k, std::vector<double>{0, -100, -100000});
  ReferenceResult result = evaluate(c, every_row(c));
  EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).expected[1], 27u);  // e^-100 = 26.5 * 2^-149: subnormal
  EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).hi[1], 0x1.a8c1f14e2af5dp-145);
  EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).hi[2], 0.0);
  EXPECT_EQ(stage(result, QKCTS_STAGE_PROBS).rule[2], ElementRule::budget);
  set_values(c, Input::q, std::vector<double>{0x1p+100});
  set_values(c, Input::k, std::vector<double>{0x1p+100, 1, 0});
  result = evaluate(c, every_row(c));
  EXPECT_EQ(decode(Format::binary32, stage(result, QKCTS_STAGE_SCORES).expected[0]),
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(stage(result, QKCTS_STAGE_SCORES).hi[0], 0x1p+200);
  EXPECT_EQ(result.statistics.score_max[0], 0x1p+200);
}

TEST(Attention, StatisticsOfAUniformRow) {
  SampleSpec spec;
  spec.shape = {1, 1, 1, 1, 5, 2, 1};
  Case c = sample_case(shipped_contract("plain_sdpa"), spec);
  set_values(c, Input::q, std::vector<double>{0, 0});
  const ReferenceResult result = evaluate(c, every_row(c));
  EXPECT_NEAR(result.statistics.entropy[0], std::log(5.0), 1e-6);
  EXPECT_NEAR(result.statistics.p_max[0], 0.2, 1e-6);
  EXPECT_EQ(result.statistics.score_max[0], 0.0);
}

// A zero query under eps > 0: all scores are exactly 0, whatever the keys; needs no more than the first precision.
TEST(Attention, ZeroQueryGivesTheMean) {
  for (const char* name : {"qwen3_rmsnorm", "henry2020_l2", "flax_qk_layernorm", "rmsnorm_softcap"}) {
    SampleSpec spec;
    spec.shape = {1, 2, 1, 3, 4, 8, 3};
    Case c = sample_case(shipped_contract(name), spec);
    set_values(c, Input::q, std::vector<double>(c.inputs.at(Input::q).count(), 0.0));
    const ReferenceResult result = evaluate(c, every_row(c));
    for (const double s : stage(result, QKCTS_STAGE_SCORES).hi) EXPECT_EQ(s, 0.0) << name;
    EXPECT_EQ(stage(result, QKCTS_STAGE_SCORES).rule[0], ElementRule::budget) << name;
    EXPECT_EQ(result.highest_precision, 128) << name;
  }
}

TEST(Attention, StoredRowsDoNotChangeTheValues) {
  SampleSpec spec;
  spec.format = Format::bfloat16;
  const Case c = sample_case(shipped_contract("qwen3_rmsnorm"), spec);
  const ReferenceResult all = evaluate(c, every_row(c));
  StageRows some;
  for (const qkcts_stage s : all_stages)
    if ((stages_of(c.contract.terms) & bit(s)) != 0) some[s] = {2, 5};
  const ReferenceResult result = evaluate(c, some);
  for (const qkcts_stage s : all_stages) {
    const auto length = static_cast<std::size_t>(row_length(s, c.shape));
    ASSERT_EQ(stage(result, s).hi.size(), some[s].size() * length);
    for (std::size_t i = 0; i < stage(result, s).hi.size(); ++i) {
      const std::size_t source = some[s][i / length] * length + i % length;
      EXPECT_EQ(stage(result, s).expected[i], stage(all, s).expected[source]);
      EXPECT_EQ(stage(result, s).lo[i], stage(all, s).lo[source]);
    }
    for (std::size_t i = 0; i < all.exact.values[s].size(); ++i) {
      const double x = all.exact.values[s][i];
      const double y = result.exact.values[s][i];
      EXPECT_TRUE(x == y || std::fabs(x - y) <= std::ldexp(std::fabs(x), -50));
    }
  }
}

TEST(Attention, BadCallsAreRefused) {
  Case c = row_case(QKCTS_EMPTY_ZERO);
  StageRows rows = every_row(c);
  rows[QKCTS_STAGE_OUTPUT] = {0, 2};
  EXPECT_THROW(evaluate(c, rows), InputError);
  rows[QKCTS_STAGE_OUTPUT] = {1, 0};
  EXPECT_THROW(evaluate(c, rows), InputError);
  c.inputs.tensors[static_cast<std::size_t>(Input::v)].reset();
  EXPECT_THROW(evaluate(c, StageRows{}), InputError);
}

// With the first precision alone, and so without any rule, a tie is refused and ordinary values are not.
TEST(Attention, CappedPrecisionRefusesATie) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.terms.q_norm.applied = 1;
  contract.terms.q_norm.eps = 1e-6;
  SampleSpec spec;
  spec.format = Format::bfloat16;
  spec.shape = {1, 1, 1, 1, 2, 2, 1};
  Case c = sample_case(contract, spec);
  set_values(c, Input::k, std::vector<double>{1, 3, 1, 3});
  set_values(c, Input::v, std::vector<double>{1, 1 + 0x1p-7});
  EXPECT_THROW(refine(c, every_row(c), RefinementLimits{1}), UndecidedError);
  const ReferenceResult result = refine(c, every_row(c), RefinementLimits{2});
  EXPECT_EQ(stage(result, QKCTS_STAGE_OUTPUT).hi[0], 1 + 0x1p-8);
  EXPECT_EQ(result.exact_cases, 1u);
  EXPECT_EQ(result.highest_precision, 257);
  set_values(c, Input::k, std::vector<double>{1, 3, 1, 2});
  EXPECT_EQ(refine(c, every_row(c), RefinementLimits{1}).highest_precision, 128);
}

TEST(Attention, ThreadsAgreeAndTheExponentRangeStays) {
  const mpfr_exp_t least = mpfr_get_emin();
  const mpfr_exp_t most = mpfr_get_emax();
  SampleSpec spec;
  spec.values = SampleValues::coarse;
  std::vector<Case> cases;
  for (const char* name : {"qwen3_rmsnorm", "clause_mixed_norms", "rmsnorm_softcap", "clause_bias_additive"})
    for (const Format format : {Format::binary64, Format::bfloat16}) {
      spec.format = format;
      ++spec.seed;
      cases.push_back(sample_case(shipped_contract(name), spec));
    }
  const auto evaluate_all = [&](std::vector<ReferenceResult>& results) {
    for (const Case& c : cases) results.push_back(evaluate(c, every_row(c)));
  };
  std::vector<ReferenceResult> results[3];
  std::thread first(evaluate_all, std::ref(results[0]));
  std::thread second(evaluate_all, std::ref(results[1]));
  evaluate_all(results[2]);
  first.join();
  second.join();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_TRUE(same(results[0][i], results[1][i])) << i;
    EXPECT_TRUE(same(results[0][i], results[2][i])) << i;
  }
  EXPECT_FALSE(same(results[0][0], results[0][1]));  // the comparison can fail
  EXPECT_EQ(mpfr_get_emin(), least);
  EXPECT_EQ(mpfr_get_emax(), most);
}

}  // namespace
}  // namespace qkcts
