// SPDX-License-Identifier: Apache-2.0
#include "harness/certificate.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "harness/certificate_package.hpp"
#include "harness/sample_record.hpp"

namespace qkcts {
namespace {

CertificateTerms terms_with(const std::vector<std::string>& suites) {
  CertificateTerms terms;
  for (const std::string& suite : suites) terms.corpora.push_back({suite, std::string(64, 'b'), 1});
  return terms;
}

// One passing case of each suite.
RunRecord record_of(const std::vector<std::string>& suites, SuiteOfCase& suite_of) {
  RunRecord record = passing_record();
  const CaseResult pass = record.cases[0];
  record.cases.clear();
  for (const std::string& suite : suites) {
    record.cases.push_back(pass);
    record.cases.back().slug = suite + "/case";
    suite_of[suite + "/case"] = suite;
  }
  return record;
}

std::map<std::string, bool> reached(const Json& claims) {
  std::map<std::string, bool> levels;
  for (const Json& level : claims.at("levels")) levels[level.at("level")] = level.at("reached").get<bool>();
  return levels;
}

std::map<std::string, bool> levels_of(const std::vector<std::string>& suites,
                                      const std::function<void(RunRecord&)>& change = {}) {
  SuiteOfCase suite_of;
  RunRecord record = record_of(suites, suite_of);
  if (change) change(record);
  return reached(certificate_claims(record, terms_with(suites), suite_of));
}

using Levels = std::map<std::string, bool>;

TEST(Certificate, ALevelStandsOnThoseBelowItAndOnTheFreshPart) {
  EXPECT_EQ(levels_of({"core", "fresh"}),
            (Levels{{"core", true}, {"edge", false}, {"robust", false}, {"repeatable", false}}));
  EXPECT_EQ(levels_of({"core", "edge", "fresh"}),
            (Levels{{"core", true}, {"edge", true}, {"robust", false}, {"repeatable", false}}));
  EXPECT_EQ(levels_of({"edge", "robust", "fresh"}),
            (Levels{{"core", false}, {"edge", false}, {"robust", false}, {"repeatable", false}}));
  EXPECT_FALSE(levels_of({"core"})["core"]) << "nothing was drawn anew";
  const auto all = [](RunRecord& r) { r.description.bitwise_repeatable = Claim::made; };
  EXPECT_TRUE(levels_of({"core", "edge", "robust", "fresh"}, all)["repeatable"]);
  EXPECT_FALSE(levels_of({"core", "edge", "robust", "fresh"})["repeatable"]) << "nobody claims it";
  EXPECT_FALSE(levels_of({"core", "edge", "robust", "fresh"}, [&](RunRecord& r) {
    all(r);
    r.cases[2].stages[0].differing_calls = 1;
  })["repeatable"]);
}

TEST(Certificate, NothingButAPassMakesALevel) {
  using enum Verdict;
  for (const Verdict verdict : {fail, error_crash, not_run, unsupported, skipped, xfail}) {
    const auto first = [&](RunRecord& r) { r.cases[0].verdict = verdict; };
    const auto fresh = [&](RunRecord& r) { r.cases[1].verdict = verdict; };
    EXPECT_FALSE(levels_of({"core", "fresh"}, first)["core"]) << verdict_name(verdict);
    EXPECT_FALSE(levels_of({"core", "fresh"}, fresh)["core"]) << verdict_name(verdict);
  }
}

TEST(Certificate, WhatIsUnsupportedInsideOfTheScopeDoesNotConform) {
  SuiteOfCase suite_of;
  RunRecord record = record_of({"core", "edge", "fresh"}, suite_of);
  record.cases[1].verdict = Verdict::unsupported;
  record.demands.everything = true;
  EXPECT_EQ(certificate_claims(record, terms_with({"core"}), suite_of).at("conforms"), false);
}

TEST(Certificate, PerfectRoundingBelowBinary64IsSuspicious) {
  SuiteOfCase suite_of;
  RunRecord record = record_of({"core", "fresh"}, suite_of);
  const auto suspicious = [&] {
    return certificate_claims(record, terms_with({"core"}), suite_of).at("suspicious").size();
  };
  EXPECT_EQ(suspicious(), 0u) << "too few elements to tell";
  for (CaseResult& result : record.cases)
    for (StageResult& stage : result.stages) {
      stage.judgement->counts.judged = 10000;
      stage.judgement->max_ulp = 0.5;
    }
  EXPECT_EQ(suspicious(), 1u);
  record.cases[0].stages[0].judgement->max_ulp = 0.51;
  EXPECT_EQ(suspicious(), 0u);
}

TEST(Certificate, TheTitleSaysWhatIsCertified) {
  SuiteOfCase suite_of;
  const RunRecord record = record_of({"core", "fresh"}, suite_of);
  const Json claims = certificate_claims(record, terms_with({"core", "fresh"}), suite_of);
  EXPECT_EQ(claims.at("title"), "mine <&> 1: level core; plain_sdpa x binary32 x f32 x core, fresh x plain loops");
}

// Nobody picks the seed: it follows from the file and the nonce, and whoever has both can compute it.
TEST(Certificate, TheSeedIsThatOfSha256) {
  AdapterSpec adapter;
  adapter.path = "/dev/null";
  EXPECT_EQ(fresh_seed(adapter, "abc"), 0xba7816bf8f01cfeaU) << "SHA-256 of 'abc' begins so (FIPS 180-4)";
  EXPECT_NE(fresh_seed(adapter, "abd"), fresh_seed(adapter, "abc"));
}

TEST(Certificate, TermsComeBackAsTheyWere) {
  CertificateTerms terms = terms_with({"core", "fresh"});
  terms.description = "{\"name\":\"x\"}";
  terms.seed = ~std::uint64_t{0};
  terms.nonce = "n";
  terms.contracts = {"a*"};
  terms.known_failures = "{\"failures\":[]}";
  terms.machine = {{"distribution", "none"}};
  terms.suite = {{"version", "0"}};
  const Json json = to_json(terms);
  EXPECT_EQ(to_json(terms_from_json(JsonAt(json, "terms"))), json);
}

TEST(Certificate, OutputsThatSayOtherwiseAreToldApart) {
  const RunRecord record = passing_record();
  EXPECT_TRUE(package::differences(record, record).empty());
  RunRecord slower = record;
  slower.cases[0].seconds = 9;
  EXPECT_TRUE(package::differences(record, slower).empty());
  RunRecord other = record;
  other.cases[0].stages[0].judgement->max_ulp += 1;
  ASSERT_EQ(package::differences(record, other).size(), 1u);
  EXPECT_NE(package::differences(record, other)[0].find("max_ulp: run.json says"), std::string::npos);
  RunRecord bits = record;
  bits.cases[0].stages[0].output_sha256 = std::string(64, 'e');
  EXPECT_EQ(package::differences(record, bits).size(), 1u);
  // Another call was worse than the one whose outputs are there: that the run says so is no forgery. The reverse is.
  RunRecord worse = record;
  worse.cases[0].stages[0].differing_calls = 1;
  worse.cases[0].stages[0].judgement->max_ratio += 0.1;
  EXPECT_TRUE(package::differences(worse, record).empty());
  worse.cases[0].stages[0].judgement->max_ratio = 0;
  RunRecord honest = record;
  honest.cases[0].stages[0].judgement->max_ratio = 0.3;
  EXPECT_FALSE(package::differences(worse, honest).empty());
  RunRecord fewer = record;
  fewer.cases.clear();
  EXPECT_EQ(package::differences(fewer, record).size(), 1u);
  EXPECT_EQ(package::differences(record, fewer).size(), 1u);
}

}  // namespace
}  // namespace qkcts
