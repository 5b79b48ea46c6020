// SPDX-License-Identifier: Apache-2.0
#include "harness/gtest_registration.hpp"

#include <array>
#include <exception>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "harness/usage_error.hpp"

namespace qkcts {
namespace {

constexpr std::string_view relation_test = "relation";

// GoogleTest knows no other way out of --gtest_repeat=-1.
struct RoundsAreOver {};

class RegisteredTest : public testing::Test {
 public:
  RegisteredTest(StageTest test, const StageTestHooks& hooks, std::exception_ptr& end)
      : test_(std::move(test)), hooks_(hooks), end_(end) {}

  // GoogleTest loses a test through which an exception passes. So it waits in `end_`, and nothing more is run.
  void TestBody() override {
    if (end_) return;
    StageTestResult result;
    try {
      result = hooks_.run(test_);
    } catch (...) {
      end_ = std::current_exception();
      return;
    }
    switch (result.outcome) {
      case JunitElement::passed:
        return;
      case JunitElement::skipped:
        GTEST_SKIP() << result.text;
      case JunitElement::failure:
      case JunitElement::error:
        ADD_FAILURE() << result.text;
    }
  }

 private:
  StageTest test_;
  const StageTestHooks& hooks_;
  std::exception_ptr& end_;
};

// Prints nothing: the run has its own progress and reports.
class RoundListener : public testing::EmptyTestEventListener {
 public:
  RoundListener(const StageTestHooks& hooks, const std::exception_ptr& end) : hooks_(hooks), end_(end) {}
  void OnTestIterationStart(const testing::UnitTest& all, int round) override {
    if (round > 0 && (end_ || hooks_.is_over())) throw RoundsAreOver();
    hooks_.before_round(selected_cases(all));
  }

 private:
  static std::vector<std::string_view> selected_cases(const testing::UnitTest& all) {
    std::vector<std::string_view> slugs;
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
      const testing::TestSuite& suite = *all.GetTestSuite(i);
      for (int j = 0; j < suite.total_test_count(); ++j) {
        const testing::TestInfo& test = *suite.GetTestInfo(j);
        if (!test.should_run() || test.name() == relation_test) continue;
        slugs.emplace_back(suite.name());
        break;
      }
    }
    return slugs;
  }

  const StageTestHooks& hooks_;
  const std::exception_ptr& end_;
};

std::string name_of(const StageTest& test) {
  return test.stage ? std::string(stage_name(*test.stage)) : std::string(relation_test);
}

// An unknown flag would make GoogleTest print its help and run nothing.
void require_known(std::string_view argument) {
  constexpr std::array known = {"filter",    "list_tests", "repeat", "shuffle", "random_seed",
                                "fail_fast", "output",     "brief",  "color",   "print_time"};
  const std::string_view name = argument.substr(0, argument.find('='));
  for (const char* flag : known)
    if (name == fmt::format("--gtest_{}", flag)) return;
  throw UsageError(fmt::format("'{}' behind --: no argument of GoogleTest that is taken here; there are: --gtest_{}",
                               argument, fmt::join(known, ", --gtest_")));
}

// What GoogleTest reads: GTEST_FILTER, GTEST_SHARD_INDEX, XML_OUTPUT_FILE, TESTBRIDGE_TEST_ONLY, ...
bool environment_asks_google_test() {
  constexpr std::array<std::string_view, 4> prefixes = {"GTEST_", "TEST_", "TESTBRIDGE_", "XML_OUTPUT_FILE"};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    for (const std::string_view prefix : prefixes)
      if (std::string_view(*entry).starts_with(prefix)) return true;
  return false;
}

void for_each_test(const std::vector<TestGroup>& tests, const std::function<void(const StageTest& test)>& take) {
  for (const TestGroup& group : tests) {
    if (group.stages == 0) take({group.slug, std::nullopt});
    for (const qkcts_stage stage : all_stages)
      if ((group.stages & bit(stage)) != 0) take({group.slug, stage});
  }
}

void run_one_after_another(const std::vector<TestGroup>& tests, const StageTestHooks& hooks) {
  std::vector<std::string_view> slugs;
  for (const TestGroup& group : tests)
    if (group.stages != 0) slugs.push_back(group.slug);
  hooks.before_round(slugs);
  for_each_test(tests, hooks.run);
}

}  // namespace

RegisteredRun run_registered(const std::vector<TestGroup>& tests, const std::vector<std::string>& gtest_arguments,
                             const StageTestHooks& hooks) {
  if (gtest_arguments.empty() && !environment_asks_google_test()) {
    run_one_after_another(tests, hooks);
    return RegisteredRun::ran;
  }
  std::vector<std::string> words = {"qkcts"};
  words.insert(words.end(), gtest_arguments.begin(), gtest_arguments.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int count = static_cast<int>(words.size());
  for (const std::string& argument : gtest_arguments) require_known(argument);
  testing::InitGoogleTest(&count, arguments.data());
  testing::GTEST_FLAG(catch_exceptions) = false;  // main() turns them into exit codes
  std::exception_ptr end;
  if (count > 1) throw UsageError(fmt::format("'{}' behind -- is no argument of GoogleTest", arguments[1]));

#ifdef __clang_analyzer__
  static_cast<void>(tests);  // it takes for lost what RegisterTest() hands to GoogleTest
#else
  for_each_test(tests, [&](const StageTest& test) {
    testing::RegisterTest(std::string(test.slug).c_str(), name_of(test).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [test, &hooks, &end]() -> testing::Test* { return new RegisteredTest(test, hooks, end); });
  });
#endif
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new RoundListener(hooks, end));
  try {
    [[maybe_unused]] const int outcome = RUN_ALL_TESTS();  // the exit code follows from the verdicts
  } catch (const RoundsAreOver&) {                         // what was found is whole, or `end` says why not
  }
  if (end) std::rethrow_exception(end);
  return testing::GTEST_FLAG(list_tests) ? RegisteredRun::listed : RegisteredRun::ran;
}

}  // namespace qkcts
