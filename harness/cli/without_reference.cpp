// SPDX-License-Identifier: Apache-2.0
// The judge-only build (QKCTS_REFERENCE=OFF) in place of what asks the reference.
#include "harness/cli/fresh_corpus.hpp"
#include "harness/cli/run.hpp"

namespace qkcts::cli {
namespace {

[[noreturn]] void refuse() {
  throw UsageError("this build leaves the reference out (QKCTS_REFERENCE=OFF): it judges, and generates nothing");
}

}  // namespace

bool can_generate() {
  return false;
}

void generate_suite(const ReleasedSuite&, const std::string&) {
  refuse();
}

std::vector<std::string> generate_fresh(const std::vector<std::string>&, const std::vector<std::string>&, std::uint64_t,
                                        const std::string&) {
  refuse();
}

bool can_diagnose() {
  return false;
}

void diagnose_and_print(const RunRequest&, RunRecord&, const DiagnoseOptions&) {
  refuse();
}

}  // namespace qkcts::cli
