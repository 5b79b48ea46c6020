// SPDX-License-Identifier: Apache-2.0
// Logical digests: what a corpus says, whatever the HDF5 library, the compression or the generator's version.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "conformance/digest.hpp"
#include "vectors/golden_case.hpp"

namespace qkcts {

// SHA-256 over slug, contract, family, description, seed, shape, statistics, and name, format, extents and raw bits of
// every input and stage. `digest` of the case is not looked at. docs/vector_format.md lists the order.
std::string case_digest(const GoldenCase& golden);

// Name, element type, extents and raw bits of an input, as they stand in every digest.
void add_tensor(Sha256& hash, std::string_view name, const Tensor& tensor);

struct DigestEntry {
  std::string name;
  std::string digest;
};
// Contracts and cases sorted by name.
std::string corpus_digest(const std::string& suite, std::uint64_t seed, const std::vector<DigestEntry>& contracts,
                          const std::vector<DigestEntry>& cases, const std::vector<DigestEntry>& profiles = {},
                          const std::vector<DigestEntry>& relations = {});
// Of the canonical text of a profile.
std::string own_profile_digest(const std::string& text);
// Of the canonical text of a relation.
std::string relation_digest(const std::string& text);

}  // namespace qkcts
