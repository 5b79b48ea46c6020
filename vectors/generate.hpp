// SPDX-License-Identifier: Apache-2.0
// Plan -> inputs -> proven stages -> budgets -> corpus. The only part of vectors/ that uses the reference.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reference/attention.hpp"
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

struct RefusedCase {
  std::string slug;
  std::string reason;
};

struct GenerateProgress {
  std::size_t done = 0, all = 0;
  double work_done = 0, work_all = 0;  // in units of estimated_seconds()
  std::string slug;                    // written last
};

struct GenerateOptions {
  unsigned jobs = 1;
  Tier tier = Tier::automatic;  // the file does not depend on it
  std::string generator_version;
  std::function<void(const GenerateProgress&)> progress;  // called from the calling thread, in order
};

struct GenerateReport {
  std::size_t written = 0;
  std::vector<RefusedCase> refused;
  std::vector<DroppedProfile> dropped;
  std::string digest;
};

// Same plan, same bytes, for any number of jobs. Throws InputError for inputs that contradict their contract and
// WriteError; refused cases and dropped profiles are reported and left out.
GenerateReport generate_corpus(const Plan& plan, const std::string& path, const GenerateOptions& options);

// The inputs of a planned case, rotary tables included.
Case make_case(const PlannedCase& planned);
Case make_case(const PlannedCase& planned, std::int64_t& first_position);  // of row 0 of the tables, 0 without them

// Evidence for a case. Throws UndecidedError and InputError. `dropped` gets the profiles that were left out; if none
// remains, the golden case has no profile and no stage.
GoldenCase make_golden(const PlannedCase& planned, std::vector<DroppedProfile>& dropped, Tier tier = Tier::automatic);

// Budgets of the profiles, and the proven stages, of given inputs: what `verify` compares with.
struct Evidence {
  std::array<GoldenStage, QKCTS_STAGE_COUNT> stages;
  Range entropy, p_max, score_max;
};
Evidence make_evidence(const Case& c, const StageRows& rows, const std::vector<Profile>& profiles,
                       Tier tier = Tier::automatic);

// Rough figures, for progress and for refusing absurd plans politely.
double estimated_seconds(const PlannedCase& planned);  // of one core
double estimated_bytes(const PlannedCase& planned);    // before compression

}  // namespace qkcts
