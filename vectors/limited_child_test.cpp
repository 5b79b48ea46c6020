// SPDX-License-Identifier: Apache-2.0
#include "vectors/limited_child.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <vector>

namespace qkcts {
namespace {

constexpr ChildLimits roomy{std::uint64_t{4} << 30U, 20, 60};

TEST(LimitedChild, GivesBackWhatTheWorkReturns) {
  const ChildOutcome outcome = run_in_limited_child([] { return std::string("all is well"); }, roomy);
  EXPECT_EQ(outcome.end, ChildEnd::returned);
  EXPECT_EQ(outcome.message, "all is well");
  EXPECT_EQ(run_in_limited_child([] { return std::string(); }, roomy).message, "");
  EXPECT_EQ(run_in_limited_child([] { return std::string(100000, 'x'); }, roomy).message, std::string(4000, 'x'));
}

TEST(LimitedChild, ACrashIsToldAndStaysInTheChild) {
  const auto end_of = [](const std::function<std::string()>& work) { return run_in_limited_child(work, roomy).end; };
  EXPECT_EQ(end_of([]() -> std::string {
              ::raise(SIGSEGV);
              return {};
            }),
            ChildEnd::crashed);
  EXPECT_EQ(end_of([]() -> std::string { std::abort(); }), ChildEnd::crashed);
  EXPECT_EQ(end_of([]() -> std::string { throw std::runtime_error("escapes"); }), ChildEnd::crashed);
  EXPECT_EQ(end_of([]() -> std::string { ::_exit(3); }), ChildEnd::crashed);
}

TEST(LimitedChild, EndlessWorkIsStopped) {
  const auto spin = []() -> std::string {
    std::atomic<unsigned> turns = 0;
    while (true) ++turns;
  };
  EXPECT_EQ(run_in_limited_child(spin, {roomy.memory_bytes, 1, 60}).end, ChildEnd::out_of_time);
  const auto sleep = []() -> std::string {
    while (true) ::pause();
  };
  EXPECT_EQ(run_in_limited_child(sleep, {roomy.memory_bytes, 20, 1}).end, ChildEnd::out_of_time);
}

TEST(LimitedChild, MemoryIsLimited) {
  const auto work = [] {
    try {
      const std::vector<char> bytes(std::size_t{1} << 30U, 'x');
      const volatile char* const seen = bytes.data();  // else clang++ leaves the allocation out
      return std::to_string(seen[bytes.size() - 1]);
    } catch (const std::bad_alloc&) {
      return std::string("no memory");
    }
  };
  EXPECT_EQ(run_in_limited_child(work, roomy).message, std::to_string('x'));
  if (!child_memory_is_limited()) GTEST_SKIP() << "a sanitizer reserves the address space";
  EXPECT_EQ(run_in_limited_child(work, {std::uint64_t{1} << 29U, 20, 60}).message, "no memory");
}

}  // namespace
}  // namespace qkcts
