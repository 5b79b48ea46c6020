// SPDX-License-Identifier: Apache-2.0
// Planned case -> inputs -> proven stages -> budgets. Only files generate*.cpp of vectors/ use the reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/attention.hpp"
#include "vectors/estimate.hpp"
#include "vectors/golden_case.hpp"
#include "vectors/plan.hpp"

namespace qkcts {

// A profile under which more than 1 % of a stage is mistrusted (or all of it domain): it says too little about the
// case.
struct DroppedProfile {
  std::string slug;
  std::string profile;
  std::string stage;
  double share = 0;  // of the judged elements of the stage
};

// The inputs of a planned case, rotary tables included.
Case make_case(const PlannedCase& planned);
Case make_case(const PlannedCase& planned, std::int64_t& first_position);  // of row 0 of the tables, 0 without them

// Evidence for a case. Throws UndecidedError and InputError. `dropped` gets the profiles that were left out; if none
// remains, the golden case has no profile and no stage.
GoldenCase make_golden(const PlannedCase& planned, std::vector<DroppedProfile>& dropped, Tier tier = Tier::automatic);

// The evidence, but for the separations, of a case whose inputs, names and profiles stand there.
void seal(GoldenCase& golden, const StageRows& rows, std::vector<DroppedProfile>& dropped, Tier tier = Tier::automatic);

// Budgets of the profiles, and the proven stages, of given inputs: what `verify` compares with.
struct Evidence {
  std::array<GoldenStage, QKCTS_STAGE_COUNT> stages;
  Range entropy, p_max, score_max, jacobian;
};
Evidence make_evidence(const Case& c, const StageRows& rows, const std::vector<Profile>& profiles,
                       Tier tier = Tier::automatic);

}  // namespace qkcts
