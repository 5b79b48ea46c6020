// SPDX-License-Identifier: Apache-2.0
// Recomputing a corpus from its own inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "vectors/generate.hpp"

namespace qkcts {

struct VerifyOptions {
  double sample = 1;  // per cent of the cases whose evidence is recomputed, at least one case; drawn by the digest
  unsigned jobs = 1;
  Tier tier = Tier::mpfr;  // intervals: apart from the arithmetic that wrote the file
  std::function<void(std::size_t done, std::size_t all, const std::string& slug)> progress;
};

struct VerifyMismatch {
  std::string slug;
  std::string what;  // "stage probs, row 3, element 7: expected is 0x3f.., recomputed 0x40.."
};

struct VerifyReport {
  std::size_t cases = 0;       // read, with their digests
  std::size_t recomputed = 0;  // stages and budgets too
  std::vector<VerifyMismatch> mismatches;
};

// Throws InputError for a file that cannot be read or whose digests do not match.
VerifyReport verify_corpus(const std::string& path, const VerifyOptions& options);

}  // namespace qkcts
