// SPDX-License-Identifier: Apache-2.0
// `export`, `answer` and `check` as a user meets them. adapters/python/qkcts_adapter_test.py has the tampered results.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "conformance/json.hpp"
#include "harness/exchange_requests.hpp"
#include "harness/exchange_results.hpp"
#include "harness/test_adapters/test_adapters.hpp"
#include "vectors/corpus_reader.hpp"

#include "harness/program_output.hpp"

namespace qkcts {
namespace {

class Offline : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    requests = path("requests.h5");
    results = path("results.h5");
    ASSERT_EQ(qkcts("export " + corpus + " -o " + requests).code, 0);
    ASSERT_EQ(qkcts("answer scalar " + requests + " -o " + results).code, 0);
  }
  static Json run_of(const std::string& report) { return parse_json(read_text_file(report + "/run.json"), report); }

  static inline const std::string corpus = QKCTS_SOURCE_DIR "/vectors/golden/smoke.h5";
  static inline std::string requests, results;
};

TEST_F(Offline, ResultsAreJudgedAsARunIs) {
  const std::string run = path("run"), check = path("check");
  ASSERT_EQ(qkcts("run scalar " + corpus + " --variants none -o " + run).code, 0);
  const ProgramOutput checked = qkcts("check " + corpus + " " + results + " -o " + check);
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  const Json of_run = run_of(run), of_check = run_of(check);
  ASSERT_EQ(of_run["cases"].size(), of_check["cases"].size());
  for (std::size_t i = 0; i < of_run["cases"].size(); ++i) {
    const Json &left = of_run["cases"][i], &right = of_check["cases"][i];
    EXPECT_EQ(left["verdict"], right["verdict"]) << left["case"];
    EXPECT_EQ(left["stages"], right["stages"]) << left["case"];
    EXPECT_EQ(left["implementation"], right["implementation"]);
  }
  EXPECT_EQ(of_run["summary"], of_check["summary"]);
}

TEST_F(Offline, AWrongKernelFailsAndTheCommandIsSaid) {
  const std::string wrong = path("wrong.h5");
  ASSERT_EQ(qkcts("answer 'mutants?mutant=eps_outside_sqrt' " + requests + " -o " + wrong).code, 0);
  const ProgramOutput checked = qkcts("check " + corpus + " " + wrong + " --case '*/eps_edge/*'");
  EXPECT_EQ(checked.code, 1) << checked.out;
  EXPECT_NE(checked.out.find("again:   qkcts check " + corpus + " " + wrong + " --case qwen3_rmsnorm/eps_edge/"),
            std::string::npos)
      << checked.out;
}

TEST_F(Offline, WhatEndedBadlyIsSaidAndKeepsItsVerdict) {
  const std::string crashed = path("crashed.h5");
  const ProgramOutput answered =
      qkcts("answer '" + test_adapter("lying") + "?fault=overrun' " + requests + " -o " + crashed);
  EXPECT_EQ(answered.code, 0) << answered.err;
  EXPECT_NE(answered.err.find("error(overrun): write at byte"), std::string::npos) << answered.err;
  EXPECT_NE(answered.out.find("12 declared unsupported and left out, 1 failed"), std::string::npos) << answered.out;
  const ProgramOutput checked = qkcts("check " + corpus + " " + crashed);
  EXPECT_EQ(checked.code, 1);
  EXPECT_NE(checked.out.find("1 error(overrun), 12 unsupported"), std::string::npos) << checked.out;
}

TEST_F(Offline, MissingAnswersAreNeverAPass) {
  const std::string some = path("some.h5");
  ASSERT_EQ(qkcts("answer scalar " + requests + " --case 'qwen3*' -o " + some).code, 0);
  const ProgramOutput all = qkcts("check " + corpus + " " + some);
  EXPECT_EQ(all.code, 1) << all.out;
  EXPECT_NE(all.out.find("9 cases were not run: nothing is known of them"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("NOT CONFORMING"), std::string::npos);
  EXPECT_EQ(qkcts("check " + corpus + " " + some + " --case 'qwen3*'").code, 0);
  EXPECT_EQ(qkcts("check " + corpus + " " + some + " --case 'plain*'").code, 5);
}

TEST_F(Offline, ASelectionIsExported) {
  const std::string some = path("selection.h5");
  ASSERT_EQ(
      qkcts("export " + corpus + " --case '*eps_edge*' --profile bf16_f32acc --stages q_norm,output -o " + some).code,
      0);
  const RequestReader reader(some);
  ASSERT_EQ(reader.slugs(), std::vector<std::string>{"qwen3_rmsnorm/eps_edge/bfloat16_1x4x2x6x7x12x10"});
  const KernelRequest request = reader.read(reader.slugs().front());
  EXPECT_EQ(request.stages, bit(QKCTS_STAGE_Q_NORM) | bit(QKCTS_STAGE_OUTPUT));
  // The bits are those of the corpus.
  const GoldenCase golden = CorpusReader(corpus).read(request.input.slug);
  EXPECT_EQ(request_digest(request.input), request_digest(golden.input));
  Case changed = golden.input;
  changed.inputs.tensors[static_cast<std::size_t>(Input::k)]->bytes[0] ^= std::byte{1};
  EXPECT_NE(request_digest(changed), request_digest(golden.input));
}

TEST_F(Offline, ErrorsAreOneLineWithTheirCode) {
  const auto expect = [](const std::string& arguments, int code, const std::string& part) {
    const ProgramOutput finished = qkcts(arguments);
    EXPECT_EQ(finished.code, code) << arguments << "\n" << finished.err;
    EXPECT_EQ(finished.err.find('\n'), finished.err.size() - 1) << finished.err;
    EXPECT_NE(finished.err.find(part), std::string::npos) << finished.err;
  };
  expect("export " + corpus + " -o " + path("no/such.h5"), 6, "there is no folder");
  expect("export " + corpus + " --case nonsense -o " + path("x.h5"), 5, "no case matches");
  expect("export " + corpus + " --stages nonsense -o " + path("x.h5"), 2, "'nonsense' is no stage");
  expect("export " + requests + " -o " + path("x.h5"), 3, "is HDF5, but no qkcts corpus");
  expect("answer scalar " + corpus + " -o " + path("x.h5"), 3,
         "is a corpus of golden vectors; wanted is a file of requests");
  expect("answer /no/such.so " + requests + " -o " + path("x.h5"), 4, "no such file");
  expect("answer '" + test_adapter("odd_unavailable") + "' " + requests + " -o " + path("x.h5"), 5, "not usable here");
  expect("check " + corpus + " " + requests, 3, "as `qkcts export` writes it; wanted is a file of results");
  expect("check " + corpus + " " + path("no.h5"), 3, "cannot be opened");
  expect("check " + requests + " " + results, 3, "wanted is a corpus");
  expect("check " + corpus + " " + results + " --profile nonsense", 2, "no profile of that name");
  EXPECT_FALSE(std::filesystem::exists(path("x.h5")));
  const ProgramOutput nothing = qkcts("answer template " + requests + " -o " + path("x.h5"));
  EXPECT_EQ(nothing.code, 5) << nothing.out;
  EXPECT_FALSE(std::filesystem::exists(path("x.h5")));
}

// A stage is written as float type and read bit by bit, or as bit patterns: NaNs keep payload and signalling bit.
TEST_F(Offline, BitsOfResultsArriveAsTheyWere) {
  const CorpusReader reader(corpus);
  const Case c = reader.read("qwen3_rmsnorm/eps_edge/bfloat16_1x4x2x6x7x12x10").input;
  Execution execution;
  execution.status = QKCTS_OK;
  auto& bytes = execution.outputs[QKCTS_STAGE_OUTPUT];
  bytes.resize(2 * extent_product(stage_shape(QKCTS_STAGE_OUTPUT, c.shape)));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 2 == 0 ? i / 2 : 0x7f + i % 4);
  const std::string file = path("bits.h5");
  ResultWriter writer(file, file, "digest", "{}");
  writer.add(c, execution);
  writer.close();
  const Execution read = ResultReader(file, Strictness::everything).read(c.slug, c, bit(QKCTS_STAGE_OUTPUT));
  EXPECT_EQ(read.violation, Verdict::pass) << read.violation_detail;
  EXPECT_EQ(read.outputs[QKCTS_STAGE_OUTPUT], bytes);
}

// Damaged files: what the child survives, this process reads; whatever comes of it, it is an error or an execution.
TEST_F(Offline, DamagedResultsHarmNobody) {
  const CorpusReader reader(corpus);
  const Case c = reader.read("plain_sdpa/gaussian/binary32_1x4x2x3x5x12x10").input;
  const std::string whole = path("one.h5"), damaged = path("damaged.h5");
  ASSERT_EQ(qkcts("answer scalar " + requests + " --case 'plain*' -o " + whole).code, 0);
  std::ifstream file(whole, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::mt19937 random(7);
  int errors = 0;
  for (int round = 0; round < 80; ++round) {
    std::string mutated = bytes;
    for (int i = 0; i < 1 + round % 4; ++i) mutated[random() % mutated.size()] = static_cast<char>(random());
    std::ofstream(damaged, std::ios::binary) << mutated;
    try {
      const auto read = [&] {
        const ResultReader answers(damaged, Strictness::what_matters);
        for (const std::string& slug : answers.slugs())
          errors += answers.read(slug, c, stages_of(c.contract.terms)).violation != Verdict::pass ? 1 : 0;
      };
      look_in_child(damaged, read);
      read();
    } catch (const InputError&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 10);  // the control: damage is seen
}

}  // namespace
}  // namespace qkcts
