// SPDX-License-Identifier: Apache-2.0
#include "harness/adapter_description.hpp"

#include <gtest/gtest.h>

#include "harness/handmade_case.hpp"

namespace qkcts {
namespace {

constexpr const char* head =
    R"({"name": "x", "version": "1", "formats": ["binary32"], "stages": ["output", "probs"], "profile": {"binary32": "f32"})";

AdapterDescription described(const std::string& rest = "") {
  return description_from_json(std::string(head) + rest + "}", "describe()");
}

std::string fault(const std::string& text) {
  try {
    description_from_json(text, "describe()");
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(AdapterDescription, FieldsAreRead) {
  const AdapterDescription d = described(R"(, "alignment": 64, "claims": {"bitwise_repeatable": true}, "build": "cc")");
  EXPECT_EQ(d.name, "x");
  EXPECT_EQ(d.stages, bit(QKCTS_STAGE_OUTPUT) | bit(QKCTS_STAGE_PROBS));
  EXPECT_EQ(d.profile.at(Format::binary32), "f32");
  EXPECT_EQ(d.alignment, 64u);
  EXPECT_EQ(d.bitwise_repeatable, Claim::made);
  EXPECT_EQ(d.batch_invariant, Claim::not_made);
}

TEST(AdapterDescription, FaultsNameTheirPlace) {
  EXPECT_NE(fault("{").find("describe()"), std::string::npos);
  EXPECT_NE(fault("{}").find("name"), std::string::npos);
  EXPECT_NE(fault(std::string(head) + R"(, "suports": {}})").find("suports"), std::string::npos);
  EXPECT_NE(fault(std::string(head) + R"(, "alignment": 3})").find("alignment"), std::string::npos);
  EXPECT_NE(fault(std::string(head) + R"(, "supports": {"rope.flavour": []}})").find("rope.flavour"),
            std::string::npos);
  // A misspelt value would make every such case unsupported, silently.
  EXPECT_NE(fault(std::string(head) + R"(, "supports": {"q_norm.kind": ["rmss"]}})").find("allowed: \"none\", \"rms\""),
            std::string::npos);
  EXPECT_NE(fault(std::string(head) + R"(, "supports": {"rope.pairing": ["half"]}})").find("\"half_split\""),
            std::string::npos);
  EXPECT_NE(fault(std::string(head) + R"(, "supports": {"mask.causal": [1]}})").find("allowed: true, false"),
            std::string::npos);
  EXPECT_NE(
      fault(
          R"({"name": "x", "version": "1", "formats": ["binary32"], "stages": ["probs"], "profile": {"binary32": "f32"}})")
          .find("output"),
      std::string::npos);
}

TEST(AdapterDescription, CaseInsideIsSupported) {
  EXPECT_EQ(unsupported_reason(described(), plain_golden_case().input), "");
  EXPECT_EQ(unsupported_reason(described(R"(, "supports": {"rope.order": ["none"], "score.softcap": [null]})"),
                               plain_golden_case().input),
            "");
}

TEST(AdapterDescription, CaseOutsideNamesTheFirstReason) {
  const Case c = plain_golden_case().input;
  EXPECT_EQ(unsupported_reason(described(R"(, "supports": {"rope.order": ["norm_then_rope"]})"), c),
            "rope.order = \"none\"");
  EXPECT_EQ(unsupported_reason(described(R"(, "supports": {"score.softcap": []})"), c), "score.softcap = null");
  EXPECT_EQ(unsupported_reason(described(R"(, "limits": {"head_dim": {"multiple_of": 8}})"), c),
            "head_dim 4 is no multiple of 8");
  EXPECT_EQ(unsupported_reason(described(R"(, "limits": {"k_len": {"max": 1}})"), c), "k_len 2 is more than 1");
  EXPECT_EQ(unsupported_reason(described(R"(, "limits": {"batch": {"min": 2}})"), c), "batch 1 is less than 2");
  Case narrow = c;
  narrow.inputs.format = Format::bfloat16;
  EXPECT_EQ(unsupported_reason(described(), narrow), "format bfloat16");
}

// A clause that has no meaning under the contract does not restrict: there is nothing to rotate here.
TEST(AdapterDescription, MeaninglessFieldsDoNotRestrict) {
  EXPECT_EQ(
      unsupported_reason(described(R"(, "supports": {"rope.pairing": ["interleaved"]})"), plain_golden_case().input),
      "");
}

}  // namespace
}  // namespace qkcts
