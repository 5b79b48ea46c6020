// SPDX-License-Identifier: Apache-2.0
// Two clauses that a case cannot tell apart because its numbers agree by accident.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vectors/plan.hpp"

namespace qkcts {

struct Coincidence {
  std::string_view name;  // lengths, heads, widths, one_key, eps, scale, gains, positions
  std::string reason;     // what agrees, and what it hides
};

// What contract and shape alone say.
std::vector<Coincidence> coincidences(const PlannedCase& planned);
// What the numbers say that were drawn: gains and positions.
std::vector<Coincidence> coincidences(const Case& c);
// Every name, for messages and for `allow` in a plan.
std::vector<std::string_view> coincidence_names();

// Those of each case that no other case of the same contract makes up for (eps and scale: no other case at all), by
// name. What a group of the plan allows is left out.
struct UncoveredCoincidence {
  std::string slug;
  Coincidence coincidence;
};
std::vector<UncoveredCoincidence> uncovered_coincidences(const Plan& plan);

}  // namespace qkcts
