// SPDX-License-Identifier: Apache-2.0
// The diagnosis at the end of a run.
#include <fmt/format.h>

#include <unistd.h>

#include "harness/cli/run.hpp"

namespace qkcts::cli {

bool can_diagnose() {
  return true;
}

void diagnose_and_print(const RunRequest& request, RunRecord& record, const DiagnoseOptions& options) {
  record.diagnosis =
      diagnose(request, record, options, [](const CaseDiagnosis& one, std::size_t done, std::size_t all) {
        if (isatty(STDERR_FILENO) == 0) return;
        fmt::print(stderr, "\r{:70}\r", "");
        if (done < all) fmt::print(stderr, "diagnosed {} of {}, last {:.40}", done, all, one.slug);
      });
  fmt::print("{}", diagnosis_text(*record.diagnosis));
}

}  // namespace qkcts::cli
