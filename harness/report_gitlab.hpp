// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// GitLab takes test results as JUnit (report_junit.hpp). Its merge requests also compare Code Quality reports by
// fingerprint, and so tell a new failure from an old one: one entry per failing case, and one per stage that is legal
// but unusual. https://docs.gitlab.com/ci/testing/code_quality
void write_gitlab_code_quality(const RunRecord& record, const TextSink& sink);
std::string gitlab_code_quality(const RunRecord& record);

}  // namespace qkcts
