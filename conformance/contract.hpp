// SPDX-License-Identifier: Apache-2.0
// A named numerical contract: the C terms of <qkcts/contract.h> with name and sources, its JSON and its rules.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <qkcts/contract.h>

namespace qkcts {

// Bad user input (file, JSON, flag): `what()` is one line that says what, where and what to do. Exit code 3.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Contract {
  std::string name;   // slug [a-z0-9_]+
  std::string title;  // one line
  std::vector<std::string> sources;
  qkcts_shape model_shape{};  // heads and head size of the model it is taken from; lengths are 0
  qkcts_contract terms{};
};

// Throws InputError with the JSON pointer of the first fault. `origin` names the file in messages.
Contract contract_from_json(std::string_view text, std::string_view origin);

// Canonical text: every clause written out, keys sorted, shortest round-trip numbers, one line.
std::string canonical_json(const Contract& contract);
std::string contract_digest(const Contract& contract);  // SHA-256 of the canonical text without name, title, sources

// Rules that a schema cannot say (R even, gain axes iff gain, ...). Empty if valid, else one line.
std::string contract_fault(const qkcts_contract& terms);
// Does the shape fit the contract (Hq a multiple of Hkv, R <= D, ...)? Empty if so, else one line.
std::string shape_fault(const qkcts_contract& terms, const qkcts_shape& shape);

// The contracts shipped in conformance/contracts. shipped_contracts() are those over which suites and tests run: every
// clause, and the contracts that are easily mistaken. model_contracts() are those of docs/models.md beside them.
std::vector<std::string> shipped_contracts();
std::vector<std::string> model_contracts();
// One of either kind by its name; throws InputError listing near names.
Contract shipped_contract(std::string_view name);

// Clauses in which two contracts differ.
struct ClauseDifference {
  std::string clause;  // e.g. QK-EPS-02
  std::string field;   // e.g. q_norm.root
  std::string left;
  std::string right;
};
std::vector<ClauseDifference> contract_differences(const Contract& left, const Contract& right);

// ---- stages -------------------------------------------------------------------------------------------------------

using StageSet = std::uint32_t;  // bit i: stage i
constexpr StageSet bit(qkcts_stage stage) {
  return StageSet{1} << stage;
}

std::string_view stage_name(qkcts_stage stage);
std::optional<qkcts_stage> stage_named(std::string_view name);
// Can any key be hidden under this contract? (causal, key lengths, boolean mask, window, chunk, documents, additive
// bias)
bool hides_keys(const qkcts_contract& terms);
// Does this side have a norm, a clip or a multiplier, and so a stage q_norm, k_norm or v_norm?
bool transforms(const qkcts_norm& norm, const qkcts_norm_range& range);
// Does the contract round anywhere (QK-ROUND)?
bool has_rounding_points(const qkcts_rounding& rounding);
// The rounding point of a stage itself: a qkcts_format, 0 without one.
std::uint32_t stage_point(const qkcts_contract& terms, qkcts_stage stage);
// Stages that exist under this contract (a norm that is not applied has no q_norm stage, ...). output and lse always
// do.
StageSet stages_of(const qkcts_contract& terms);
// Full shape of a stage tensor; docs in <qkcts/contract.h>.
std::vector<std::int64_t> stage_shape(qkcts_stage stage, const qkcts_shape& shape);
// Length of one row: D, Lk, Dv, or 1 for lse. A stage is a list of rows; row index = flattened leading axes.
std::int64_t row_length(qkcts_stage stage, const qkcts_shape& shape);
std::int64_t row_count(qkcts_stage stage, const qkcts_shape& shape);

// In the order of evaluation, which is not that of the enumerators.
constexpr std::array<qkcts_stage, QKCTS_STAGE_COUNT> all_stages = {
    QKCTS_STAGE_Q_PROJ, QKCTS_STAGE_K_PROJ, QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_NORM, QKCTS_STAGE_V_NORM,
    QKCTS_STAGE_Q_ROPE, QKCTS_STAGE_K_ROPE, QKCTS_STAGE_SCORES, QKCTS_STAGE_CAPPED, QKCTS_STAGE_MASKED,
    QKCTS_STAGE_PROBS,  QKCTS_STAGE_LSE,    QKCTS_STAGE_OUTPUT};

// Clause group that a stage's formula belongs to first (QK-NORM, QK-ROPE, ...), for failure lines.
std::string_view stage_clause(qkcts_stage stage);

}  // namespace qkcts
