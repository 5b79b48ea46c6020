// SPDX-License-Identifier: Apache-2.0
// Random contracts for the tests of this folder.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>

#include <qkcts/adapter.h>

namespace qkcts {

// A number from first to last, both included.
std::int64_t pick(std::mt19937_64& source, std::int64_t first, std::int64_t last);

template <class Value>
Value one_of(std::mt19937_64& source, std::initializer_list<Value> values) {
  return values.begin()[pick(source, 0, static_cast<std::int64_t>(values.size()) - 1)];
}

// Up to which version of the ABI clauses are drawn.
enum class ContractVersion { v1_0, v1_1, v1_2 };

qkcts_contract plain_contract();
qkcts_contract random_contract(std::mt19937_64& source, const qkcts_shape& shape, ContractVersion version);

// Bit i: stage i. Stages of projections, norms and rotation only where the contract has them.
std::uint32_t existing_stages(const qkcts_contract& terms);

std::string contract_text(const qkcts_contract& terms);  // in one line, for failure messages

}  // namespace qkcts
