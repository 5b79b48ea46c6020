// SPDX-License-Identifier: Apache-2.0
// Flags of `run` that say how an adapter is run, as a user meets them.
#include <set>

#include <fmt/format.h>

#include "conformance/json_schema.hpp"
#include "harness/program_output.hpp"
#include "harness/test_adapters/test_adapters.hpp"

namespace qkcts {
namespace {

class IsolationCli : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    corpus = path("cases.h5");
    ASSERT_EQ(qkcts("generate --contract plain_sdpa --shape 1,2,1,3,5,8,6 --shape 2,2,2,4,5,8,6 --shape 1,2,1,5,5,8,6 "
                    "--format binary32 -o " +
                    corpus)
                  .code,
              0);
  }
  static std::string run(const std::string& fault, const std::string& more, const std::string& library = "lying") {
    return fmt::format("run '{}?fault={}' {} -o {} {}", test_adapter(library), fault, corpus, path("r"), more);
  }
  static Json record() {
    Json document = parse_json(read_text_file(path("r/run.json")), "run.json");
    require_schema(document, "run", "run.json");
    return document;
  }

  static inline std::string corpus;
};

TEST_F(IsolationCli, SharesAreTheWholeAndApart) {
  std::set<std::string> seen;
  for (const char* shard : {"1/2", "2/2"}) {
    ASSERT_EQ(qkcts(run("none", fmt::format("--shard {}", shard))).code, 0);
    const Json document = record();
    EXPECT_EQ(document["options"]["shard"], shard);
    for (const Json& one : document["cases"]) EXPECT_TRUE(seen.insert(one["case"]).second) << one["case"];
  }
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(qkcts(run("none", "--shard 4/4")).code, 5);  // there are three cases
  for (const char* shard : {"0/2", "3/2", "1", "a/b", "1/2x", "1/99999"}) {
    const ProgramOutput bad = qkcts(run("none", fmt::format("--shard {}", shard)));
    EXPECT_EQ(bad.code, 2) << shard;
    EXPECT_TRUE(is_one_line(bad.err)) << bad.err;
  }
}

// A relation goes with the last of its cases, whichever share the others fall to.
TEST_F(IsolationCli, EveryRelationIsInOneShare) {
  written("plan.json", R"({"schema": "qkcts-plan/1", "suite": "pairs", "seed": 1, "groups": [
    {"contracts": ["qwen3_rmsnorm"], "families": ["eps_edge"], "formats": ["binary32"], "shapes": ["1,2,1,3,6,8,6"],
     "relations": ["P2", "value_sign"]}]})");
  const std::string pairs = path("pairs.h5");
  ASSERT_EQ(qkcts("generate " + path("plan.json") + " -o " + pairs).code, 0);
  std::set<std::string> seen;
  std::size_t cases = 0;
  for (const char* shard : {"1/3", "2/3", "3/3"}) {
    ASSERT_EQ(qkcts(fmt::format("run scalar {} --shard {} -o {}", pairs, shard, path("r"))).code, 0);
    const Json document = record();
    cases += document["cases"].size();
    for (const Json& one : document["relations"]) {
      EXPECT_TRUE(seen.insert(one["relation"]).second) << one["relation"];
      EXPECT_EQ(one["verdict"], "pass");
    }
  }
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_EQ(cases, 3u);
}

TEST_F(IsolationCli, VariantsAreMadeAndCanBeLeftOut) {
  EXPECT_EQ(qkcts(run("taps", "", "lying_claims")).code, 1);
  EXPECT_EQ(record()["summary"]["cases"]["not_repeatable"], 3);
  EXPECT_EQ(qkcts(run("first_place", "", "lying_claims")).code, 1);
  EXPECT_EQ(record()["summary"]["cases"]["batch_variant"], 3);
  EXPECT_EQ(qkcts(run("taps", "--variants none", "lying_claims")).code, 0);
  const ProgramOutput unclaimed = qkcts(run("taps", ""));
  EXPECT_EQ(unclaimed.code, 0) << unclaimed.out;
  const Json stages = record()["cases"][0]["stages"];
  for (const Json& stage : stages) {
    if (stage["stage"] != "output") continue;
    EXPECT_GT(stage["spread_ulp"].get<double>(), 0);
  }
  EXPECT_EQ(qkcts(run("none", "--variants some")).code, 2);
}

TEST_F(IsolationCli, LimitsReachTheWorker) {
  EXPECT_EQ(qkcts(run("spin", "--cpu-time 0.3 --variants none")).code, 1);
  EXPECT_EQ(record()["summary"]["cases"]["error(timeout)"], 3);
  EXPECT_EQ(record()["options"]["cpu_seconds"], 0.3);
  EXPECT_EQ(qkcts(run("segfault", "--respawns 1")).code, 1);
  EXPECT_EQ(record()["summary"]["cases"]["error(crash)"], 2);
  EXPECT_EQ(record()["summary"]["cases"]["not_run"], 1);
}

TEST_F(IsolationCli, AnotherAbiSaysSo) {
  const ProgramOutput bad = qkcts(fmt::format("run {} {}", test_adapter("odd_short"), corpus));
  EXPECT_EQ(bad.code, 4);
  EXPECT_TRUE(is_one_line(bad.err)) << bad.err;
  EXPECT_NE(bad.err.find("error(abi): struct_size of its table is"), std::string::npos) << bad.err;
}

// Each of the twelve gets its verdict in every case, and the run goes on to the last.
TEST_F(IsolationCli, MisdeedsAreVerdictsAndTheRunGoesOn) {
  struct Misdeed {
    const char* fault;
    const char* verdict;
    const char* library = "lying";
  };
  for (const Misdeed& misdeed :
       {Misdeed{"segfault", "error(crash)"}, Misdeed{"abort", "error(crash)"}, Misdeed{"hang", "error(timeout)"},
        Misdeed{"daemon_hang", "error(timeout)"}, Misdeed{"daemon_exit", "error(crash)"},
        Misdeed{"overrun", "error(overrun)"}, Misdeed{"underrun", "error(underrun)"},
        Misdeed{"input", "error(input_modified)"}, Misdeed{"unwritten_row", "error(unwritten)"},
        Misdeed{"stdout", "pass"}, Misdeed{"text_size", "error(abi)"}, Misdeed{"unsupported", "error(protocol)"},
        Misdeed{"restless", "not_repeatable", "lying_claims"}}) {
    const bool hangs = misdeed.verdict == std::string("error(timeout)");
    const ProgramOutput run_of = qkcts(
        run(misdeed.fault, fmt::format("--timeout {} --variants none --no-plain", hangs ? 0.4 : 30), misdeed.library));
    EXPECT_EQ(run_of.code, misdeed.verdict == std::string("pass") ? 0 : 1) << misdeed.fault << run_of.err;
    EXPECT_EQ(record()["summary"]["cases"][misdeed.verdict], 3) << misdeed.fault << record()["summary"].dump();
  }
}

}  // namespace
}  // namespace qkcts
