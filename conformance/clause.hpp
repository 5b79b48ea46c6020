// SPDX-License-Identifier: Apache-2.0
// The clauses of a contract: stable ids, titles, and where docs/contract.md says what they mean.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace qkcts {

struct Clause {
  std::string_view id;     // "QK-EPS-02"; never reused, never renumbered
  std::string_view title;  // one line
};

std::span<const Clause> clauses();

// nullptr if there is no such clause.
const Clause* find_clause(std::string_view id);

// "QK-EPS" of "QK-EPS-02"; a group is its own group.
std::string_view clause_group(std::string_view id);

// "docs/contract.md#qk-eps-02"; a group ("QK-EPS") has an anchor too.
std::string clause_anchor(std::string_view id);

}  // namespace qkcts
