// SPDX-License-Identifier: Apache-2.0
// Failures that are known, with a reason and a last day (`run --known-failures FILE`): they do not make a run fail, and
// they never make one pass. An entry that matches nothing, has expired or no longer fails makes it fail.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case_run.hpp"
#include "harness/json_at.hpp"
#include "harness/relation_result.hpp"

namespace qkcts {

struct KnownFailure {
  std::string cases;                  // glob of slugs of cases and relations; * matches slashes too
  StageSet stages = 0;                // 0: the case as a whole, whichever stages of it fail
  Verdict verdict = Verdict::fail;    // no other one is excused: a crash is none of the deviations that are known
  std::string reason, link, expires;  // YYYY-MM-DD, the last day on which the entry holds
  std::string suite;                  // only in runs of this suite; empty: in all
};

// Throws InputError naming `origin` and the JSON pointer of the first fault.
std::vector<KnownFailure> known_failures_from_json(std::string_view text, std::string_view origin);

enum class KnownFailureState { holds, stale, expired, other_suite };
std::string_view known_failure_state_name(KnownFailureState state);

// What an entry is in one run.
struct KnownFailureUse {
  KnownFailure entry;
  KnownFailureState state = KnownFailureState::holds;
  std::size_t matched = 0;  // cases and relations of the corpus, whether they were selected or not
};

// As in run.json, which the schema has admitted.
Json known_failures_json(const std::vector<KnownFailureUse>& uses);
std::vector<KnownFailureUse> known_failure_uses_from_json(const JsonAt& at);

// `today` as YYYY-MM-DD; `names` are all the slugs of the corpus, of cases and relations.
std::vector<KnownFailureUse> known_failure_uses(const std::vector<KnownFailure>& entries, const std::string& suite,
                                                const std::string& today, const std::vector<std::string>& names);

// Failing stages that an entry knows become xfail; stages that pass against an entry become xpass. `asked` are the
// stages that the run asks for: of a case in part nobody can say that it passes as a whole.
void apply_known_failures(CaseResult& result, const std::vector<KnownFailureUse>& uses, StageSet asked);
void apply_known_failures(RelationResult& result, const std::vector<KnownFailureUse>& uses);

// One line for each entry that makes the run fail by itself.
std::vector<std::string> known_failure_faults(const std::vector<KnownFailureUse>& uses);

}  // namespace qkcts
