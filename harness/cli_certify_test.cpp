// SPDX-License-Identifier: Apache-2.0
// Certificates as a submitter makes them, a reviewer checks them, and a forger changes them.
#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <set>

#include "harness/certificate_package.hpp"
#include "harness/program_output.hpp"
#include "harness/report_html.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;

class CliCertify : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    made = qkcts("certify scalar --suite smoke --nonce first -o " + path("certificate"));
  }

  // A copy to spoil.
  static std::string copied(const std::string& name) {
    fs::remove_all(path(name));
    fs::copy(path("certificate"), path(name));
    return path(name);
  }
  static ProgramOutput verified(const std::string& name) { return qkcts("verify-certificate " + path(name)); }
  static Json certificate_in(const std::string& name) {
    return parse_json(read_text_file(path(name) + "/certificate.json"), name);
  }
  // As a forger does it who has read the format.
  static void resealed(const std::string& name, Json body) {
    body.erase("digest");
    body.erase("files");
    package::seal(path(name), std::move(body));
  }

  static inline ProgramOutput made;
};

TEST_F(CliCertify, ACertificateHoldsExactlyItsFilesAndSaysItsScope) {
  ASSERT_EQ(made.code, 0) << made.out << made.err;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(path("certificate"))) names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"certificate.json", "fresh.h5", "outputs.h5", "report.html", "run.json",
                                          "summary.md"}));
  const Json body = certificate_in("certificate");
  const auto title = body["claims"]["title"].get<std::string>();
  for (const char* part : {"no level", "contracts", "binary32", "bfloat16", "smoke, fresh"})
    EXPECT_NE(title.find(part), std::string::npos) << part << ": " << title;
  EXPECT_EQ(body["claims"]["levels"][0]["detail"], "this suite was not run");
  EXPECT_EQ(body["terms"]["nonce"], "first");
  const std::string summary = read_text_file(path("certificate/summary.md"));
  for (const char* part : {"qkcts certify scalar --suite smoke --nonce YOUR_OWN", "Chan", "What this does not say",
                           "## Known failures\n\nNone."})
    EXPECT_NE(summary.find(part), std::string::npos) << part;
  EXPECT_NE(made.out.find("verify-certificate"), std::string::npos) << made.out;
}

TEST_F(CliCertify, AnyoneCanJudgeAgain) {
  const ProgramOutput good = verified("certificate");
  EXPECT_EQ(good.code, 0) << good.out << good.err;
  EXPECT_NE(good.out.find("figure for figure as claimed"), std::string::npos) << good.out;
}

// Any byte of any file: the digests see it, whatever the file is.
TEST_F(CliCertify, AChangedByteIsDetectedAndNamed) {
  for (const auto& entry : fs::directory_iterator(path("certificate"))) {
    const std::string name = entry.path().filename().string();
    const std::uintmax_t size = fs::file_size(entry.path());
    for (const std::uintmax_t at : {std::uintmax_t{0}, size / 3, size - 1}) {
      const std::string spoiled = copied("changed");
      std::fstream file(spoiled + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const char byte = static_cast<char>(file.get() ^ 1);
      file.seekp(static_cast<std::streamoff>(at));
      file.put(byte);
      file.close();
      const ProgramOutput spoilt = verified("changed");
      EXPECT_EQ(spoilt.code, 3) << name << " at " << at << "\n" << spoilt.out;
      EXPECT_NE(spoilt.err.find("/" + name + ":"), std::string::npos) << spoilt.err;
      EXPECT_TRUE(is_one_line(spoilt.err)) << spoilt.err;
    }
  }
}

TEST_F(CliCertify, AFileTooManyOrTooFewIsNamed) {
  for (const auto& entry : fs::directory_iterator(path("certificate"))) {
    const std::string name = entry.path().filename().string();
    fs::remove(copied("fewer") + "/" + name);
    const ProgramOutput fewer = verified("fewer");
    EXPECT_EQ(fewer.code, 3) << name;
    EXPECT_NE(fewer.err.find("/" + name + ": is missing"), std::string::npos) << fewer.err;
  }
  std::ofstream(copied("more") + "/notes.txt") << "trust me";
  const ProgramOutput more = verified("more");
  EXPECT_EQ(more.code, 3);
  EXPECT_NE(more.err.find("/notes.txt: does not belong"), std::string::npos) << more.err;
  const std::string linked = copied("linked");
  fs::rename(linked + "/outputs.h5", path("elsewhere.h5"));
  fs::create_symlink(path("elsewhere.h5"), linked + "/outputs.h5");
  EXPECT_EQ(verified("linked").code, 3);
  EXPECT_EQ(verified("nowhere").code, 3);
}

// A forger can make all digests fit; the outputs still say what they say.
TEST_F(CliCertify, AForgedClaimIsAMismatch) {
  copied("claim");
  Json body = certificate_in("claim");
  body["claims"]["levels"][0]["reached"] = true;
  resealed("claim", body);
  const ProgramOutput claim = verified("claim");
  EXPECT_EQ(claim.code, 1) << claim.out << claim.err;
  EXPECT_NE(claim.out.find("do not follow from run.json"), std::string::npos) << claim.out;
}

TEST_F(CliCertify, AForgedFigureIsAMismatch) {
  const std::string forged = copied("figure");
  RunRecord record = read_run_record(forged + "/run.json");
  StageJudgement& judgement = *record.cases[0].stages.back().judgement;
  judgement.max_ulp = judgement.max_ulp / 2 + 0.01;
  write_file_atomically(forged + "/run.json", run_json_text(record));
  write_file_atomically(forged + "/report.html", report_html(record));
  resealed("figure", certificate_in("figure"));
  const ProgramOutput figure = verified("figure");
  EXPECT_EQ(figure.code, 1) << figure.out << figure.err;
  EXPECT_NE(figure.out.find(record.cases[0].slug + ": output/max_ulp: run.json says"), std::string::npos) << figure.out;
}

// What describe() said stands in three places. A forger who makes a kernel out to be another one in two of them is told
// by the third, the outputs.
TEST_F(CliCertify, AForgedDescriptionIsAMismatch) {
  const std::string forged = copied("described");
  Json body = certificate_in("described");
  Json& description = body["terms"]["description"];
  description["name"] = "another";
  RunRecord record = read_run_record(forged + "/run.json");
  record.description = description_from_json(canonical_text(description), "forged");
  write_file_atomically(forged + "/run.json", run_json_text(record));
  write_file_atomically(forged + "/report.html", report_html(record));
  resealed("described", body);
  const ProgramOutput described = verified("described");
  EXPECT_EQ(described.code, 1) << described.out << described.err;
  EXPECT_NE(described.out.find("outputs.h5 holds another describe()"), std::string::npos) << described.out;
}

// An entry that nobody laid down before the run excuses nothing.
TEST_F(CliCertify, AKnownFailureThatTheTermsDoNotListIsAMismatch) {
  const std::string forged = copied("excused");
  RunRecord record = read_run_record(forged + "/run.json");
  record.known_failures.push_back(
      {{"plain*", 0, Verdict::fail, "later", "issue 1", "2999-12-31", "other"}, KnownFailureState::other_suite, 0});
  write_file_atomically(forged + "/run.json", run_json_text(record));
  write_file_atomically(forged + "/report.html", report_html(record));
  resealed("excused", certificate_in("excused"));
  const ProgramOutput excused = verified("excused");
  EXPECT_EQ(excused.code, 1) << excused.out << excused.err;
  EXPECT_NE(excused.out.find("run.json lists other known failures than the terms"), std::string::npos) << excused.out;
}

// How a certificate is made is not free: a run of other calls, or in the process of the harness, is none.
TEST_F(CliCertify, ARunUnderOtherConditionsIsAMismatch) {
  const auto verified_with = [](const std::function<void(RunConditions&)>& change) {
    const std::string forged = copied("conditions");
    RunRecord record = read_run_record(forged + "/run.json");
    change(record.conditions);
    write_file_atomically(forged + "/run.json", run_json_text(record));
    write_file_atomically(forged + "/report.html", report_html(record));
    resealed("conditions", certificate_in("conditions"));
    return verified("conditions");
  };
  for (const auto& change : std::vector<std::function<void(RunConditions&)>>{
           [](RunConditions& how) { how.in_process = true; }, [](RunConditions& how) { how.variants = Variants::none; },
           [](RunConditions& how) { how.gtest = {"--gtest_filter=plain*"}; }}) {
    const ProgramOutput other = verified_with(change);
    EXPECT_EQ(other.code, 1) << other.out << other.err;
    EXPECT_NE(other.out.find("run.json was made under other conditions"), std::string::npos) << other.out;
  }
}

// A case that ended in an error names its implementation like any other, in the run and in the outputs.
TEST_F(CliCertify, AnErrorKeepsItsImplementation) {
  const ProgramOutput erring = qkcts("certify '" QKCTS_TEST_ADAPTERS
                                     "/liblying.so?fault=force_input' --suite smoke --contract plain_sdpa --format "
                                     "binary32 --nonce n -o " +
                                     path("erring"));
  EXPECT_EQ(erring.code, 1) << erring.out << erring.err;
  const RunRecord record = read_run_record(path("erring/run.json"));
  ASSERT_FALSE(record.cases.empty());
  for (const CaseResult& result : record.cases) {
    EXPECT_EQ(result.verdict, Verdict::error_input_modified) << result.detail;
    EXPECT_EQ(result.implementation, "plain loops");
  }
  const ProgramOutput judged = verified("erring");
  EXPECT_EQ(judged.code, 0) << judged.out << judged.err;
}

// The seed follows from the adapter and the nonce: neither is free once the other is given.
TEST_F(CliCertify, FreshCasesAreThoseOfTheNonce) {
  ASSERT_EQ(qkcts("certify scalar --suite smoke --nonce first -o " + path("same")).code, 0);
  ASSERT_EQ(qkcts("certify scalar --suite smoke --nonce second -o " + path("other")).code, 0);
  const Json first = certificate_in("certificate")["terms"], same = certificate_in("same")["terms"],
             other = certificate_in("other")["terms"];
  EXPECT_EQ(first["corpora"], same["corpora"]);
  EXPECT_NE(first["seed"], other["seed"]);
  EXPECT_NE(first["corpora"][1]["digest"], other["corpora"][1]["digest"]);
  EXPECT_EQ(first["corpora"][0], other["corpora"][0]);
  fs::copy_file(path("other/fresh.h5"), copied("swapped") + "/fresh.h5", fs::copy_options::overwrite_existing);
  resealed("swapped", certificate_in("swapped"));
  EXPECT_NE(verified("swapped").code, 0);
  fs::copy_file(path("certificate/fresh.h5"), path("other/fresh.h5"), fs::copy_options::overwrite_existing);
}

TEST_F(CliCertify, ANonceOfTheSubmittersIsNamed) {
  const std::string begin = "## Suspicious\n\n", drawn = "- the nonce was drawn by the submitter";
  EXPECT_EQ(read_text_file(path("certificate/summary.md")).find(drawn), std::string::npos);
  ASSERT_EQ(qkcts("certify scalar --suite smoke --contract qwen3_rmsnorm --format bfloat16 -o " + path("drawn")).code,
            0);
  const std::string summary = read_text_file(path("drawn/summary.md"));
  EXPECT_NE(summary.find(drawn), std::string::npos) << summary;
  EXPECT_EQ(summary.find(begin + "Nothing."), std::string::npos) << "and then an item";
}

TEST_F(CliCertify, NotesUnderTheNameOfItsSummaryStay) {
  write_file_atomically(copied("notes") + "/summary.md", "what took a week to write");
  const ProgramOutput refused = qkcts("certify scalar --suite smoke --nonce n -o " + path("notes"));
  EXPECT_EQ(refused.code, 2) << refused.out << refused.err;
  EXPECT_EQ(read_text_file(path("notes/summary.md")), "what took a week to write");
}

TEST_F(CliCertify, AnArchiveTakesThePlaceOfNoOtherFile) {
  written("kept.tar.zst", "notes of somebody");
  for (const std::string& output : {path("kept"), path("kept/")}) {
    const ProgramOutput refused = qkcts("certify scalar --suite smoke -o " + output);
    EXPECT_EQ(refused.code, 2) << refused.out << refused.err;
    EXPECT_NE(refused.err.find("kept.tar.zst: is there already"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(read_text_file(path("kept.tar.zst")), "notes of somebody");
}

TEST_F(CliCertify, AWrongKernelIsCertifiedAsWrong) {
  const ProgramOutput wrong =
      qkcts("certify 'mutants?mutant=eps_outside_sqrt' --suite smoke --nonce n -o " + path("wrong"));
  EXPECT_EQ(wrong.code, 1) << wrong.out << wrong.err;
  EXPECT_EQ(certificate_in("wrong")["claims"]["conforms"], false);
  EXPECT_NE(read_text_file(path("wrong/summary.md")).find("DOES NOT CONFORM"), std::string::npos);
  const ProgramOutput judged = verified("wrong");
  EXPECT_EQ(judged.code, 0) << "all is as claimed: it does not conform";
  EXPECT_NE(judged.out.find("NOT CONFORMING in its scope"), std::string::npos) << judged.out;
}

TEST_F(CliCertify, DeclaredScopeIsHeld) {
  const ProgramOutput narrow =
      qkcts("certify scalar --suite smoke --contract qwen3_rmsnorm --format bfloat16 --nonce n -o " + path("narrow"));
  EXPECT_EQ(narrow.code, 0) << narrow.out << narrow.err;
  const Json scope = certificate_in("narrow")["claims"]["scope"];
  EXPECT_EQ(scope["formats"], Json::array({"bfloat16"}));
  EXPECT_EQ(scope["contracts"].size(), 1u);
  // describe() supports the one and not the other: what was declared is more than it can do.
  const ProgramOutput more = qkcts("certify " QKCTS_TEST_ADAPTERS
                                   "/liblying.so --suite smoke --contract plain_sdpa,qwen3_rmsnorm --nonce n -o " +
                                   path("declared"));
  EXPECT_EQ(more.code, 1) << more.out << more.err;
  EXPECT_EQ(certificate_in("declared")["claims"]["conforms"], false);
  EXPECT_EQ(certificate_in("declared")["claims"]["unmet_demands"].size(), 1u);
  // The template declares everything unsupported: whoever declares more than describe() does fails.
  copied("none");
  EXPECT_EQ(qkcts("certify template --suite smoke --nonce n -o " + path("none")).code, 5);
  EXPECT_EQ(verified("none").code, 0);  // the older certificate is still there
  EXPECT_NE(qkcts("certify template --suite smoke --contract plain_sdpa --nonce n -o " + path("none")).code, 0);
}

// Whoever holds the adapter can see that the seed was not chosen.
TEST_F(CliCertify, TheAdapterShowsWhereTheSeedCameFrom) {
  const ProgramOutput without = verified("certificate");
  EXPECT_NE(without.out.find("not checked: that the seed follows"), std::string::npos) << without.out;
  const ProgramOutput with = qkcts("verify-certificate " + path("certificate") + " --adapter scalar");
  EXPECT_EQ(with.code, 0) << with.out << with.err;
  EXPECT_EQ(with.out.find("not checked: that the seed"), std::string::npos) << with.out;
  const ProgramOutput other = qkcts("verify-certificate " + path("certificate") + " --adapter template");
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.out.find("the seed does not follow from adapter and nonce"), std::string::npos) << other.out;
}

// Nothing is left out of a certificate on the quiet, and no file that was named is passed over.
TEST_F(CliCertify, NothingIsLeftOut) {
  const ProgramOutput filtered = qkcts("certify scalar --suite smoke -o " + path("x"), "GTEST_FILTER='plain*'");
  EXPECT_EQ(filtered.code, 2);
  EXPECT_NE(filtered.err.find("GTEST_FILTER"), std::string::npos) << filtered.err;
  EXPECT_EQ(qkcts("certify scalar --suite smoke,smoke -o " + path("x")).code, 2);
  for (const std::string& command :
       {"certify scalar --suite smoke -o " + path("x"), "verify-certificate " + path("certificate")}) {
    const ProgramOutput absent = qkcts(command + " --corpus " + path("absent.h5"));
    EXPECT_EQ(absent.code, 3) << command;
    EXPECT_NE(absent.err.find("is no corpus of these suites"), std::string::npos) << absent.err;
  }
}

TEST_F(CliCertify, UsageIsChecked) {
  EXPECT_EQ(qkcts("certify scalar --suite nonsense -o " + path("x")).code, 2);
  EXPECT_EQ(qkcts("certify scalar --suite relations -o " + path("x")).code, 2);
  EXPECT_EQ(qkcts("certify scalar --suite smoke --format float8 -o " + path("x")).code, 2);
  EXPECT_EQ(qkcts("certify /nonexistent.so --suite smoke -o " + path("x")).code, 4);
  fs::create_directory(path("full"));
  written("full/notes.txt", "mine");
  EXPECT_EQ(qkcts("certify scalar --suite smoke -o " + path("full")).code, 6);
  EXPECT_TRUE(fs::exists(path("full/notes.txt")));
}

}  // namespace
}  // namespace qkcts
