// SPDX-License-Identifier: Apache-2.0
// What counts as named first, and what is promised of it.
#include <gtest/gtest.h>

#include "harness/diagnosis_study.hpp"

namespace qkcts {
namespace {

Suspect suspect(const std::string& clause, const std::string& known_id, std::uint64_t values) {
  Suspect made;
  made.changes = {{clause, "field", "asked", "computed"}};
  if (!known_id.empty()) made.known_as = {{known_id, clause, "formula"}};
  made.values = values;
  return made;
}

NamedFirst named(std::vector<Suspect> matches) {
  CaseDiagnosis d;
  d.matches = std::move(matches);
  return named_first(d, "mine", "QK-EPS-02");
}

TEST(DiagnosisStudy, TheClauseOfTheFirstMatchCounts) {
  EXPECT_EQ(named({suspect("QK-EPS-02", "", 1)}), NamedFirst::clause);
  EXPECT_EQ(named({suspect("QK-GAIN-01", "", 1), suspect("QK-EPS-02", "mine", 1)}), NamedFirst::same_values);
  EXPECT_EQ(named({suspect("QK-GAIN-01", "", 1), suspect("QK-EPS-02", "mine", 2)}), NamedFirst::behind);
  EXPECT_EQ(named({suspect("QK-GAIN-01", "other", 1)}), NamedFirst::other);
  EXPECT_EQ(named({}), NamedFirst::nothing);
  // The catalogue may say of a contract that it violates another clause than the one of the changed field.
  Suspect known = suspect("QK-EPS-01", "", 1);
  known.known_as = {{"mine", "QK-EPS-02", "formula"}};
  EXPECT_EQ(named({known}), NamedFirst::clause);
}

DiagnosisStudy study_of(std::size_t right, std::size_t wrong, Format format) {
  DiagnosisStudy study;
  for (std::size_t i = 0; i < right + wrong; ++i) {
    DiagnosedMutant& one = study.mutants.emplace_back();
    one.id = "mutant_" + std::to_string(i);
    one.clause = "QK-EPS-01";
    one.format = format;
    one.slug = "contract/family/case";
    one.named = i < right ? NamedFirst::clause : NamedFirst::behind;
    one.seconds = static_cast<double>(i);
  }
  return study;
}

TEST(DiagnosisStudy, ThePromiseIsASharePerFormatAndNobodyAccused) {
  EXPECT_TRUE(keeps_promise(study_of(19, 1, Format::binary32)));
  EXPECT_FALSE(keeps_promise(study_of(18, 2, Format::binary32)));
  EXPECT_TRUE(keeps_promise(study_of(8, 2, Format::bfloat16)));
  EXPECT_FALSE(keeps_promise(study_of(7, 3, Format::bfloat16)));
  DiagnosisStudy accusing = study_of(20, 0, Format::binary32);
  accusing.accused = {"scalar on contract/family/case"};
  EXPECT_FALSE(keeps_promise(accusing));
}

TEST(DiagnosisStudy, MissesAndMutantsWithoutACaseAreListed) {
  DiagnosisStudy study = study_of(2, 1, Format::binary32);
  study.mutants[1].named = NamedFirst::same_values;
  study.mutants[2].first = "matches: a|b";
  study.mutants.emplace_back().id = "unseen";
  const DiagnosisTally t = tally(study, Format::binary32);
  EXPECT_EQ(t.diagnosed, 3U);
  EXPECT_EQ(t.right, 2U);
  EXPECT_EQ(t.same_values, 1U);
  EXPECT_EQ(t.without_case, 1U);
  EXPECT_EQ(t.median_seconds, 1);
  EXPECT_EQ(t.max_seconds, 2);
  const std::string text = diagnosis_study_text(study), markdown = diagnosis_study_markdown(study);
  EXPECT_NE(text.find("2 of 3 (66.7 %) named first"), std::string::npos) << text;
  EXPECT_NE(text.find("miss: mutant_2 (QK-EPS-01, binary32)"), std::string::npos) << text;
  EXPECT_NE(text.find("no case fails in output or lse: unseen"), std::string::npos) << text;
  EXPECT_NE(markdown.find("| `mutant_2` | QK-EPS-01 | binary32 | named behind: matches: a\\|b |"), std::string::npos)
      << markdown;
  EXPECT_EQ(diagnosis_study_csv(study).find("mutant_1,QK-EPS-01,adapter,binary32,contract/family/case,same values"),
            diagnosis_study_csv(study).find("mutant_1"));
  const Json document = diagnosis_study_json(study);
  EXPECT_EQ(document.at("mutants").size(), 4U);
  EXPECT_TRUE(document.at("mutants")[1].at("right").get<bool>());
  EXPECT_FALSE(document.at("mutants")[2].at("right").get<bool>());
}

}  // namespace
}  // namespace qkcts
