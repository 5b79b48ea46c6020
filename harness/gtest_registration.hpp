// SPDX-License-Identifier: Apache-2.0
// Every case x stage as a GoogleTest test, registered at run time: filters, listing, repetition, sharding and XML are
// those of GoogleTest. The one file that knows GoogleTest outside of the unit tests.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract.hpp"
#include "harness/verdict.hpp"

namespace qkcts {

// Named "SLUG.STAGE", e.g. "qwen3_rmsnorm/binary32/gaussian.probs", or "SLUG.relation"; free of * ? : - which filters
// reserve.
struct StageTest {
  std::string_view slug;             // of what outlives the run
  std::optional<qkcts_stage> stage;  // of a case; nothing: the slug is that of a relation
};

// The tests of a case, one for each of these stages in the order of evaluation; without any, the one of a relation.
struct TestGroup {
  std::string_view slug;
  StageSet stages = 0;
};

struct StageTestResult {
  JunitElement outcome = JunitElement::passed;
  std::string text;  // why, unless it passed
};

struct StageTestHooks {
  std::function<StageTestResult(const StageTest&)> run;
  // Before each repetition (--gtest_repeat): the cases of which a stage is selected, in the order of their tests.
  std::function<void(const std::vector<std::string_view>& slugs)> before_round;
  std::function<bool()> is_over;  // whether nothing is run any more; then no further repetition begins
};

enum class RegisteredRun { ran, listed };

// Registers the tests in order and runs what the arguments select; GoogleTest itself prints only on --gtest_list_tests.
// Where neither they nor the environment ask anything of it, it is left out: of each test it keeps some kilobytes.
// Call it once per process. Throws UsageError for an argument that it does not know.
RegisteredRun run_registered(const std::vector<TestGroup>& tests, const std::vector<std::string>& gtest_arguments,
                             const StageTestHooks& hooks);

}  // namespace qkcts
