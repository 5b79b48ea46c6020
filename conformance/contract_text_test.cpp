// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "conformance/clause.hpp"
#include "conformance/contract.hpp"
#include "conformance/contract_field.hpp"

namespace qkcts {
namespace {

// Bytes, padding included: normalised() promises that equal contracts are equal so.
std::string_view bytes_of(const qkcts_contract& terms) {
  return {reinterpret_cast<const char*>(&terms), sizeof terms};
}

std::vector<std::string> all_contracts() {
  std::vector<std::string> names = shipped_contracts();
  for (std::string& name : model_contracts()) names.push_back(std::move(name));
  return names;
}

TEST(CanonicalJson, IsAFixedPointForEveryShippedContract) {
  for (const std::string& name : all_contracts()) {
    const Contract contract = shipped_contract(name);
    const std::string text = canonical_json(contract);
    const Contract again = contract_from_json(text, name);
    EXPECT_EQ(canonical_json(again), text);
    EXPECT_EQ(contract_digest(again), contract_digest(contract));
    EXPECT_EQ(bytes_of(again.terms), bytes_of(contract.terms)) << name;
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_EQ(contract.name, name);
    EXPECT_FALSE(contract.title.empty());
    EXPECT_FALSE(contract.sources.empty());
  }
}

// Pinned: corpora carry these bytes and this digest. A change here needs a line in docs/changelog.md.
TEST(CanonicalJson, DoesNotChange) {
  const Contract contract = shipped_contract("plain_sdpa_temperature");
  EXPECT_EQ(
      canonical_json(contract),
      R"({"k_norm":{"kind":"none"},"mask":{"boolean":false,"causal":false,"kv_lengths":false,"window":null},)"
      R"("name":"plain_sdpa_temperature","q_norm":{"kind":"none"},"rope":{"order":"none"},)"
      R"("schema":"qkcts-contract/1","score":{"bias_order":"none","scale_form":"inv_sqrt_head_dim","softcap":null,)"
      R"("temperature":0.5},"sources":["Vaswani et al., Attention Is All You Need, arXiv 1706.03762, equation 1",)"
      R"("temperature: Hinton, Vinyals and Dean, Distilling the Knowledge in a Neural Network, arXiv 1503.02531, )"
      R"(section 2"],"title":"Scaled dot-product attention at temperature 1/2"})");
  EXPECT_EQ(contract_digest(shipped_contract("qwen3_rmsnorm")),
            "41024a4b483ea28570fbfad3d237ba4e60095e4e14abf96c4e172d6665df78dc");
}

TEST(CanonicalJson, RefusesAStructThatHoldsNoEnumerator) {
  Contract contract = shipped_contract("qwen3_rmsnorm");
  contract.terms.q_norm.root = 77;
  EXPECT_THROW(canonical_json(contract), std::invalid_argument);
}

TEST(ContractDigest, TellsEveryShippedContractApart) {
  std::set<std::string> digests;
  for (const std::string& name : all_contracts())
    EXPECT_TRUE(digests.insert(contract_digest(shipped_contract(name))).second) << name;
}

TEST(ContractDigest, IgnoresNameAndIgnoredFieldsOnly) {
  Contract contract = shipped_contract("plain_sdpa");
  const std::string digest = contract_digest(contract);
  contract.name = "other";
  contract.title = "other";
  contract.sources.clear();
  contract.terms.q_norm.eps = 1;         // not applied
  contract.terms.rope.theta = 7;         // no rotary embedding
  contract.terms.mask.offset = 5;        // no alignment
  contract.terms.score.scale_value = 3;  // not used by this form
  contract.terms.score.temperature = 0;  // means 1
  EXPECT_EQ(contract_digest(contract), digest);
  contract.terms.score.temperature = 1.0000000000000002;
  EXPECT_NE(contract_digest(contract), digest);
}

TEST(ContractDifferences, NameTheClause) {
  Contract left = shipped_contract("qwen3_rmsnorm");
  Contract right = left;
  EXPECT_TRUE(contract_differences(left, right).empty());
  right.terms.k_norm.root = QKCTS_OUTSIDE_ROOT;
  right.terms.mask.has_window = 1;
  right.terms.mask.window_left = 15;
  const std::vector<ClauseDifference> differences = contract_differences(left, right);
  ASSERT_EQ(differences.size(), 2U);
  EXPECT_EQ(differences[0].clause, "QK-EPS-02");
  EXPECT_EQ(differences[0].field, "k_norm.root");
  EXPECT_EQ(differences[0].left, "inside_root");
  EXPECT_EQ(differences[0].right, "outside_root");
  EXPECT_EQ(differences[1].clause, "QK-MASK-05");
  EXPECT_EQ(differences[1].left, "null");
  EXPECT_EQ(differences[1].right, "{\"left\":15,\"right\":0}");
}

TEST(ContractDifferences, AMissingNormIsOneDifference) {
  Contract right = shipped_contract("qwen3_rmsnorm");
  right.terms.q_norm = qkcts_norm{};
  const std::vector<ClauseDifference> differences = contract_differences(shipped_contract("qwen3_rmsnorm"), right);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].field, "q_norm.kind");
  EXPECT_EQ(differences[0].right, "none");
}

// Contracts that give every field a meaning between them.
std::vector<Contract> full_contracts() {
  Contract first = shipped_contract("clause_mixed_norms");
  first.terms.k_norm.center = 1;
  first.terms.rope = {QKCTS_NORM_THEN_ROPE, QKCTS_INTERLEAVED, QKCTS_SPAN_FIRST, 8, 100};
  first.terms.score = {QKCTS_SCALE_CONSTANT, QKCTS_BIAS_BEFORE_SOFTCAP, 0.5, 2, 3};
  first.terms.mask = {1, QKCTS_OFFSET, 1, 1, QKCTS_EMPTY_NAN, 1, 3, 4, 5};
  first.terms.rotation.scaling = QKCTS_SCALING_YARN;
  first.terms.rotation.factor = 2;
  first.terms.rotation.original_length = 64;
  first.terms.rotation.low = 1;
  first.terms.rotation.high = 32;
  first.terms.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG;
  first.terms.logits.query_period = 4;
  Contract second = first;
  second.terms.score.scale_form = QKCTS_SCALE_LEARNED_SCALAR;
  qkcts_norm norm = first.terms.k_norm;
  norm.center = 1;
  norm.gain = QKCTS_GAIN_W;
  norm.gain_axes = QKCTS_AXES_FULL_WIDTH;
  first.terms.v_norm = norm;
  first.terms.projection = {QKCTS_PROJECTION_LINEAR, 1, norm, norm};
  first.terms.rounding.scores = QKCTS_BFLOAT16;
  return {first, second};
}

// Whatever changes the digest is reported: changing any single field of a contract in which that field has a meaning.
TEST(ContractDifferences, FindAChangeOfEveryField) {
  const std::vector<Contract> all = full_contracts();
  for (const ContractField& field : contract_field_table()) {
    const auto full = std::find_if(all.begin(), all.end(), [&](const Contract& c) { return field.meant(c.terms); });
    ASSERT_NE(full, all.end()) << field.path();
    Contract changed = *full;
    char* place = reinterpret_cast<char*>(&changed.terms) + field.offset;
    if (field.type == FieldType::number || field.type == FieldType::optional_number) {
      const double value = 77;
      std::memcpy(place, &value, sizeof value);
    } else if (field.type == FieldType::integer || field.type == FieldType::optional_integer) {
      place[0] = 77;
    } else {
      place[0] = static_cast<char>(place[0] == 0 ? 1 : place[0] - 1);
    }
    const std::vector<ClauseDifference> found = contract_differences(*full, changed);
    ASSERT_EQ(found.size(), 1U) << field.path();
    EXPECT_EQ(found[0].field, field.path());
    EXPECT_EQ(found[0].clause, field.clause);
    EXPECT_NE(contract_digest(*full), contract_digest(changed)) << field.path();
  }
}

// A field of ABI 1.1 at its default leaves text and digest as they were; off it, an adapter must claim it.
TEST(ContractFields, LaterFieldsStandInTheTextOnlyOffTheirDefault) {
  Contract contract = shipped_contract("plain_sdpa");
  const std::string before = canonical_json(contract);
  for (const std::string_view key : {"sink", "multiplier", "chunk", "mapping"})
    EXPECT_EQ(before.find(key), std::string::npos) << key;
  const auto claimed = [](const Contract& c) {
    std::vector<std::string> paths;
    for (const FieldValue& value : contract_field_values(c.terms))
      if (value.by_claim) paths.push_back(value.path);
    return paths;
  };
  EXPECT_TRUE(claimed(contract).empty());
  contract.terms.q_range.multiplier = 1;  // the default, spelt out
  EXPECT_EQ(canonical_json(contract), before);
  contract.terms.softmax.sink = QKCTS_SINK_COLUMN;
  EXPECT_NE(canonical_json(contract).find("\"sink\":\"column\""), std::string::npos);
  EXPECT_EQ(claimed(contract), std::vector<std::string>{"softmax.sink"});
}

// A point without a stage is no point, and then nothing saturates.
TEST(ContractFields, SaturationGoesWithItsLastPoint) {
  qkcts_contract terms = shipped_contract("plain_sdpa").terms;
  const qkcts_contract plain = normalised(terms);
  terms.rounding.q.norm = QKCTS_E4M3FN;
  terms.rounding.saturate = 1;
  EXPECT_EQ(bytes_of(normalised(terms)), bytes_of(plain));
}

TEST(ContractFields, EveryValueHasAKnownPathAndClause) {
  const std::vector<std::string> paths = contract_field_paths();
  for (const std::string& name : all_contracts())
    for (const FieldValue& value : contract_field_values(shipped_contract(name).terms)) {
      EXPECT_NE(std::find(paths.begin(), paths.end(), value.path), paths.end()) << value.path;
      EXPECT_NE(find_clause(value.clause), nullptr) << value.clause;
    }
}

// Every value of every enumeration, and both values of every flag, occur in some shipped contract.
TEST(ShippedContracts, UseEveryEnumeratorAndFlag) {
  std::set<std::string> seen;
  for (const std::string& name : shipped_contracts())
    for (const FieldValue& value : contract_field_values(shipped_contract(name).terms))
      seen.insert(value.path + "=" + value.json);
  for (const ContractField& field : contract_field_table()) {
    if (field.type == FieldType::flag) {
      for (const char* text : {"true", "false"}) EXPECT_EQ(seen.count(field.path() + "=" + text), 1U) << field.path();
    }
    if (field.section == "rounding") continue;  // every point occurs, and every format at some of them: below
    for (const std::string_view text : field.texts) {
      const std::string both = std::string(field.key) + "=\"" + std::string(text) + "\"";
      if (field.key == "gain_axes" && text == "none") continue;  // stands only beside no gain, where it has no meaning
      const bool used =
          std::any_of(seen.begin(), seen.end(), [&](const std::string& s) { return s.ends_with("." + both); });
      EXPECT_TRUE(used) << both;
    }
  }
  for (const ContractField& field : contract_field_table()) {
    const auto is_used = [&](const std::string& s) {
      return s.starts_with(field.path() + "=") && s.find("none") == std::string::npos;
    };
    EXPECT_TRUE(field.section != "rounding" || std::any_of(seen.begin(), seen.end(), is_used)) << field.path();
  }
  for (const std::string text : {"binary16", "bfloat16", "e4m3fn", "e5m2"}) {
    const auto is_used = [&](const std::string& s) {
      return s.starts_with("rounding.") && s.ends_with("=\"" + text + "\"");
    };
    EXPECT_TRUE(std::any_of(seen.begin(), seen.end(), is_used)) << text;
  }
  for (const char* text : {"none", "rms", "layer_norm", "l2", "centered_l2"})
    EXPECT_EQ(seen.count(std::string("q_norm.kind=\"") + text + "\""), 1U) << text;
}

TEST(ShippedContracts, AreTheFilesOfTheirFolder) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(QKCTS_SOURCE_DIR "/conformance/contracts"))
    files.insert(entry.path().stem());
  const std::vector<std::string> names = all_contracts();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), files) << "is one missing in CMakeLists.txt?";
  EXPECT_EQ(names.size(), files.size()) << "is one twice in CMakeLists.txt?";
}

TEST(ShippedContracts, UnknownNamesGetASuggestion) {
  try {
    shipped_contract("qwen3_rmsnrm");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("qwen3_rmsnorm"), std::string::npos) << error.what();
  }
  EXPECT_THROW(shipped_contract(""), InputError);
  EXPECT_THROW(shipped_contract(std::string(100000, 'x')), InputError);
}

}  // namespace
}  // namespace qkcts
