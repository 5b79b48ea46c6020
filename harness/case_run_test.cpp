// SPDX-License-Identifier: Apache-2.0
// Every misdeed of the lying adapter gets its own verdict, and the next case runs as if nothing had happened.
#include "harness/case_run.hpp"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ostream>

#include <unistd.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include "harness/adapter_error.hpp"
#include "harness/descendants.hpp"
#include "harness/handmade_case.hpp"
#include "harness/misdeed_verdict.hpp"
#include "harness/test_adapters/test_adapters.hpp"

namespace qkcts {
namespace {

constexpr WorkerLimits short_limits = {std::chrono::milliseconds(1500), std::size_t{1} << 29};
constexpr WorkerLimits long_limits = {std::chrono::milliseconds(30000), std::size_t{1} << 29};

struct Adapter {
  explicit Adapter(const std::string& fault, const std::string& library = "lying", WorkerLimits limits = long_limits)
      : runner(worker_runner(resolve_adapter(test_adapter(library) + "?fault=" + fault), limits)),
        description(description_from_json(runner->open(true).description, library)) {}
  CaseResult run(const RunOptions& options = {}) {
    return run_case(*runner, description, plain_golden_case(), options);
  }
  std::unique_ptr<AdapterRunner> runner;
  AdapterDescription description;
};

CaseResult misdeed_of(const std::string& fault, const std::string& library) {
  return Adapter(fault, library).run();
}

CaseResult misdeed(const std::string& fault, WorkerLimits limits = long_limits) {
  return Adapter(fault, "lying", limits).run();
}

TEST(CaseRun, HonestAdapterPassesEveryStage) {
  const CaseResult result = misdeed("none");
  EXPECT_EQ(result.verdict, Verdict::pass) << result.detail;
  EXPECT_EQ(result.profile, "f32");
  EXPECT_EQ(result.implementation, "plain loops");
  EXPECT_EQ(result.calls, 2);
  ASSERT_EQ(result.stages.size(), 4u);
  for (const StageResult& stage : result.stages) {
    EXPECT_EQ(stage.verdict, Verdict::pass) << stage_name(stage.stage);
    EXPECT_GT(stage.judgement->counts.judged, 0u);
  }
}

class Misdeed : public testing::TestWithParam<MisdeedVerdict> {};

TEST_P(Misdeed, GetsItsVerdictAndTheRunGoesOn) {
  Adapter adapter(GetParam().fault);
  const CaseResult first = adapter.run();
  EXPECT_EQ(first.verdict, GetParam().verdict) << first.detail;
  EXPECT_NE(first.detail.find(GetParam().detail), std::string::npos) << first.detail;
  // A fresh worker takes the next case, and the same misdeed is found there.
  EXPECT_EQ(adapter.run().verdict, GetParam().verdict);
}

INSTANTIATE_TEST_SUITE_P(
    All, Misdeed,
    testing::Values(
        MisdeedVerdict{"segfault", Verdict::error_crash, "signal 11"},
        MisdeedVerdict{"abort", Verdict::error_crash, "signal 6"},
        MisdeedVerdict{"exit", Verdict::error_crash, "status 7"},
        MisdeedVerdict{"throw", Verdict::error_crash, "signal 6"},
        MisdeedVerdict{"stack", Verdict::error_crash, "signal 11"},
        MisdeedVerdict{"overrun", Verdict::error_overrun, "write at byte 16 of output output, which has 16 bytes"},
        MisdeedVerdict{"far_overrun", Verdict::error_overrun, "output output"},
        MisdeedVerdict{"overread", Verdict::error_overrun, "read at byte 32 of input k, which has 32 bytes"},
        MisdeedVerdict{"text_overrun", Verdict::error_overrun, "message text"},
        MisdeedVerdict{"underrun", Verdict::error_underrun, "write at byte -4 of output output"},
        MisdeedVerdict{"input", Verdict::error_input_modified, "byte 0 of input v"},
        MisdeedVerdict{"descriptor", Verdict::error_input_modified, "descriptors"},
        MisdeedVerdict{"force_input", Verdict::error_input_modified, "input v changed at byte"},
        MisdeedVerdict{"status", Verdict::error_protocol, "an unknown status (6): no, because"},
        MisdeedVerdict{"garbage", Verdict::error_protocol, ""},
        MisdeedVerdict{"conversation", Verdict::error_crash, ""},
        MisdeedVerdict{"unsupported", Verdict::error_protocol, "QKCTS_UNSUPPORTED (1) for a case inside"},
        MisdeedVerdict{"internal", Verdict::error_protocol, "QKCTS_INTERNAL (5): no, because"},
        MisdeedVerdict{"out_of_memory", Verdict::error_memory, "QKCTS_OUT_OF_MEMORY"},
        MisdeedVerdict{"memory", Verdict::error_memory, "512 MiB resident"},
        MisdeedVerdict{"text_size", Verdict::error_abi, "struct_size of the text `message` was 24 and became 8"},
        MisdeedVerdict{"daemon_exit", Verdict::error_crash, "status 5"},
        MisdeedVerdict{"unwritten_row", Verdict::error_unwritten, ""},
        MisdeedVerdict{"unwritten", Verdict::error_unwritten, ""}, MisdeedVerdict{"nan", Verdict::fail, ""},
        MisdeedVerdict{"wrong", Verdict::fail, ""}, MisdeedVerdict{"restless_wrong", Verdict::fail, ""}),
    [](const auto& one) { return std::string(one.param.fault); });

TEST(CaseRun, HangIsEndedAfterTheTimeout) {
  const auto start = std::chrono::steady_clock::now();
  const CaseResult result = misdeed("hang", short_limits);
  EXPECT_EQ(result.verdict, Verdict::error_timeout);
  EXPECT_NE(result.detail.find("within 1.5 s"), std::string::npos) << result.detail;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(CaseRun, PrintsOfTheAdapterDisturbNothingAndAreKept) {
  const CaseResult result = misdeed("stdout");
  EXPECT_EQ(result.verdict, Verdict::pass) << result.detail;
  EXPECT_NE(result.output.find("from the library"), std::string::npos);
  EXPECT_NE(result.output.find("a warning"), std::string::npos);
  const CaseResult flood = misdeed("flood");
  EXPECT_EQ(flood.verdict, Verdict::pass) << flood.detail;
  EXPECT_LE(flood.output.size(), 16384u);
  EXPECT_NE(flood.output.find("line 99999"), std::string::npos);
}

// A grandchild in a session of its own holds every descriptor of the worker: its end is seen all the same, and the
// grandchild is found and ended.
TEST(CaseRun, ProcessesThatLeftTheGroupAreEnded) {
  const std::size_t before = children_of_this_process().size();
  { EXPECT_EQ(misdeed("daemon").verdict, Verdict::pass); }
  EXPECT_EQ(children_of_this_process().size(), before);
  const auto start = std::chrono::steady_clock::now();
  { EXPECT_EQ(misdeed("daemon_exit").verdict, Verdict::error_crash); }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));  // of 30 until the timeout
  EXPECT_EQ(children_of_this_process().size(), before);
  { EXPECT_EQ(misdeed("daemon_hang", short_limits).verdict, Verdict::error_timeout); }
  EXPECT_EQ(children_of_this_process().size(), before);
}

TEST(CaseRun, ProcessorTimeIsLimited) {
  WorkerLimits limits = long_limits;
  limits.processor_time = std::chrono::milliseconds(500);
  const CaseResult result = misdeed("spin", limits);
  EXPECT_EQ(result.verdict, Verdict::error_timeout);
  EXPECT_NE(result.detail.find("more than 0.5 s of processor time"), std::string::npos) << result.detail;
  EXPECT_EQ(misdeed("none", limits).verdict, Verdict::pass);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RESERVES_ADDRESS_SPACE
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RESERVES_ADDRESS_SPACE
#endif
#endif
#ifndef RESERVES_ADDRESS_SPACE
// A reservation is no memory: only whoever asks for it has it limited.
TEST(CaseRun, AddressSpaceIsLimitedOnRequest) {
  EXPECT_EQ(misdeed("reserve").verdict, Verdict::pass);
  WorkerLimits limits = long_limits;
  limits.address_space_bytes = std::size_t{1} << 32;
  EXPECT_EQ(misdeed("reserve", limits).verdict, Verdict::error_memory);
  EXPECT_EQ(misdeed("none", limits).verdict, Verdict::pass);
}
#endif

TEST(CaseRun, WorkersAreStartedAnewWithinABudget) {
  WorkerLimits limits = long_limits;
  limits.respawns = 2;
  Adapter adapter("segfault", "lying", limits);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(adapter.run().verdict, Verdict::error_crash) << i;
  const CaseResult result = adapter.run();
  EXPECT_EQ(result.verdict, Verdict::not_run);
  EXPECT_NE(result.detail.find("started anew 2 times already (--respawns)"), std::string::npos) << result.detail;
}

// A GPU whose kernel failed is lost to its process: the case that it happened in is an error, the one after it is not.
TEST(CaseRun, ARuntimeThatFailedIsStartedAnew) {
  WorkerLimits limits = long_limits;
  limits.respawns = 0;  // which this is none of
  Adapter adapter("lost_device", "lying", limits);
  for (const Verdict due : {Verdict::pass, Verdict::error_protocol, Verdict::pass, Verdict::error_protocol}) {
    const CaseResult result = adapter.run();
    EXPECT_EQ(result.verdict, due) << result.detail;
  }
}

// The same library may be another one by the time that a fresh worker loads it.
TEST(CaseRun, AnotherTableAfterACrashIsAnErrorOfTheCase) {
  const std::string mark = testing::TempDir() + "qkcts_table_" + std::to_string(getpid());
  setenv("LYING_TABLE_MARK", mark.c_str(), 1);
  Adapter adapter("other_table");
  EXPECT_EQ(adapter.run().verdict, Verdict::error_crash);
  const CaseResult result = adapter.run();
  unlink(mark.c_str());
  EXPECT_EQ(result.verdict, Verdict::error_abi);
  EXPECT_NE(result.detail.find("struct_size of its table is 12"), std::string::npos) << result.detail;
  EXPECT_EQ(adapter.run().verdict, Verdict::error_crash);  // and the run goes on
  unlink(mark.c_str());
  unsetenv("LYING_TABLE_MARK");
}

TEST(CaseRun, OtherBitsFailOnlyAgainstTheClaim) {
  const CaseResult claimed = Adapter("restless", "lying_repeatable").run();
  EXPECT_EQ(claimed.verdict, Verdict::not_repeatable);
  EXPECT_NE(claimed.stages.back().detail.find("1 of 1 further calls"), std::string::npos);
  const CaseResult unclaimed = Adapter("restless").run();
  EXPECT_EQ(unclaimed.verdict, Verdict::pass);
  EXPECT_EQ(unclaimed.stages.back().differing_calls, 1);
  EXPECT_EQ(Adapter("none", "lying_repeatable").run().verdict, Verdict::pass);
}

TEST(CaseRun, RepeatMakesMoreCallsAndAllAreJudged) {
  RunOptions options;
  options.repeat = 3;
  const CaseResult result = Adapter("restless").run(options);
  EXPECT_EQ(result.calls, 6);
  EXPECT_EQ(result.stages.back().differing_calls, 3);
}

TEST(CaseRun, OutsideTheDeclarationIsUnsupportedAndNotRun) {
  Adapter adapter("segfault");
  adapter.description.limits["k_len"].max = 1;
  const CaseResult result = adapter.run();
  EXPECT_EQ(result.verdict, Verdict::unsupported);
  EXPECT_EQ(result.detail, "k_len 2 is more than 1");
  EXPECT_EQ(result.calls, 0);
}

GoldenCase with_lse_in_base_two() {
  GoldenCase golden = plain_golden_case();
  golden.input.contract.terms.softmax.lse_base = QKCTS_BASE_TWO;
  GoldenStage& lse = golden.stages[QKCTS_STAGE_LSE];
  lse.values.hi.assign(lse.values.hi.size(), 1);  // log2 of two equal weights
  lse.values.lo.assign(lse.values.lo.size(), 0);
  lse.values.expected.assign(lse.values.expected.size(), encode(Format::binary32, 1));
  return golden;
}

// The control of the two below: all but the clause is as the lying adapter computes it.
TEST(CaseRun, ClauseThatIsClaimedAndNotImplementedFails) {
  Adapter adapter("none", "lying_claim");
  const CaseResult result = run_case(*adapter.runner, adapter.description, with_lse_in_base_two(), {});
  EXPECT_EQ(result.verdict, Verdict::fail) << result.detail;
  for (const StageResult& stage : result.stages)
    EXPECT_EQ(stage.verdict, stage.stage == QKCTS_STAGE_LSE ? Verdict::fail : Verdict::pass);
  EXPECT_EQ(adapter.run().verdict, Verdict::pass);
}

// It would crash if it were asked: a later clause is not sent to an adapter that does not name it.
TEST(CaseRun, ClauseThatIsNotClaimedIsNeverSent) {
  GoldenCase rounded = plain_golden_case();
  rounded.input.contract.terms.rounding.output = QKCTS_BFLOAT16;
  for (const char* library : {"lying", "lying_1_0", "lying_1_1"}) {
    Adapter adapter("segfault", library);
    CaseResult result = run_case(*adapter.runner, adapter.description, with_lse_in_base_two(), {});
    EXPECT_EQ(result.verdict, Verdict::unsupported);
    EXPECT_EQ(result.detail, "softmax.lse_base = \"two\" (not declared in /supports)");
    EXPECT_EQ(result.calls, 0);
    result = run_case(*adapter.runner, adapter.description, rounded, {});
    EXPECT_EQ(result.verdict, Verdict::unsupported);
    EXPECT_EQ(result.detail, "rounding.output = \"bfloat16\" (not declared in /supports)");
    EXPECT_EQ(result.calls, 0);
  }
}

TEST(CaseRun, AdapterBuiltForAnEarlierVersionStillPasses) {
  for (const char* library : {"lying_1_0", "lying_1_1"}) {
    const CaseResult result = misdeed_of("none", library);
    EXPECT_EQ(result.verdict, Verdict::pass) << library << ": " << result.detail;
    EXPECT_EQ(misdeed_of("descriptor", library).verdict, Verdict::error_input_modified);
  }
}

TEST(CaseRun, StagesNotDeclaredOrNotAskedForAreNoPass) {
  Adapter adapter("none");
  adapter.description.stages &= ~bit(QKCTS_STAGE_LSE);
  RunOptions options;
  options.stages = bit(QKCTS_STAGE_LSE) | bit(QKCTS_STAGE_OUTPUT);
  const CaseResult result = adapter.run(options);
  EXPECT_EQ(result.verdict, Verdict::pass);
  EXPECT_EQ(result.stages[0].verdict, Verdict::skipped);      // scores
  EXPECT_EQ(result.stages[2].verdict, Verdict::unsupported);  // lse
  EXPECT_EQ(result.stages[3].verdict, Verdict::pass);         // output
  options.stages = bit(QKCTS_STAGE_LSE);
  EXPECT_EQ(adapter.run(options).verdict, Verdict::skipped);
}

TEST(CaseRun, ProfileMustBeOneOfTheCase) {
  RunOptions options;
  options.profile = "f32_ftz";
  EXPECT_EQ(Adapter("none").run(options).profile, "f32_ftz");
  options.profile = "bf16_f32acc";  // of another format: the adapter's own stands
  EXPECT_EQ(Adapter("none").run(options).profile, "f32");
}

// The generator drops a profile from a case in which more than 1 % would be mistrusted.
TEST(CaseRun, CaseWithoutTheProfileIsMistrustedAndStillThere) {
  Adapter adapter("none");
  GoldenCase golden = plain_golden_case();
  golden.profiles = {"f32_ftz"};
  const CaseResult result = run_case(*adapter.runner, adapter.description, golden, {});
  EXPECT_EQ(result.verdict, Verdict::mistrusted);
  EXPECT_NE(result.detail.find("no budgets for profile f32"), std::string::npos);
  EXPECT_EQ(result.stages[0].verdict, Verdict::mistrusted);
}

TEST(CaseRun, AdapterThatCannotBeOpenedIsAnError) {
  const auto open = [](const std::string& library, const std::string& fault = "none") {
    const auto runner = worker_runner(resolve_adapter(test_adapter(library) + "?fault=" + fault), long_limits);
    return runner->open(true);
  };
  EXPECT_THROW(open("odd_no_symbol"), AdapterError);
  EXPECT_THROW(open("odd_load_crash"), AdapterError);
  EXPECT_THROW(open("lying", "prepare"), AdapterError);
  EXPECT_EQ(open("odd_unavailable").probe, QKCTS_UNAVAILABLE);
  EXPECT_EQ(open("odd_unavailable").probe_reason, "no such device here");
  EXPECT_EQ(open("lying", "not_here").probe, QKCTS_UNAVAILABLE);
  EXPECT_EQ(open("lying", "not_here").probe_reason, "not run: no such device with these options");
}

TEST(CaseRun, InProcessRunJudgesTheSame) {
  const auto runner = in_process_runner(resolve_adapter(test_adapter("lying") + "?fault=none"));
  const AdapterDescription description = description_from_json(runner->open(true).description, "lying");
  EXPECT_EQ(run_case(*runner, description, plain_golden_case(), {}).verdict, Verdict::pass);
}

TEST(CaseRun, ExceptionInProcessIsACrash) {
  const auto runner = in_process_runner(resolve_adapter(test_adapter("lying") + "?fault=throw"));
  const AdapterDescription description = description_from_json(runner->open(true).description, "lying");
  const CaseResult result = run_case(*runner, description, plain_golden_case(), {});
  EXPECT_EQ(result.verdict, Verdict::error_crash);
  EXPECT_NE(result.detail.find("across the border"), std::string::npos);
}

TEST(CaseRun, WhatAnAdapterSaysIsMadePrintable) {
  const CaseResult result = misdeed("shout");
  EXPECT_EQ(result.verdict, Verdict::pass);
  EXPECT_EQ(result.implementation, "ker?nel? ?[31m");
}

TEST(CaseRun, FloatingPointEnvironmentOfTheAdapterEndsWithItsCall) {
  const auto runner = in_process_runner(resolve_adapter(test_adapter("lying") + "?fault=rounding"));
  const AdapterDescription description = description_from_json(runner->open(true).description, "lying");
  run_case(*runner, description, plain_golden_case(), {});
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

#ifdef __x86_64__
// What loading a library does to it is for that library's calls alone: there subnormal outputs are flushed, as in a
// worker, and the judge still sees subnormal numbers.
TEST(CaseRun, ALibraryThatFlushesSubnormalsDoesNotFlushThoseOfTheJudge) {
  GoldenCase golden = plain_golden_case();
  const std::vector<float> v = {0x1p-140f, 0x1p-139f, 0x3p-140f, 0x5p-140f};
  Tensor values = golden.input.inputs.at(Input::v);
  std::memcpy(values.bytes.data(), v.data(), v.size() * sizeof v[0]);
  golden.input.inputs.set(Input::v, std::move(values));
  GoldenStage& output = golden.stages[QKCTS_STAGE_OUTPUT];
  for (std::size_t i = 0; i < output.values.hi.size(); ++i) {
    output.values.hi[i] = std::ldexp(output.values.hi[i], -140);
    output.values.expected[i] = encode(Format::binary32, output.values.hi[i]);
    output.budgets[0].delta[i] = 0x1p-149f;
  }
  const auto flushes = [] { return (_mm_getcsr() & 0x8040u) != 0; };
  const auto run = [&](AdapterRunner& runner, const std::string& library) {
    const AdapterDescription description = description_from_json(runner.open(true).description, library);
    EXPECT_FALSE(flushes()) << library;
    const CaseResult result = run_case(runner, description, golden, {});
    EXPECT_FALSE(flushes()) << library;
    return result.verdict;
  };
  for (const auto& [library, verdict] : {std::pair{"lying", Verdict::pass}, {"lying_flushing", Verdict::fail}}) {
    const AdapterSpec spec = resolve_adapter(test_adapter(library) + "?fault=none");
    EXPECT_EQ(run(*worker_runner(spec, long_limits), library), verdict);
    EXPECT_EQ(run(*in_process_runner(spec), library), verdict);
    _mm_setcsr(_mm_getcsr() & ~0x8040u);  // of the tests behind this one, whatever went wrong
  }
}
#endif

TEST(CaseRun, ALimitThatIsShortOnlyBecauseOfJobsSaysSo) {
  const auto death = [](const WorkerLimits& limits) {
    try {
      return Adapter("hang", "lying", limits).run().detail;
    } catch (const AdapterError& error) {  // it may be over the limit when it is loaded
      return std::string(error.what());
    }
  };
  WorkerLimits limits = short_limits;
  limits.resident_bytes = 1 << 16;
  limits.beside = 1 << 20;
  const std::string asked = death(limits);
  EXPECT_NE(asked.find("MiB resident"), std::string::npos) << asked;
  EXPECT_EQ(asked.find("--jobs"), std::string::npos) << asked;
  limits.resident_bytes = 0;
  const std::string shared = death(limits);
  EXPECT_NE(shared.find("; --jobs leaves each worker 1/1048576 of the default, --memory says otherwise"),
            std::string::npos)
      << shared;
}

}  // namespace
}  // namespace qkcts
