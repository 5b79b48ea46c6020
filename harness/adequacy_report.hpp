// SPDX-License-Identifier: Apache-2.0
// The kill matrix in writing.
#pragma once

#include <string>

#include "conformance/json.hpp"
#include "harness/adequacy.hpp"

namespace qkcts {

// One line per mutant with the largest separation under each profile and the case where it stands; below it what is not
// killed, with the reason, and the clauses that no case separates.
std::string adequacy_text(const AdequacyReport& report);
// The same as tables of Markdown, with the digests of the corpora.
std::string adequacy_markdown(const AdequacyReport& report);
// One line per mutant and profile, with a head.
std::string adequacy_csv(const AdequacyReport& report);
Json adequacy_json(const AdequacyReport& report);

// "2.3e+04", "inf", "0".
std::string separation_text(double separation);

}  // namespace qkcts
