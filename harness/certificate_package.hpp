// SPDX-License-Identifier: Apache-2.0
// The folder of a certificate: exactly these files, each under its SHA-256.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/json.hpp"
#include "harness/run_record.hpp"

namespace qkcts::package {

inline constexpr std::string_view certificate = "certificate.json", outputs = "outputs.h5", run = "run.json",
                                  report = "report.html", summary = "summary.md", fresh = "fresh.h5";
inline constexpr std::array sealed = {fresh, outputs, report, run, summary};  // by certificate.json

// Writes certificate.json: `body` with the digests of the sealed files in the folder, and its own. Throws WriteError.
Json seal(const std::string& folder, Json body);

// Checks names, digests and schema. Throws InputError "FILE: what" for the first file that is missing, changed, or does
// not belong there.
Json open(const std::string& folder);

// What outputs judged again say otherwise than run.json, one line each; none: they say the same.
std::vector<std::string> differences(const RunRecord& claimed, const RunRecord& judged_again);

}  // namespace qkcts::package
