// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// JUnit XML: one testsuite per contract, one testcase per case (classname SUITE.CONTRACT), with one failure, error or
// skip each by the table of verdicts. Texts are cut so that the file stays below 25 MB.
void write_junit_xml(const RunRecord& record, const TextSink& sink);
std::string junit_xml(const RunRecord& record);

}  // namespace qkcts
