// SPDX-License-Identifier: Apache-2.0
#include "harness/adequacy.hpp"

#include <algorithm>

#include "conformance/json_schema.hpp"

namespace qkcts {

std::string_view kill_verdict_name(KillVerdict verdict) {
  switch (verdict) {
    case KillVerdict::killed:
      return "killed";
    case KillVerdict::not_distinguished:
      return "not distinguished";
    case KillVerdict::unexplained:
      return "not distinguished, unexplained";
    case KillVerdict::missed:
      return "missed";
    case KillVerdict::stale:
      return "killed, though listed";
    case KillVerdict::identical:
      return "proven indistinguishable";
  }
  return "";
}

KillVerdict kill_verdict(const AdequacyCell& cell) {
  if (cell.best.separation > 1) return cell.excuse.empty() ? KillVerdict::killed : KillVerdict::stale;
  if (cell.beyond > 1) return KillVerdict::missed;
  if (cell.cases > 0 && cell.identities == cell.cases) return KillVerdict::identical;
  return cell.excuse.empty() ? KillVerdict::unexplained : KillVerdict::not_distinguished;
}

KillCount count_kills(const AdequacyReport& report, std::string_view profile) {
  KillCount count;
  for (const AdequacyRow& row : report.rows)
    for (const AdequacyCell& cell : row.cells) {
      if (cell.profile != profile) continue;
      const KillVerdict verdict = kill_verdict(cell);
      ++count.taken;
      if (cell.best.separation > 1) ++count.killed;
      if (verdict == KillVerdict::not_distinguished) ++count.not_distinguished;
      if (verdict == KillVerdict::identical) ++count.identical;
      if (is_inadequate(verdict)) ++count.inadequate;
    }
  return count;
}

std::vector<std::string> mutants_without_case(const AdequacyReport& report) {
  std::vector<std::string> ids;
  for (const AdequacyRow& row : report.rows)
    if (row.cells.empty()) ids.push_back(row.id);
  return ids;
}

std::vector<std::string> unseparated_clauses(const AdequacyReport& report) {
  std::vector<std::string> found;
  for (const ClauseSeparation& clause : report.clauses) {
    double largest = 0;
    bool is_there = false;
    for (const std::optional<SeparatingPlace>& best : clause.best) {
      if (!best) continue;
      is_there = true;
      largest = std::max(largest, best->separation);
    }
    if (is_there && largest <= 1) found.push_back(clause.clause);
  }
  return found;
}

int adequacy_exit_code(const AdequacyReport& report) {
  for (const AdequacyRow& row : report.rows) {
    if (row.cells.empty()) return 1;
    for (const AdequacyCell& cell : row.cells)
      if (is_inadequate(kill_verdict(cell))) return 1;
  }
  return 0;
}

std::vector<Undistinguished> undistinguished_from_json(std::string_view text, std::string_view origin) {
  const Json document = parse_json(text, origin);
  require_schema(document, "undistinguished", origin);
  std::vector<Undistinguished> list;
  for (const Json& entry : document.at("undistinguished"))
    for (const Json& profile : entry.at("profiles")) list.push_back({entry.at("mutant"), profile, entry.at("reason")});
  return list;
}

}  // namespace qkcts
