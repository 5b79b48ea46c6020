// SPDX-License-Identifier: Apache-2.0
// The kill matrix: of each wrong contract and machine profile, the case that tells it best from the right one, and what
// follows. Data and rules only; harness/cli/adequacy_hunt.* finds the separations. docs/adequacy.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract.hpp"

namespace qkcts {

// An element of a case: a kernel that computes the wrong contract within its budgets is off there by `separation`
// times both budgets.
struct SeparatingPlace {
  double separation = 0;  // a lower bound; infinite where classes of values differ
  std::string slug;
  std::size_t corpus = 0;  // of AdequacyReport::corpora
  qkcts_stage stage = QKCTS_STAGE_OUTPUT;
  std::uint32_t row = 0;
  std::int64_t column = 0;
};

// Of one mutant under one profile.
struct AdequacyCell {
  std::string profile;
  SeparatingPlace best;
  std::size_t cases = 0;       // that judge by the profile, and whose contract and inputs the mutant can be put to
  std::size_t compared = 0;    // of these, before the search stopped
  std::size_t refused = 0;     // of those, without values or proofs under the mutant
  std::size_t identities = 0;  // of `cases`: P7 says that both contracts have the same values
  // Found outside of the corpora, by --beyond or --search: what these could tell apart, and do not.
  double beyond = 0;
  std::string beyond_where;
  std::string excuse;  // why it is on the list of those that nothing was found for; empty: it is not
};

enum class KillVerdict : std::uint8_t {
  killed,             // separation above 1
  not_distinguished,  // nothing found separates it, and the list says why
  unexplained,        // nothing found separates it, and nothing says why
  missed,             // something outside of the corpora separates it
  stale,              // killed, though the list says that nothing was found
  identical,          // proven: every case is an identity
};
std::string_view kill_verdict_name(KillVerdict verdict);
KillVerdict kill_verdict(const AdequacyCell& cell);
// Does it make the exit code 1?
constexpr bool is_inadequate(KillVerdict verdict) {
  return verdict == KillVerdict::unexplained || verdict == KillVerdict::missed || verdict == KillVerdict::stale;
}

struct AdequacyRow {
  std::string id, clause, kind, right, wrong, invisible;
  std::vector<AdequacyCell> cells;  // of the profiles that judge some case; none: no case takes the mutant
};

// How surely any case tells any neighbouring contract that differs in this clause.
struct ClauseSeparation {
  std::string clause;
  std::vector<std::optional<SeparatingPlace>> best;  // by profile; nothing where no case has the clause
};

struct AdequacyCorpus {
  std::string path, suite, digest;
  std::size_t cases = 0;
};

struct AdequacyReport {
  std::vector<AdequacyCorpus> corpora;
  std::vector<std::string> profiles;  // columns
  std::vector<AdequacyRow> rows;
  std::vector<ClauseSeparation> clauses;
  std::string effort;  // how far the search went, one line
};

struct KillCount {
  std::size_t killed = 0, not_distinguished = 0, inadequate = 0, identical = 0, taken = 0;
};
KillCount count_kills(const AdequacyReport& report, std::string_view profile);

// Mutants that no case takes.
std::vector<std::string> mutants_without_case(const AdequacyReport& report);
// Clauses that some case has, and that no case separates under the profile that tells it best.
std::vector<std::string> unseparated_clauses(const AdequacyReport& report);

// 0; or 1 where some cell is inadequate, or no case takes some mutant.
int adequacy_exit_code(const AdequacyReport& report);

// A pair of mutant and profile for which a search found nothing, and why.
struct Undistinguished {
  std::string mutant, profile, reason;  // the first two are globs
};
// conformance/undistinguished.json, or a file of its schema. Throws InputError.
std::vector<Undistinguished> undistinguished_from_json(std::string_view text, std::string_view origin);

}  // namespace qkcts
