// SPDX-License-Identifier: Apache-2.0
// What a certificate needs of the reference. A judge-only build has none of it: there each throws UsageError.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vectors/manifest.hpp"

namespace qkcts::cli {

bool can_generate();

// The corpus of a released suite. Throws WriteError, InputError.
void generate_suite(const ReleasedSuite& suite, const std::string& path);

// The cases of these names, out of the plans of the suites, drawn anew by the seed: names begin with "fresh/". Returns
// what had to be left out, "NAME: reason": the same for everybody who draws by this seed.
std::vector<std::string> generate_fresh(const std::vector<std::string>& suites, const std::vector<std::string>& slugs,
                                        std::uint64_t seed, const std::string& path);

}  // namespace qkcts::cli
