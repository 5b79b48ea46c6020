// SPDX-License-Identifier: Apache-2.0
// Looking for inputs that tell two contracts apart as surely as possible: sizes and directions of q, k and v are
// changed, and what raises the separation is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vectors/golden_case.hpp"
#include "vectors/own_profile.hpp"

namespace qkcts {

struct SeparationSearch {
  Contract own, other;
  std::string family = "gaussian";  // to start from
  Format format = Format::binary32;
  qkcts_shape shape{};
  std::uint64_t seed = 0;
  std::optional<NamedProfile> profile;  // whose budgets count; none: the first shipped one of the format
  std::optional<qkcts_stage> stage;     // the stage that has to tell; none: any
  std::uint32_t steps = 200;
};

struct SearchStep {
  std::uint32_t step = 0;
  std::string change;  // "q * 2^-3", "row 7 of k + 1/4 noise"; empty: the start
  double separation = 0;
  qkcts_stage stage = QKCTS_STAGE_OUTPUT;
};

struct SearchResult {
  GoldenCase golden;                     // the best case, with all its evidence
  std::vector<SearchStep> improvements;  // the start and every step that was kept
  std::uint32_t refused = 0;             // steps without a value, a proof or a profile that judges
};

// Equal arguments give equal results on every machine. Throws InputError if the contracts are equal, or need different
// inputs ("only A needs q_gain"), or the start has no evidence. `stopped` ends it early, at the best case so far.
SearchResult search_separation(const SeparationSearch& search, const std::function<bool()>& stopped = {});

}  // namespace qkcts
