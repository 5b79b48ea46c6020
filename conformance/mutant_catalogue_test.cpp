// SPDX-License-Identifier: Apache-2.0
#include "conformance/mutant_catalogue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "conformance/clause.hpp"
#include "conformance/document.hpp"
#include "conformance/file.hpp"

namespace qkcts {

std::span<const Document> mutant_documents();

namespace {

constexpr qkcts_shape decode{1, 4, 2, 1, 16, 8, 6};
constexpr qkcts_shape prefill{1, 4, 2, 4, 8, 8, 6};
constexpr qkcts_shape cross{1, 4, 2, 16, 8, 8, 6};
constexpr qkcts_shape square{1, 4, 2, 8, 8, 8, 6};

TEST(MutantCatalogue, EveryFileReadsAndIsAboutOneGroupOfClauses) {
  std::size_t entries = 0;
  for (const Document& document : mutant_documents()) {
    for (const CatalogueMutant& mutant : mutants_from_json(document.text, document.name)) {
      ++entries;
      if (document.name == "harness") {
        EXPECT_EQ(mutant.kind, MutantKind::harness) << mutant.id;
      } else if (document.name == "cache") {
        EXPECT_EQ(mutant.awaits, "kv_cache") << mutant.id;
      } else {
        std::string group(clause_group(mutant.clause).substr(3));
        std::transform(group.begin(), group.end(), group.begin(), [](unsigned char c) { return std::tolower(c); });
        EXPECT_EQ(group, document.name) << mutant.id;
      }
    }
  }
  EXPECT_EQ(entries, mutant_catalogue().size());
}

TEST(MutantCatalogue, EveryClauseHasAMutant) {
  for (const Clause& clause : clauses()) {
    const auto of_clause = [&](const CatalogueMutant& mutant) {
      return mutant.clause == clause.id && mutant.awaits.empty();
    };
    const auto all = mutant_catalogue();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), of_clause)) << clause.id << ": " << clause.title;
  }
}

TEST(MutantCatalogue, HoldsTheMutantsOfTheIssuesAndMoreOfOurOwn) {
  std::size_t of_issues = 0, own = 0;
  for (const CatalogueMutant& mutant : mutant_catalogue()) ++(mutant.word.empty() ? own : of_issues);
  EXPECT_EQ(of_issues, 125u);
  EXPECT_GE(own, 40u);
}

// `fields` that no shipped contract lets say anything would be words without a meaning.
TEST(MutantCatalogue, EveryWrongContractIsThatOfSomeContract) {
  std::vector<Contract> contracts;
  for (const std::string& name : shipped_contracts()) contracts.push_back(shipped_contract(name));
  const qkcts_shape* const shapes[] = {&decode, &prefill, &square, &cross};
  for (const CatalogueMutant& mutant : mutant_catalogue()) {
    if (mutant.fields.empty()) continue;
    const auto applies = [&](const Contract& contract) {
      return std::any_of(std::begin(shapes), std::end(shapes), [&](const qkcts_shape* shape) {
        return contract_of(mutant, contract.terms, shape).has_value();
      });
    };
    EXPECT_TRUE(std::any_of(contracts.begin(), contracts.end(), applies)) << mutant.id;
  }
}

// The tests that catch broken checkers exist. (What they catch, they say themselves.)
TEST(MutantCatalogue, EveryCheckIsATest) {
  std::string tests;
  for (const char* folder : {"harness", "vectors"})
    for (const auto& entry : std::filesystem::directory_iterator(std::string(QKCTS_SOURCE_DIR "/") + folder))
      if (entry.path().string().ends_with("_test.cpp")) tests += read_text_file(entry.path().string());
  for (const CatalogueMutant& mutant : mutant_catalogue()) {
    if (mutant.check.empty()) continue;
    const std::size_t dot = mutant.check.find('.');
    const std::string test = mutant.check.substr(0, dot) + ", " + mutant.check.substr(dot + 1) + ")";
    EXPECT_NE(tests.find("(" + test), std::string::npos) << mutant.id << ": there is no test " << mutant.check;
  }
}

qkcts_contract wrong(const char* id, const char* contract, const qkcts_shape* shape = nullptr) {
  return contract_of(*find_catalogue_mutant(id), shipped_contract(contract).terms, shape).value();
}

bool applies(const char* id, const char* contract, const qkcts_shape* shape = nullptr) {
  return contract_of(*find_catalogue_mutant(id), shipped_contract(contract).terms, shape).has_value();
}

TEST(MutantCatalogue, ChangesWhatItsFieldsSay) {
  const qkcts_contract qwen = shipped_contract("qwen3_rmsnorm").terms;
  EXPECT_EQ(qwen.q_norm.eps, 1e-6);
  EXPECT_EQ(wrong("eps_times_ten", "qwen3_rmsnorm").q_norm.eps, 1e-5);
  EXPECT_EQ(wrong("eps_times_ten", "qwen3_rmsnorm").k_norm.eps, 1e-5);
  EXPECT_EQ(wrong("eps_outside_sqrt", "qwen3_rmsnorm").k_norm.root, QKCTS_OUTSIDE_ROOT);
  EXPECT_FALSE(applies("eps_inside_sqrt", "qwen3_rmsnorm"));
  EXPECT_FALSE(applies("eps_class_default", "qwen3_rmsnorm"));
  EXPECT_EQ(wrong("norm_skipped", "qwen3_rmsnorm").q_norm.applied, 0u);
  EXPECT_EQ(wrong("eps_underflow_fp16", "qwen3_rmsnorm").q_norm.eps, 17 * 0x1p-24);
  EXPECT_EQ(wrong("temperature_inverted", "plain_sdpa_temperature_2").score.temperature, 0.5);
}

TEST(MutantCatalogue, SidesAreChangedEachForItself) {
  const qkcts_contract terms = wrong("norm_of_queries_skipped", "clause_mixed_norms");
  EXPECT_EQ(terms.q_norm.applied, 0u);
  EXPECT_EQ(terms.k_norm.applied, 1u);
  // The norm on q alone is left out; there is none on k.
  EXPECT_EQ(wrong("norm_skipped", "clause_norm_on_q_only").q_norm.applied, 0u);
}

TEST(MutantCatalogue, LengthsComeFromTheShape) {
  EXPECT_FALSE(applies("eps_sum_for_mean", "qwen3_rmsnorm"));
  EXPECT_EQ(wrong("eps_sum_for_mean", "qwen3_rmsnorm", &square).q_norm.eps, 1e-6 / 8);
  EXPECT_EQ(wrong("scale_d_model", "qwen3_rmsnorm", &square).score.scale_value, 32);
  EXPECT_EQ(wrong("scale_by_group", "qwen3_rmsnorm", &square).score.scale_value, 16);
  EXPECT_TRUE(applies("window_ignored_decode", "qwen3_window", &decode));
  EXPECT_FALSE(applies("window_ignored_decode", "qwen3_window", &prefill));
  const qkcts_contract olmo = wrong("l2_for_rms", "olmo2_full_width", &square);
  const double eps = shipped_contract("olmo2_full_width").terms.q_norm.eps;
  EXPECT_DOUBLE_EQ(olmo.q_norm.eps, 32 * eps);
  EXPECT_DOUBLE_EQ(olmo.k_norm.eps, 16 * eps);
}

TEST(MutantCatalogue, WindowsAreFieldsToo) {
  const qkcts_contract own = shipped_contract("clause_window_both").terms;
  EXPECT_EQ(wrong("window_plus_one", "clause_window_both").mask.window_left, own.mask.window_left + 1);
  EXPECT_EQ(wrong("window_right_ignored", "clause_window_both").mask.window_right, -1);
  EXPECT_EQ(wrong("window_ignored", "clause_window_both").mask.has_window, 0u);
}

std::string refusal(const std::string& fields) {
  const std::string text = R"({"mutants": [{"id": "x", "clause": "QK-EPS-01", "kind": "math", "stage": "q_norm",
    "contract": "a", "mutant": "b", "sources": ["own"], )" +
                           fields + "}]}";
  try {
    mutants_from_json(text, "x.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(MutantCatalogue, BadEntriesAreRefused) {
  EXPECT_EQ(refusal(R"("fields": {"q_norm.eps": 0})"), "");
  EXPECT_NE(refusal(R"("fields": {"q_norm.epsilon": 0})").find("no such field"), std::string::npos);
  EXPECT_NE(refusal(R"("fields": {"q_norm.root": "around"})").find("no value of it"), std::string::npos);
  EXPECT_NE(refusal(R"("fields": {"q_norm.kind": "rns"})").find("no kind"), std::string::npos);
  EXPECT_NE(refusal(R"("fields": {"q_norm.eps": {"times": "widht"}})").find("no value of it"), std::string::npos);
  EXPECT_NE(refusal(R"("fields": {"q_norm.eps": {"plus": 1, "times": 2}})"), "");
  EXPECT_NE(refusal(R"("fields": {"q_norm.eps": 0}, "when": {"shape": "decoding"})").find("there is no"),
            std::string::npos);
  EXPECT_NE(refusal(R"("fields": {"q_norm.eps": 0}, "fault": "y")").find("exactly one"), std::string::npos);
  EXPECT_NE(refusal(R"("fault": "y", "when": {"q_norm.eps": 0})").find("no meaning"), std::string::npos);
  EXPECT_NE(refusal(R"("check": "A.B")").find("harness"), std::string::npos);
}

}  // namespace
}  // namespace qkcts
