// SPDX-License-Identifier: Apache-2.0
// A user's own tolerances (`run --limits FILE`): judged beside Delta, reported in columns of their own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/judgement.hpp"

namespace qkcts {

struct LimitRule {
  std::optional<qkcts_stage> stage;  // nothing: every stage
  std::optional<Format> format;      // storage format of the case; nothing: every format
  Limit limit;
};

struct LimitTable {
  std::vector<LimitRule> rules;
  std::string text;  // canonical JSON, empty if there are no limits

  // The first rule that names the stage and the format, if any.
  std::optional<Limit> find(qkcts_stage stage, Format storage) const;
};

// Throws InputError naming `origin` and the JSON pointer of the first fault.
LimitTable limits_from_json(std::string_view text, std::string_view origin);

}  // namespace qkcts
