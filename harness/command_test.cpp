// SPDX-License-Identifier: Apache-2.0
// Every misdeed of a command gets its own verdict, and the next case runs as if nothing had happened.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>

#include "conformance/json_schema.hpp"
#include "harness/adapter_digest.hpp"
#include "harness/adapter_error.hpp"
#include "harness/case_run.hpp"
#include "harness/command_words.hpp"
#include "harness/descendants.hpp"
#include "harness/handmade_case.hpp"
#include "harness/misdeed_verdict.hpp"
#include "harness/private_folder.hpp"

namespace qkcts {
namespace {

constexpr WorkerLimits limits = {std::chrono::milliseconds(30000), std::size_t{1} << 28};

AdapterSpec command(const std::string& arguments, Strictness strictness = Strictness::what_matters) {
  AdapterSpec spec = resolve_adapter(std::string("cmd:") + QKCTS_LYING_COMMAND + " " + arguments);
  spec.strictness = strictness;
  return spec;
}

struct CommandAdapter {
  explicit CommandAdapter(const AdapterSpec& spec, WorkerLimits these = limits)
      : runner(worker_runner(spec, these)),
        description(description_from_json(runner->open(true).description, "command")) {}
  CaseResult run(const RunOptions& options = {}) {
    return run_case(*runner, description, plain_golden_case(), options);
  }
  std::unique_ptr<AdapterRunner> runner;
  AdapterDescription description;
};

TEST(CommandAdapterTest, HonestCommandPassesEveryStage) {
  const CaseResult result = CommandAdapter(command("none", Strictness::everything)).run();
  EXPECT_EQ(result.verdict, Verdict::pass) << result.detail;
  EXPECT_EQ(result.implementation, "by heart");
  EXPECT_EQ(result.calls, 2);
  EXPECT_NE(result.output.find("run 1 of the lying command"), std::string::npos) << result.output;
  for (const StageResult& stage : result.stages) EXPECT_EQ(stage.verdict, Verdict::pass) << stage_name(stage.stage);
}

// The output alone and other batches are requests of their own; where buffers lie is no affair of a command.
TEST(CommandAdapterTest, ClaimsAreHeldAgainstACommandToo) {
  RunOptions options;
  options.variants = Variants::all;
  const auto verdict = [&](const std::string& fault) {
    CommandAdapter adapter(command(fault, Strictness::everything));
    adapter.description.layouts.clear();  // as run_corpus() does
    return adapter.run(options).verdict;
  };
  EXPECT_EQ(verdict("none"), Verdict::pass);
  EXPECT_EQ(verdict("taps"), Verdict::not_repeatable);
  EXPECT_EQ(verdict("large_batch"), Verdict::batch_variant);
}

class CommandMisdeedTest : public testing::TestWithParam<MisdeedVerdict> {};

TEST_P(CommandMisdeedTest, GetsItsVerdictAndTheRunGoesOn) {
  CommandAdapter adapter(command(GetParam().fault));
  for (int i = 0; i < 2; ++i) {  // a fresh process takes the next case
    const CaseResult result = adapter.run();
    EXPECT_EQ(result.verdict, GetParam().verdict) << verdict_name(result.verdict) << ": " << result.detail;
    EXPECT_NE(result.detail.find(GetParam().detail), std::string::npos) << result.detail;
    EXPECT_EQ(result.detail.find('\n'), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CommandMisdeedTest,
    testing::Values(
        MisdeedVerdict{"exit", Verdict::error_crash, "the command exited with status 3"},
        MisdeedVerdict{"segfault", Verdict::error_crash, "died by signal 11"},
        MisdeedVerdict{"half_line", Verdict::error_crash, "in the middle of line 3 of its stdout"},
        MisdeedVerdict{"grandchild", Verdict::error_crash, "exited with status 5"},
        MisdeedVerdict{"closed_stdout", Verdict::error_protocol, "has closed its stdout"},
        MisdeedVerdict{"garbage", Verdict::error_protocol, "the line: loading the model..."},
        MisdeedVerdict{"no_object", Verdict::error_protocol, "line 3 of its stdout: is no JSON object"},
        MisdeedVerdict{"long_line", Verdict::error_protocol, "longer than 1048576 bytes"},
        MisdeedVerdict{"wrong_seq", Verdict::error_protocol, "answers seq 4, but 3 is due"},
        MisdeedVerdict{"wrong_status", Verdict::error_protocol, "status is missing, or none"},
        MisdeedVerdict{"unsupported", Verdict::error_protocol, "QKCTS_UNSUPPORTED (1) for a case inside"},
        MisdeedVerdict{"out_of_memory", Verdict::error_memory, "QKCTS_OUT_OF_MEMORY (3): no, because"},
        MisdeedVerdict{"memory", Verdict::error_memory, "256 MiB resident"},
        MisdeedVerdict{"no_file", Verdict::error_unwritten, "there is no result file"},
        MisdeedVerdict{"missing_stages", Verdict::error_unwritten, "holds no dataset scores, probs, lse"},
        MisdeedVerdict{"poison", Verdict::error_unwritten, ""},
        MisdeedVerdict{"wrong_shape", Verdict::error_protocol,
                       "stages/output: has shape [2, 2], must have [1, 1, 2, 2]"},
        MisdeedVerdict{"too_short", Verdict::error_protocol, "has shape [1, 1, 2, 1], must have [1, 1, 2, 2]"},
        MisdeedVerdict{"wrong_type", Verdict::error_protocol,
                       "stages/output: has another element type; binary32 is due"},
        MisdeedVerdict{"truncated", Verdict::error_protocol, "result.h5: cannot be opened"},
        MisdeedVerdict{"corrupt", Verdict::error_protocol, "result.h5"},
        MisdeedVerdict{"no_hdf5", Verdict::error_protocol, "result.h5: is no HDF5 file"},
        MisdeedVerdict{"fifo", Verdict::error_protocol, "result.h5: cannot be opened"},
        MisdeedVerdict{"other_format", Verdict::error_protocol, "is qkcts-requests, must be qkcts-results"},
        MisdeedVerdict{"other_case", Verdict::error_protocol, "holds another case"},
        MisdeedVerdict{"other_digest", Verdict::error_protocol, "request_digest is that of another request"},
        MisdeedVerdict{"wrong", Verdict::fail, ""}),
    [](const auto& one) { return std::string(one.param.fault); });

TEST(CommandAdapterTest, HangIsEndedAfterTheTimeout) {
  CommandAdapter adapter(command("hang"), {std::chrono::milliseconds(1500), limits.resident_bytes});
  const CaseResult result = adapter.run();
  EXPECT_EQ(result.verdict, Verdict::error_timeout) << result.detail;
  EXPECT_NE(result.detail.find("within 1.5 s"), std::string::npos) << result.detail;
}

TEST(CommandAdapterTest, NothingIsLeftBehind) {
  const std::size_t before = children_of_this_process().size();
  const PrivateFolder mine;  // tests beside this one have folders of their own in the usual place
  const auto folders = [&mine] {
    const std::filesystem::directory_iterator entries(mine.path());
    return std::distance(begin(entries), end(entries));
  };
  const std::string usual = std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "";
  setenv("TMPDIR", mine.path().c_str(), 1);
  {
    CommandAdapter adapter(command("grandchild"));
    EXPECT_EQ(adapter.run().verdict, Verdict::error_crash);
    EXPECT_EQ(folders(), 1);
  }
  EXPECT_EQ(folders(), 0);
  usual.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", usual.c_str(), 1);
  EXPECT_EQ(children_of_this_process().size(), before);
}

TEST(CommandAdapterTest, StrictProtocolRefusesWhatElseIsPassedOver) {
  for (const char* fault : {"unknown_key", "extra_stage"}) {
    EXPECT_EQ(CommandAdapter(command(fault)).run().verdict, Verdict::pass) << fault;
    const CaseResult strict = CommandAdapter(command(fault, Strictness::everything)).run();
    EXPECT_EQ(strict.verdict, Verdict::error_protocol) << fault;
    EXPECT_NE(strict.detail.find(std::string(fault) == "unknown_key" ? "key \"time\" is unknown" : "k_norm"),
              std::string::npos)
        << strict.detail;
  }
}

TEST(CommandAdapterTest, BitPatternsAreTakenAsTheyAre) {
  EXPECT_EQ(CommandAdapter(command("bits", Strictness::everything)).run().verdict, Verdict::pass);
}

TEST(CommandAdapterTest, OtherBitsOfALaterCallAreSeen) {
  RunOptions options;
  options.repeat = 2;
  const CaseResult result = CommandAdapter(command("restless")).run(options);
  EXPECT_EQ(result.calls, 4);
  EXPECT_EQ(result.stages.back().differing_calls, 2);
}

// What ends a command before any case is the end of the program, code 4.
TEST(CommandAdapterTest, ACommandThatDoesNotStartIsAnAdapterError) {
  const auto error_of = [](const std::string& arguments) -> std::string {
    try {
      static_cast<void>(worker_runner(command(arguments), limits)->open(true));
    } catch (const AdapterError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_NE(error_of("exit_at_once").find("no answer to hello: the command exited with status 3"), std::string::npos);
  EXPECT_NE(error_of("garbage_at_once").find("the line: welcome"), std::string::npos) << error_of("garbage_at_once");
  EXPECT_NE(error_of("other_protocol").find("protocol is not 1"), std::string::npos);
  EXPECT_NE(error_of("no_description").find("no answer to describe"), std::string::npos);
  EXPECT_THROW(resolve_adapter("cmd:no-such-program-here x"), AdapterError);
  EXPECT_THROW(resolve_adapter("cmd:./CMakeLists.txt"), AdapterError);
  EXPECT_THROW(resolve_adapter("cmd:"), AdapterError);
  EXPECT_THROW(resolve_adapter("cmd:sh 'x"), AdapterError);
}

TEST(CommandAdapterTest, UnavailableIsSaidByDescribe) {
  const OpenAnswer answer = worker_runner(command("unavailable"), limits)->open(true);
  EXPECT_EQ(answer.probe, std::uint32_t{QKCTS_UNAVAILABLE});
  EXPECT_EQ(answer.probe_reason, "no such device");
}

TEST(CommandAdapterTest, TheHostKeepsToItsSchemaAndSaysStop) {
  PrivateFolder folder;
  const std::string heard = folder.path() + "/heard";
  { EXPECT_EQ(CommandAdapter(command("none " + heard)).run().verdict, Verdict::pass); }
  std::ifstream file(heard);
  std::vector<std::string> orders;
  int seq = 0;
  for (std::string line; std::getline(file, line);) {
    const Json order = parse_json(line, "host");
    EXPECT_NO_THROW(require_schema(order, "host_protocol", "host")) << line;
    EXPECT_EQ(order.at("seq"), ++seq);
    orders.push_back(order.at("do"));
  }
  EXPECT_EQ(orders, (std::vector<std::string>{"hello", "describe", "run", "run", "stop"}));
}

// Also when its process is replaced because its runtime failed.
TEST(CommandAdapterTest, ACommandThatIsReplacedIsToldToStop) {
  PrivateFolder folder;
  const std::string heard = folder.path() + "/heard";
  CommandAdapter adapter(command("internal " + heard));
  EXPECT_EQ(adapter.run().verdict, Verdict::error_protocol);
  std::ifstream file(heard);
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  EXPECT_EQ(parse_json(last, "host").at("do"), "stop");
}

TEST(CommandAdapterTest, ACommandThatIsNoLongerAvailableIsAnErrorOfTheCase) {
  for (const bool in_process : {false, true}) {
    PrivateFolder folder;
    const AdapterSpec spec = command("lost " + folder.path() + "/heard");
    const auto runner = in_process ? in_process_runner(spec) : worker_runner(spec, limits);
    const AdapterDescription description = description_from_json(runner->open(true).description, "command");
    const auto run = [&] { return run_case(*runner, description, plain_golden_case(), {}); };
    EXPECT_EQ(run().verdict, Verdict::error_crash);
    const CaseResult next = run();
    EXPECT_EQ(next.verdict, AdapterError("").verdict()) << next.detail;
    EXPECT_NE(next.detail.find("no longer usable: no such device"), std::string::npos) << next.detail;
  }
}

TEST(CommandWords, QuotesKeepWhatTheyHold) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(command_words("a  b\tc", ""), (Words{"a", "b", "c"}));
  EXPECT_EQ(command_words("a 'b c' \"d 'e\" f\\ g ''", ""), (Words{"a", "b c", "d 'e", "f g", ""}));
  EXPECT_EQ(command_words("a'b'\"c\" '$HOME *\\'", ""), (Words{"abc", "$HOME *\\"}));
  EXPECT_THROW(command_words("a 'b", ""), AdapterError);
  EXPECT_THROW(command_words(" ", ""), AdapterError);
}

TEST(AdapterDigest, AnotherScriptIsAnotherAdapter) {
  PrivateFolder folder;
  const std::string script = folder.path() + "/a.sh";
  const auto digest = [&](const std::string& more) {
    return adapter_digest(resolve_adapter("cmd:sh " + script + more));
  };
  std::ofstream(script) << "true";
  const std::string first = digest("");
  EXPECT_EQ(digest(""), first);
  EXPECT_NE(digest(" x"), first);
  std::ofstream(script) << "false";
  EXPECT_NE(digest(""), first);
}

}  // namespace
}  // namespace qkcts
