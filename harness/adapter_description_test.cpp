// SPDX-License-Identifier: Apache-2.0
#include "harness/adapter_description.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/contract_field.hpp"

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

TEST(AdapterDescription, EightBitFormatsAreNoStorage) {
  const std::string text =
      R"({"name": "x", "version": "1", "formats": ["e4m3fn"], "stages": ["output"], "profile": {"binary32": "f32"}})";
  EXPECT_NE(fault(text).find("formats/0"), std::string::npos) << fault(text);
  EXPECT_NE(fault(text).find("e4m3fn"), std::string::npos) << fault(text);
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

// A contract that has the field, and has it away from its default: for every clause that came with ABI 1.1 or 1.2.
qkcts_contract with_later_field(const ContractField& field) {
  qkcts_contract terms = plain_golden_case().input.contract.terms;
  terms.rope.order = QKCTS_NORM_THEN_ROPE;
  terms.rope.pairing = QKCTS_INTERLEAVED;
  terms.score.scale_form = QKCTS_SCALE_LEARNED_SCALAR;
  terms.mask.causal = 1;
  terms.rotation.scaling = QKCTS_SCALING_YARN;
  terms.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG;
  terms.score.softcap = 3;
  terms.q_norm.applied = terms.k_norm.applied = terms.v_norm.applied = 1;
  terms.projection.form = QKCTS_PROJECTION_LINEAR;
  terms.projection.q_input.applied = terms.projection.k_input.applied = 1;
  terms.rounding.output = QKCTS_BFLOAT16;
  auto* const at = reinterpret_cast<std::byte*>(&terms) + field.offset;
  const std::uint32_t one = 1;
  const std::int64_t chunk = 3;
  const double number = 1.5;
  const bool word = field.type == FieldType::enumeration || field.type == FieldType::flag;
  if (word) std::memcpy(at, &one, sizeof one);
  if (field.type == FieldType::optional_integer) std::memcpy(at, &chunk, sizeof chunk);
  if (field.type == FieldType::number || field.type == FieldType::optional_number)
    std::memcpy(at, &number, sizeof number);
  return terms;
}

// Everything that the contract uses is claimed, but for one field.
std::string claims_without(const qkcts_contract& terms, std::string_view left_out) {
  std::string claims;
  for (const FieldValue& field : contract_field_values(terms)) {
    if (!field.by_claim || field.path == left_out) continue;
    claims += (claims.empty() ? "\"" : ", \"") + field.path + "\": [" + field.json + "]";
  }
  return R"(, "supports": {)" + claims + "}";
}

TEST(AdapterDescription, LaterClausesAreSupportedByClaimAlone) {
  int later = 0;
  for (const ContractField& field : contract_field_table()) {
    if (field.presence != Presence::beside_default) continue;
    ++later;
    Case c = plain_golden_case().input;
    c.contract.terms = with_later_field(field);
    EXPECT_EQ(unsupported_reason(described(claims_without(c.contract.terms, "")), c), "") << field.path();
    const std::string reason = unsupported_reason(described(claims_without(c.contract.terms, field.path())), c);
    EXPECT_EQ(reason.rfind(field.path() + " = ", 0), 0u) << field.path() << ": " << reason;
    EXPECT_NE(reason.find("(not declared in /supports)"), std::string::npos) << reason;
  }
  EXPECT_EQ(later, 58);
}

// Norms that came later are not in the table of fields, and yet nobody has them without saying so.
TEST(AdapterDescription, LaterNormsAreSupportedByClaimAlone) {
  int later = 0;
  for (const NormSection& section : norm_sections()) {
    if (section.presence != Presence::beside_default) continue;
    ++later;
    Case c = plain_golden_case().input;
    c.contract.terms.projection.form = QKCTS_PROJECTION_LINEAR;
    norm_of(c.contract.terms, section).applied = 1;
    EXPECT_EQ(unsupported_reason(described(claims_without(c.contract.terms, "")), c), "") << section.path();
    EXPECT_EQ(unsupported_reason(described(claims_without(c.contract.terms, section.path())), c),
              section.path() + " = \"rms\" (not declared in /supports)");
    const std::string unknown = fault(std::string(head) + R"(, "supports": {")" + section.path() + R"(": ["rmz"]}})");
    EXPECT_NE(unknown.find("is no value of this field"), std::string::npos) << unknown;
    const std::string known = R"(, "supports": {")" + section.path() + R"(": ["none", "layer_norm"]})";
    EXPECT_EQ(unsupported_reason(described(known), plain_golden_case().input), "") << section.path();
  }
  EXPECT_EQ(later, 3);
}

TEST(AdapterDescription, AnyNumberMayBeClaimedButNoUnknownEnumerator) {
  Case c = plain_golden_case().input;
  c.contract.terms.q_range.multiplier = 1.7;
  const std::string any = R"(, "supports": {"q_norm.multiplier": ["*"]})";
  EXPECT_EQ(unsupported_reason(described(any), c), "");
  EXPECT_EQ(unsupported_reason(described(R"(, "supports": {"q_norm.multiplier": [1, 2]})"), c),
            "q_norm.multiplier = 1.7");
  c.contract.terms.q_range.multiplier = 1;
  EXPECT_EQ(unsupported_reason(described(any), c), "");
  EXPECT_EQ(unsupported_reason(described(), c), "");  // at its default it needs no claim
  for (const char* path : {"softmax.sink", "mask.documents", "heads.mapping"})
    EXPECT_NE(
        fault(std::string(head) + R"(, "supports": {")" + path + R"(": ["*"]}})").find("is no value of this field"),
        std::string::npos)
        << path;
}

// A clause that has no meaning under the contract does not restrict: there is nothing to rotate here.
TEST(AdapterDescription, MeaninglessFieldsDoNotRestrict) {
  EXPECT_EQ(
      unsupported_reason(described(R"(, "supports": {"rope.pairing": ["interleaved"]})"), plain_golden_case().input),
      "");
}

}  // namespace
}  // namespace qkcts
