// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_candidate.hpp"

#include <cstring>
#include <set>

#include <fmt/format.h>

#include "conformance/contract_field.hpp"
#include "conformance/neighbour.hpp"
#include "harness/diagnose_fault.hpp"
#include "harness/diagnose_number.hpp"
#include "harness/diagnose_slip.hpp"

namespace qkcts {
namespace {

std::string bytes_of(const qkcts_contract& terms) {
  return {reinterpret_cast<const char*>(&terms), sizeof terms};
}

// What of `changed` differs from `own` is written to `result`; false if it stands there already, changed otherwise. No
// member is smaller than a word, and a number that differs in one word is taken whole.
bool take_changes(const qkcts_contract& own, const qkcts_contract& changed, qkcts_contract& result) {
  constexpr std::size_t count = sizeof(qkcts_contract) / sizeof(std::uint32_t);
  using Words = std::array<std::uint32_t, count>;
  const auto words = [](const qkcts_contract& terms) {
    Words w{};
    std::memcpy(w.data(), &terms, sizeof terms);
    return w;
  };
  const Words before = words(own), wanted = words(changed);
  Words made = words(result);
  for (std::size_t i = 0; i < count; ++i) {
    if (wanted[i] == before[i]) continue;
    if (made[i] != before[i] && made[i] != wanted[i]) return false;
    made[i] = wanted[i];
  }
  std::memcpy(&result, made.data(), sizeof result);
  return true;
}

// An offset of 0 is another word for top-left.
bool is_top_left_by_offset(const qkcts_contract& own, const qkcts_contract& other) {
  return own.mask.alignment != QKCTS_OFFSET && other.mask.alignment == QKCTS_OFFSET && other.mask.offset == 0;
}

}  // namespace

std::vector<Candidate> candidates(const Case& c) {
  const qkcts_contract own = normalised(c.contract.terms);
  std::vector<Candidate> list;
  std::set<std::string> known = {bytes_of(own)};
  for (const std::vector<Neighbour>& source : {neighbours(own), usual_numbers(own, c.shape)})
    for (const Neighbour& neighbour : source)
      if (!is_top_left_by_offset(own, neighbour.terms) && known.insert(bytes_of(neighbour.terms)).second)
        list.push_back({neighbour.name, neighbour.terms, {}, nullptr});
  // What others got wrong before. Rounding is no other contract: a kernel that is too coarse is not one that rounds as
  // some contract asks.
  for (const CatalogueMutant& mutant : mutant_catalogue()) {
    if (mutant.kind == MutantKind::round) continue;
    const std::optional<qkcts_contract> terms = contract_of(mutant, own, &c.shape);
    if (terms && known.insert(bytes_of(normalised(*terms))).second)
      list.push_back({mutant.id, normalised(*terms), {}, nullptr});
  }
  const std::vector<InputSlip> slips = input_slips(c);
  for (const InputSlip& slip : slips) list.push_back({slip_name(slip), own, {slip}, nullptr});
  // q and k alike, cos and sin alike.
  for (std::size_t i = 0; i < slips.size(); ++i)
    for (std::size_t j = i + 1; j < slips.size(); ++j)
      if (slips[i].clause == slips[j].clause && slips[i].kind == slips[j].kind && slips[i].input != slips[j].input)
        list.push_back({slip_name(slips[i]) + ", " + slip_name(slips[j]), own, {slips[i], slips[j]}, nullptr});
  for (const CatalogueMutant* fault : nameable_faults()) list.push_back({fault->id, own, {}, fault});
  return list;
}

std::optional<Candidate> joined(const qkcts_contract& own_terms, const Candidate& a, const Candidate& b) {
  const qkcts_contract own = normalised(own_terms);
  if (a.fault != nullptr && b.fault != nullptr) return std::nullopt;
  Candidate both{a.name + " and " + b.name, own, a.slips, a.fault != nullptr ? a.fault : b.fault};
  if (!take_changes(own, a.terms, both.terms) || !take_changes(own, b.terms, both.terms)) return std::nullopt;
  for (const InputSlip& slip : b.slips) {
    for (const InputSlip& other : a.slips)
      if (other.input == slip.input) return std::nullopt;
    both.slips.push_back(slip);
  }
  both.terms = normalised(both.terms);
  if (!contract_fault(both.terms).empty()) return std::nullopt;
  if (both.fault != nullptr) return both;
  const std::string bytes = bytes_of(both.terms);
  const bool is_new = a.slips.empty() && b.slips.empty() ? bytes != bytes_of(a.terms) && bytes != bytes_of(b.terms)
                                                         : bytes != bytes_of(own) || both.slips.size() > 1;
  return is_new ? std::optional(both) : std::nullopt;
}

std::vector<const CatalogueMutant*> entries_of(const Case& c, const Candidate& candidate) {
  if (candidate.fault != nullptr) return {candidate.fault};
  std::vector<const CatalogueMutant*> entries;
  if (!candidate.slips.empty()) return entries;
  const std::string bytes = bytes_of(normalised(candidate.terms));
  for (const CatalogueMutant& mutant : mutant_catalogue()) {
    const std::optional<qkcts_contract> terms = contract_of(mutant, c.contract.terms, &c.shape);
    if (terms && bytes_of(normalised(*terms)) == bytes) entries.push_back(&mutant);
  }
  return entries;
}

std::optional<Case> case_of(const Case& c, const Candidate& candidate) {
  if (candidate.fault != nullptr && candidate.slips.empty() &&
      bytes_of(candidate.terms) == bytes_of(normalised(c.contract.terms)))
    return c;
  if (candidate.slips.empty()) return case_under(c, candidate.terms);
  Case other = c;
  for (const InputSlip& slip : candidate.slips)
    if (!apply(slip, c, other)) return std::nullopt;
  return case_under(other, candidate.terms);
}

std::vector<ClauseDifference> changes_of(const Contract& own, const Candidate& candidate) {
  Contract other = own;
  other.terms = candidate.terms;
  std::vector<ClauseDifference> changes = contract_differences(own, other);
  if (candidate.fault != nullptr)
    changes.push_back({candidate.fault->clause, "kernel", candidate.fault->contract, candidate.fault->mutant});
  for (const InputSlip& slip : candidate.slips)
    changes.push_back({slip.clause, "input " + std::string(input_name(slip.input)), "as it stands", slip_text(slip)});
  return changes;
}

}  // namespace qkcts
