// SPDX-License-Identifier: Apache-2.0
// Each kind of rule on numbers worked out by hand: what passes, and what is just over the limit.
#include "harness/peer_rule.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace qkcts {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

PeerRule rule_of(PeerRuleKind kind, Format format = Format::binary32) {
  PeerRule rule;
  rule.stage = "output";
  rule.format = format;
  rule.kind = kind;
  return rule;
}

struct Numbers {
  std::vector<double> got, exact, low, weighted, own, own_absolute;
  Format format = Format::binary32;
  double keys = 4, lanes = 8;

  PeerFinding under(const PeerRule& rule) const {
    PeerSubject subject;
    subject.format = format;
    subject.got = got;
    subject.exact = exact;
    subject.low = low;
    subject.weighted = weighted;
    subject.own = own;
    subject.own_absolute = own_absolute;
    subject.keys = keys;
    subject.lanes = lanes;
    return apply_peer_rule(rule, subject);
  }
  bool passes(const PeerRule& rule) const { return under(rule).verdict == PeerVerdict::accepts; }
  bool fails(const PeerRule& rule) const { return under(rule).verdict == PeerVerdict::rejects; }
};

Numbers pair(double got, double exact) {
  Numbers numbers;
  numbers.got = {got};
  numbers.exact = {exact};
  return numbers;
}

TEST(PeerRule, AllcloseAddsBothTolerances) {
  PeerRule rule = rule_of(PeerRuleKind::allclose);
  rule.atol = 0.25;
  rule.rtol = 0.125;  // of 2: 0.25 + 0.25
  EXPECT_TRUE(pair(2.5, 2).passes(rule));
  EXPECT_TRUE(pair(1.5, 2).passes(rule));
  EXPECT_TRUE(pair(2.5078125, 2).fails(rule));
  EXPECT_DOUBLE_EQ(pair(2.25, 2).under(rule).share, 0.5);
  EXPECT_TRUE(pair(infinity, infinity).passes(rule));
  EXPECT_TRUE(pair(-infinity, infinity).fails(rule));
  EXPECT_TRUE(pair(1, infinity).fails(rule));
  EXPECT_TRUE(pair(nan, nan).fails(rule));
  rule.nan_equals_nan = true;
  EXPECT_TRUE(pair(nan, nan).passes(rule));
  EXPECT_TRUE(pair(nan, 2).fails(rule));
}

TEST(PeerRule, LargestErrorAlone) {
  PeerRule rule = rule_of(PeerRuleKind::max_abs);
  rule.atol = 0.125;
  EXPECT_TRUE(pair(100.125, 100).passes(rule));
  EXPECT_TRUE(pair(100.25, 100).fails(rule));
}

TEST(PeerRule, RelativeErrorWithItsEscapes) {
  PeerRule rule = rule_of(PeerRuleKind::relative);
  rule.limit = 0x1p-10;
  EXPECT_TRUE(pair(1 + 0x1p-10, 1).passes(rule));
  EXPECT_TRUE(pair(1 + 0x1p-9, 1).fails(rule));
  EXPECT_TRUE(pair(1e-6 + 0x1p-24, 1e-6).passes(rule)) << "small, and less than 2^-23 off";
  EXPECT_TRUE(pair(1e-6 + 0x1p-9, 1e-6).fails(rule)) << "small: the limit is absolute";
  EXPECT_TRUE(pair(1, 1 + 0x1p-30).passes(rule)) << "the reference is rounded to the format first";
  rule.limit = 0;
  EXPECT_TRUE(pair(1, 1).passes(rule));
  EXPECT_TRUE(pair(1 + 0x1p-23, 1).fails(rule));
  rule.by_key = 0x1p-12;  // times 4 keys
  EXPECT_TRUE(pair(1 + 0x1p-10, 1).passes(rule));
  EXPECT_TRUE(pair(1 + 0x1p-9, 1).fails(rule));
  rule.escape_weights = 0x1p-7;
  Numbers cancelling = pair(0.5, 0.25);
  cancelling.weighted = {32};  // 32 * 2^-7 = 0.25
  EXPECT_TRUE(cancelling.passes(rule));
  cancelling.weighted = {16};
  EXPECT_TRUE(cancelling.fails(rule));
  rule.escape_abs = 0.5;
  EXPECT_TRUE(cancelling.passes(rule));
}

// (0.1^2 + 0) / (1.1^2 + 2^2) = 0.01 / 5.21
TEST(PeerRule, MeanSquareError) {
  PeerRule rule = rule_of(PeerRuleKind::nmse);
  Numbers numbers;
  numbers.got = {1.1, 2};
  numbers.exact = {1, 2};
  rule.limit = 0.00192;  // 0.01 / 5.21 = 0.0019194
  EXPECT_TRUE(numbers.passes(rule));
  rule.limit = 0.00191;
  EXPECT_TRUE(numbers.fails(rule));
  numbers.exact[0] = nan;
  EXPECT_TRUE(numbers.fails(rule));
  numbers.got = {infinity, 7};
  numbers.exact = {infinity, -3};
  EXPECT_TRUE(numbers.passes(rule)) << "the quotient is NaN, and NaN is not above the limit";
  numbers.exact = {-infinity, -3};
  EXPECT_TRUE(numbers.fails(rule));
  numbers.exact = {1, -3};
  EXPECT_TRUE(numbers.fails(rule));
  EXPECT_TRUE(pair(0, 0).passes(rule));
}

TEST(PeerRule, RatioToALowRun) {
  PeerRule rule = rule_of(PeerRuleKind::ratio);
  rule.factor = 2;
  Numbers numbers;
  numbers.got = {1.5, 3};
  numbers.exact = {1, 3};
  numbers.low = {1, 3.25};  // off by 0.25 somewhere: 0.5 anywhere
  EXPECT_TRUE(numbers.passes(rule));
  numbers.got[0] = 1.5625;
  EXPECT_TRUE(numbers.fails(rule));
  rule.atol = 0.0625;
  EXPECT_TRUE(numbers.passes(rule));
  numbers.low = {1, 3};  // exact by luck
  EXPECT_TRUE(numbers.fails(rule));
  numbers.low.clear();
  EXPECT_EQ(numbers.under(rule).verdict, PeerVerdict::not_applicable);
  // In bfloat16, (2 + 0.3) is 2.296875 and 2.296875 - 0.3 is 1.9921875 or 2: the detour costs 2^-7 at most.
  PeerRule detour = rule_of(PeerRuleKind::ratio, Format::bfloat16);
  detour.detour = 2;
  Numbers small = pair(2, 2);
  small.format = Format::bfloat16;
  small.low = {2};
  EXPECT_TRUE(small.passes(detour));
  small.got = {2.125};
  EXPECT_TRUE(small.fails(detour));
}

// max |p - r| = 0.5, max |(p - r)/r| = 0.5: 0.5 + 0.5 |r|.
TEST(PeerRule, MeasuredTolerances) {
  PeerRule rule = rule_of(PeerRuleKind::measured);
  rule.atol = 0.125;
  rule.rtol = 0.125;
  Numbers numbers;
  numbers.got = {2, 4};
  numbers.exact = {1, 4};
  numbers.low = {1.5, 4};
  EXPECT_TRUE(numbers.passes(rule));
  numbers.got = {2.0625, 4};
  EXPECT_TRUE(numbers.fails(rule));
  numbers.low = {1, 4};  // exact: the floors, 0.125 + 0.125
  numbers.got = {1.25, 4};
  EXPECT_TRUE(numbers.passes(rule));
  numbers.got = {1.3125, 4};
  EXPECT_TRUE(numbers.fails(rule));
}

TEST(PeerRule, RepresentableNumbersBetween) {
  PeerRule rule = rule_of(PeerRuleKind::ulp_distance, Format::bfloat16);
  rule.limit = 1;
  rule.by_lane = 0.125;  // of 8 lanes: 2 together
  Numbers numbers = pair(1 + 2 * 0x1p-7, 1);
  numbers.format = Format::bfloat16;
  EXPECT_TRUE(numbers.passes(rule));
  numbers.got = {1 + 3 * 0x1p-7};
  EXPECT_TRUE(numbers.fails(rule));
  numbers.got = {1 - 2 * 0x1p-8};  // below 1 they are twice as dense
  EXPECT_TRUE(numbers.passes(rule));
  numbers.got = {1 - 3 * 0x1p-8};
  EXPECT_TRUE(numbers.fails(rule));
  numbers.got = {-0.0};
  numbers.exact = {0};
  EXPECT_TRUE(numbers.passes(rule));
  numbers.got = {smallest_subnormal(Format::bfloat16)};
  numbers.exact = {-smallest_subnormal(Format::bfloat16)};
  EXPECT_TRUE(numbers.passes(rule)) << "two steps across zero";
  numbers.format = Format::binary32;
  EXPECT_EQ(numbers.under(rule).verdict, PeerVerdict::not_applicable);
}

// Of 4 keys and sum |p v| = 2 in binary32: a unit is 2 * 2^-24, a point may be 24 of them off; of one point the mean
// square 1.6 * 4 = 6.4, which is the narrower one: 2.5 units.
TEST(PeerRule, DotProductByItsSumOfProducts) {
  PeerRule rule = rule_of(PeerRuleKind::dot_product);
  rule.scope = PeerRuleScope::one_operator;
  Numbers numbers = pair(0, 0);
  EXPECT_EQ(numbers.under(rule).verdict, PeerVerdict::not_applicable);
  numbers.own = {0};
  numbers.own_absolute = {2};
  numbers.got = {2.5 * 0x1p-23};
  EXPECT_TRUE(numbers.passes(rule));
  numbers.got = {2.75 * 0x1p-23};
  EXPECT_TRUE(numbers.fails(rule));
  // Many exact points beside it: then the bound of the point decides.
  numbers.got.assign(200, 0);
  numbers.exact = numbers.own = numbers.got;
  numbers.own_absolute.assign(200, 2);
  numbers.got[7] = 24 * 0x1p-23;
  EXPECT_TRUE(numbers.passes(rule));
  numbers.got[7] = 25 * 0x1p-23;
  EXPECT_TRUE(numbers.fails(rule));
}

TEST(PeerRule, WhatThereIsNoRuleForIsNeitherAPassNorAFailure) {
  PeerRule rule = rule_of(PeerRuleKind::none);
  rule.why = "not exposed";
  const PeerFinding finding = pair(1, 1).under(rule);
  EXPECT_EQ(finding.verdict, PeerVerdict::not_applicable);
  EXPECT_EQ(finding.why, "not exposed");
  EXPECT_EQ(Numbers{}.under(rule_of(PeerRuleKind::allclose)).verdict, PeerVerdict::not_applicable);
}

TEST(PeerRules, TheShippedOnesAreWholeAndHaveSources) {
  const std::vector<Peer> peers = shipped_peers();
  EXPECT_GE(peers.size(), 10U);
  for (const Peer& peer : peers) {
    EXPECT_FALSE(peer.sources.empty()) << peer.id;
    bool any = false;
    for (const PeerRule& rule : peer.rules) {
      any = any || rule.kind != PeerRuleKind::none;
      if (rule.kind == PeerRuleKind::none) {
        EXPECT_FALSE(rule.why.empty()) << peer.id << " " << rule.stage;
      }
    }
    EXPECT_TRUE(any) << peer.id;
  }
}

TEST(PeerRules, ABadFileIsOneErrorWithItsPlace) {
  const auto message = [](const char* text) -> std::string {
    try {
      peers_from_json(text, "mine.json");
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(message("[").rfind("mine.json:1:", 0), 0U) << message("[");
  const std::string unknown = message(
      R"({"schema": "qkcts-peer-rules/1", "about": "", "peers": [{"id": "a", "title": "A", "reference": "r",
      "sources": ["s"], "rules": [{"stage": "output", "format": "binary32", "kind": "invented"}]}]})");
  EXPECT_NE(unknown.find("/peers/0/rules/0/kind"), std::string::npos) << unknown;
}

}  // namespace
}  // namespace qkcts
