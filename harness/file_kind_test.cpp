// SPDX-License-Identifier: Apache-2.0
// The marks of each kind are those that its writer makes.
#include "harness/file_kind.hpp"

#include <fstream>
#include <map>

#include "harness/adequacy_report.hpp"
#include "harness/baseline.hpp"
#include "harness/bench.hpp"
#include "harness/diagnosis_study.hpp"
#include "harness/offline_export.hpp"
#include "harness/peer_study.hpp"
#include "harness/program_output.hpp"
#include "harness/report_ctrf.hpp"
#include "harness/report_gitlab.hpp"
#include "harness/report_html.hpp"
#include "harness/report_junit.hpp"
#include "harness/report_markdown.hpp"
#include "harness/run_journal.hpp"
#include "harness/sample_record.hpp"
#include "harness/test_adapters/test_adapters.hpp"

namespace qkcts {
namespace {

const std::string smoke = QKCTS_SOURCE_DIR "/vectors/golden/smoke.h5";

class FileKinds : public ProgramTest {};

TEST_F(FileKinds, WhatEachWriterWritesIsOfItsKind) {
  const RunRecord failing = full_record(), passing = passing_record();
  Baseline baseline;
  update_baseline(baseline, passing, "here");
  const std::multimap<FileKind, std::string> texts = {
      {FileKind::run, run_json_text(failing)},
      {FileKind::run, run_json_text(passing)},
      {FileKind::baseline, baseline_json_text(baseline)},
      {FileKind::baseline, baseline_json_text({})},
      {FileKind::contract, canonical_json(shipped_contract("qwen3_rmsnorm"))},
      {FileKind::contract, parse_json(canonical_json(shipped_contract("gpt_oss")), "c").dump(2)},
      {FileKind::page, report_html(failing)},
      {FileKind::markdown, report_markdown(failing)},
      {FileKind::junit, junit_xml(failing)},
      {FileKind::ctrf, ctrf_json_text(failing)},
      {FileKind::code_quality, gitlab_code_quality(failing)},
      {FileKind::code_quality, gitlab_code_quality(passing)},
      {FileKind::bench, bench_text({})},
      {FileKind::bench, bench_json({}).dump(1)},
      {FileKind::adequacy, adequacy_text({})},
      {FileKind::adequacy, adequacy_json({}).dump(1)},
      {FileKind::adequacy, adequacy_markdown({})},
      {FileKind::adequacy, adequacy_csv({})},
      {FileKind::adequacy, peer_study_text({})},
      {FileKind::adequacy, peer_study_json({}).dump(1)},
      {FileKind::adequacy, peer_study_markdown({})},
      {FileKind::adequacy, peer_study_csv({})},
      {FileKind::adequacy, diagnosis_study_text({})},
      {FileKind::adequacy, diagnosis_study_json({}).dump(1)},
      {FileKind::adequacy, diagnosis_study_markdown({})},
      {FileKind::adequacy, diagnosis_study_csv({})},
  };
  for (const auto& [kind, text] : texts) EXPECT_EQ(file_kind(written("file", text)), kind) << text.substr(0, 200);
  {
    const RunJournal journal(folder, failing, 1, nullptr);
    EXPECT_EQ(file_kind(path("run.part")), FileKind::journal);
    const std::string head = read_text_file(path("run.part"));
    EXPECT_EQ(file_kind(written("file", head.substr(0, head.size() / 2))), FileKind::journal) << "a write cut short";
  }
  EXPECT_EQ(file_kind(smoke), FileKind::corpus);
  ASSERT_GT(export_requests(smoke, {}, path("requests.h5")), 0u);
  EXPECT_EQ(file_kind(path("requests.h5")), FileKind::requests);
  ASSERT_EQ(qkcts("answer scalar " + path("requests.h5") + " -o " + path("results.h5")).code, 0);
  EXPECT_EQ(file_kind(path("results.h5")), FileKind::results);
  EXPECT_EQ(file_kind(test_adapter("lying")), FileKind::library);
}

TEST_F(FileKinds, NothingElseIs) {
  for (const char* text : {"", "{}", "[1]", "text", "# Notes\n", "<!DOCTYPE html><title>mine</title>", "<?xml version=",
                           "{\"schema\": \"qkcts-plan/1\"}", "[] and more", "see \"qkcts-run/1\"", "\x89HDF\r\n\x1a\n"})
    EXPECT_EQ(file_kind(written("file", text)), std::nullopt) << text;
  EXPECT_EQ(file_kind(path("absent")), std::nullopt);
  EXPECT_EQ(file_kind(folder), std::nullopt);
}

// Of a long run the word stands far behind the first bytes.
TEST_F(FileKinds, ALongFileIsKnownByItsEnd) {
  const std::string text = "{\"cases\": \"" + std::string(3 << 20, 'x') + "\", \"schema\": \"qkcts-run/1\"}";
  EXPECT_EQ(file_kind(written("long", text)), FileKind::run);
  EXPECT_EQ(file_kind(written("long", "\n  " + text)), FileKind::run);
}

TEST_F(FileKinds, LinksAreTheFileThatTheyNameAndNoOther) {
  const std::string file = written("a", "text"), other = written("b", "text");
  std::filesystem::create_symlink(file, path("soft"));
  std::filesystem::create_hard_link(file, path("hard"));
  for (const std::string& name : {file, path("soft"), path("hard"), folder + "/./a"})
    EXPECT_TRUE(is_same_file(name, file)) << name;
  EXPECT_FALSE(is_same_file(file, other));
  EXPECT_FALSE(is_same_file(file, path("absent")));
  EXPECT_FALSE(is_same_file(path("absent"), path("absent")));
}

TEST_F(FileKinds, AFileInTheWrongPlaceIsCalledByItsName) {
  const auto fault = [](const std::string& file, FileKind wanted) {
    try {
      require_kind(file, wanted);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(fault(smoke, FileKind::corpus), "");
  EXPECT_NE(fault(smoke, FileKind::run).find("is a corpus of golden vectors; wanted is a run.json"), std::string::npos);
  EXPECT_EQ(fault(written("torn.json", "{\"schema"), FileKind::run), "") << "its reader says more";
  EXPECT_EQ(fault(path("absent"), FileKind::run), "");
  EXPECT_NE(fault(folder, FileKind::corpus).find("is a folder"), std::string::npos);
  written("run.json", run_json_text(passing_record()));
  EXPECT_NE(fault(folder, FileKind::run).find(path("run.json")), std::string::npos) << "a slip that is easily made";
}

}  // namespace
}  // namespace qkcts
