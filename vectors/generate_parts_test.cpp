// SPDX-License-Identifier: Apache-2.0
// A generation that is interrupted, killed or disturbed gives the same bytes as one made in one go.
#include "vectors/generate_parts.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "conformance/file.hpp"
#include "vectors/generate_corpus.hpp"
#include "vectors/generate_shard.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

Plan small_plan() {
  Plan plan;
  plan.suite = "test";
  plan.seed = 7;
  for (const char* shape : {"1,2,1,3,4,8,6", "1,2,1,5,9,8,6", "1,1,1,2,2,2,2", "2,2,1,3,4,8,6"})
    plan.cases.push_back(sample_plan("plain_sdpa", "gaussian", Format::binary32, shape));
  // One that a profile cannot judge, and one that is refused.
  plan.cases.push_back(sample_plan("plain_sdpa", "subnormal", Format::binary32, "1,2,1,3,4,8,6"));
  plan.cases.push_back(sample_plan("plain_sdpa", "subnormal", Format::binary32, "1,2,1,3,5,8,6"));
  plan.cases.back().profiles = {"f32_ftz"};
  return plan;
}

GenerateOptions resuming(const Plan& plan, unsigned jobs = 2) {
  GenerateOptions options;
  options.jobs = jobs;
  options.resume = true;
  options.program = "test program";
  options.plan_digest = plan_digest(plan);
  return options;
}

std::string in_one_go(const TemporaryFolder& folder, const Plan& plan, GenerateReport* report = nullptr) {
  GenerateOptions options;
  options.jobs = 2;
  const GenerateReport made = generate_corpus(plan, folder.file("whole.h5"), options);
  if (report != nullptr) *report = made;
  return file_bytes(folder.file("whole.h5"));
}

// Stops after some cases.
void interrupt(const Plan& plan, const std::string& path, std::size_t cases) {
  GenerateOptions options = resuming(plan, 1);
  std::size_t done = 0;
  options.progress = [&done](const GenerateProgress& p) { done = p.done; };
  options.stopped = [&done, cases] { return done >= cases; };
  EXPECT_THROW(generate_corpus(plan, path, options), Interrupted) << cases;
}

TEST(Resume, WithoutInterruptionTheBytesAreTheSameAndNothingIsLeft) {
  const TemporaryFolder folder;
  const Plan plan = small_plan();
  const std::string whole = in_one_go(folder, plan);
  const GenerateReport report = generate_corpus(plan, folder.file("a.h5"), resuming(plan));
  EXPECT_EQ(report.resumed, 0U);
  EXPECT_TRUE(file_bytes(folder.file("a.h5")) == whole);
  EXPECT_EQ(folder.file_count(), 2U);
}

TEST(Resume, AfterInterruptionsItGoesOnWhereItStopped) {
  const TemporaryFolder folder;
  const Plan plan = small_plan();
  GenerateReport direct;
  const std::string whole = in_one_go(folder, plan, &direct);
  EXPECT_EQ(direct.refused.size(), 1U);
  EXPECT_EQ(direct.dropped.size(), 2U);
  interrupt(plan, folder.file("a.h5"), 2);
  interrupt(plan, folder.file("a.h5"), 4);
  EXPECT_FALSE(std::filesystem::exists(folder.file("a.h5")));
  const GenerateReport report = generate_corpus(plan, folder.file("a.h5"), resuming(plan));
  EXPECT_GE(report.resumed, 4U);
  EXPECT_TRUE(file_bytes(folder.file("a.h5")) == whole);
  EXPECT_EQ(report.digest, direct.digest);
  ASSERT_EQ(report.refused.size(), 1U);
  EXPECT_EQ(report.refused[0].reason, direct.refused[0].reason);
  ASSERT_EQ(report.dropped.size(), 2U);
  EXPECT_EQ(report.dropped[0].share, direct.dropped[0].share);
  EXPECT_EQ(report.dropped[0].stage, direct.dropped[0].stage);
}

TEST(Resume, WhatWasRefusedIsNotComputedAgain) {
  const TemporaryFolder folder;
  const Plan plan = small_plan();
  GenerateOptions options = resuming(plan);
  options.keep_parts = true;
  generate_corpus(plan, folder.file("a.h5"), options);
  const GenerateReport report = generate_corpus(plan, folder.file("a.h5"), options);
  EXPECT_EQ(report.resumed, plan.cases.size());
  remove_parts(folder.file("a.h5") + ".part");
  EXPECT_EQ(folder.file_count(), 1U);
}

TEST(Resume, WithoutItAnInterruptionLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  const Plan plan = small_plan();
  write_bytes(folder.file("a.h5"), "old");
  GenerateOptions options;
  options.stopped = [] { return true; };
  EXPECT_THROW(generate_corpus(plan, folder.file("a.h5"), options), Interrupted);
  EXPECT_EQ(file_bytes(folder.file("a.h5")), "old");
  EXPECT_EQ(folder.file_count(), 1U);
}

// SIGKILL cannot be caught: nothing is tidied up. Returns whether the file was finished.
bool killed_run(const Plan& plan, const std::string& path, std::size_t after, std::chrono::microseconds delay) {
  const pid_t child = ::fork();
  if (child == 0) {
    GenerateOptions options = resuming(plan);
    options.progress = [after](const GenerateProgress& p) {
      if (p.done == after) ::kill(::getpid(), SIGKILL);
    };
    generate_corpus(plan, path, options);
    ::_exit(0);
  }
  if (delay.count() > 0) {
    std::this_thread::sleep_for(delay);
    ::kill(child, SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status);
}

TEST(Resume, AKillAfterEveryCaseChangesNothing) {
  const TemporaryFolder folder;
  const Plan plan = small_plan();
  const std::string whole = in_one_go(folder, plan);
  const std::string path = folder.file("a.h5");
  for (std::size_t after = 1; after <= plan.cases.size(); ++after) {
    ASSERT_FALSE(killed_run(plan, path, after, {})) << after;
    ASSERT_FALSE(std::filesystem::exists(path)) << after;
  }
  const GenerateReport report = generate_corpus(plan, path, resuming(plan));
  EXPECT_EQ(report.resumed, plan.cases.size());
  EXPECT_TRUE(file_bytes(path) == whole);
  EXPECT_EQ(folder.file_count(), 2U);
}

TEST(Resume, AKillAtAnyMomentChangesNothing) {
  const TemporaryFolder folder;
  const Plan plan = small_plan();
  const std::string whole = in_one_go(folder, plan);
  const std::string path = folder.file("a.h5");
  int kills = 0;
  for (int i = 1; i <= 40 && !killed_run(plan, path, 0, std::chrono::microseconds(700 * i)); ++i) ++kills;
  EXPECT_GT(kills, 0);
  if (!std::filesystem::exists(path)) generate_corpus(plan, path, resuming(plan));
  EXPECT_TRUE(file_bytes(path) == whole);
  EXPECT_EQ(folder.file_count(), 2U);
}

TEST(Resume, ADamagedPartIsComputedAgain) {
  const TemporaryFolder folder;
  const Plan plan = small_plan();
  const std::string whole = in_one_go(folder, plan);
  const std::string path = folder.file("a.h5"), parts = path + ".part/";
  GenerateOptions options = resuming(plan);
  options.keep_parts = true;
  const auto resumed_after = [&](const std::string& file, const auto& damage) {
    generate_corpus(plan, path, options);
    std::string bytes = file_bytes(parts + file);
    EXPECT_GT(bytes.size(), 40U) << file;
    damage(bytes);
    write_bytes(parts + file, bytes);
    const std::size_t resumed = generate_corpus(plan, path, options).resumed;
    EXPECT_TRUE(file_bytes(path) == whole) << file;
    return resumed;
  };
  const std::size_t all = plan.cases.size();
  EXPECT_EQ(resumed_after("000001.h5", [](std::string&) {}), all);
  EXPECT_EQ(resumed_after("000001.h5", [](std::string& bytes) { bytes[bytes.size() / 2] ^= 1; }), all - 1);
  EXPECT_EQ(resumed_after("000001.h5", [](std::string& bytes) { bytes.resize(bytes.size() / 2); }), all - 1);
  EXPECT_EQ(resumed_after("000001.h5", [](std::string& bytes) { bytes.clear(); }), all - 1);
  EXPECT_EQ(resumed_after("000004.json", [](std::string& bytes) { bytes.resize(bytes.size() / 2); }), all - 1);
  EXPECT_EQ(resumed_after("000005.json", [](std::string& bytes) { bytes.clear(); }), all - 1);
  // The part of another case in its place.
  EXPECT_EQ(resumed_after("000001.h5", [&](std::string& bytes) { bytes = file_bytes(parts + "000000.h5"); }), all - 1);
  std::filesystem::remove(parts + "000004.json");  // beside it lies evidence with a profile less
  EXPECT_EQ(generate_corpus(plan, path, options).resumed, all - 1);
}

TEST(Resume, OnlyTheSamePlanProgramAndShardGoesOn) {
  const TemporaryFolder folder;
  const Plan plan = small_plan();
  const std::string path = folder.file("a.h5");
  interrupt(plan, path, 2);
  const auto refusal = [&](const auto& change) {
    GenerateOptions options = resuming(plan);
    change(options);
    try {
      generate_corpus(plan, path, options);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_NE(refusal([](GenerateOptions& o) { o.program = "other"; }).find("another version of this program"),
            std::string::npos);
  EXPECT_NE(refusal([](GenerateOptions& o) { o.plan_digest = "other"; }).find("another plan"), std::string::npos);
  EXPECT_NE(refusal([](GenerateOptions& o) { o.shard = "1/2"; }).find("another shard"), std::string::npos);
  write_bytes(path + ".part/mine.txt", "somebody's");
  EXPECT_NE(refusal([](GenerateOptions&) {}).find("mine.txt"), std::string::npos);
  EXPECT_EQ(file_bytes(path + ".part/mine.txt"), "somebody's");
  std::filesystem::remove(path + ".part/mine.txt");
  EXPECT_EQ(refusal([](GenerateOptions&) {}), "none");  // control
}

TEST(Resume, TwoProgramsDoNotWorkInOnePlace) {
  const TemporaryFolder folder;
  const std::string place = folder.file("a.h5.part");
  {
    const CaseParts first(place, {"p", "d", ""});
    EXPECT_THROW(CaseParts(place, {"p", "d", ""}), WriteError);
  }
  EXPECT_NO_THROW(CaseParts(place, {"p", "d", ""}));
  write_bytes(folder.file("file"), "");
  EXPECT_THROW(CaseParts(folder.file("file"), {"p", "d", ""}), WriteError);
  EXPECT_THROW(CaseParts(folder.file("no/such/place"), {"p", "d", ""}), WriteError);
}

}  // namespace
}  // namespace qkcts
