// SPDX-License-Identifier: Apache-2.0
// The version that a file has to say: the smallest that knows its contracts, profiles and cases. So equal corpora are
// equal files, and a reader of version 1 refuses only what it could not understand.
#pragma once

#include <cstdint>

#include <qkcts/contract.h>

namespace qkcts {

// 1: every clause of the contract is one of contract ABI 1.0, or at the default that 1.0 took for granted.
// 2: a clause of ABI 1.1 says something. 3: one of ABI 1.2 does. What that brings to a file is listed in
// docs/vector_format.md, "Versions".
std::uint32_t format_version_of(const qkcts_contract& terms);

// Of a file that holds a profile which is not shipped.
constexpr std::uint32_t own_profile_version = 3;

// Of a file with a case that has the statistic `jacobian`. Such a case alone may have separations.
constexpr std::uint32_t separation_version = 4;

// Of a file that holds a relation.
constexpr std::uint32_t relation_version = 4;

// The smallest one of a master file.
constexpr std::uint32_t first_master_version = 4;

}  // namespace qkcts
