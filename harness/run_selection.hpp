// SPDX-License-Identifier: Apache-2.0
// Which tests a run has: the cases that are selected, their stages, and the relations between them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/gtest_registration.hpp"
#include "harness/relation_session.hpp"
#include "harness/run_request.hpp"

namespace qkcts {

// In the order of the corpus, which is that of the texts. They are names that the corpus holds, as all others below.
std::vector<std::string_view> selected_slugs(const CorpusReader& corpus, const RunRequest& request);

// The cases of this share; of the relations those stay whose last case is among them.
std::vector<std::string_view> shared_out(std::vector<std::string_view> slugs, const CaseShare& share,
                                         RelationSession& relations);

// Of all cases and relations of the corpus.
std::vector<std::string> all_names(const CorpusReader& corpus);

// They name what `slugs` and `relations` hold. Each relation comes right after the last of its cases, so that their
// outputs are not kept for long. Throws AdapterError and UsageError where nobody can judge by the profile that
// describe() or --profile names.
std::vector<TestGroup> stage_tests(const CorpusReader& corpus, const std::vector<std::string_view>& slugs,
                                   const std::vector<Relation>& relations, const RunRequest& request,
                                   const AdapterDescription& description);

}  // namespace qkcts
