// SPDX-License-Identifier: Apache-2.0
// The suites of later clauses must tell each clause from its neighbours, or a kernel that takes a clause and ignores it
// passes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "conformance/contract_field.hpp"
#include "conformance/machine_profile.hpp"
#include "conformance/neighbour.hpp"
#include "reference/separation.hpp"
#include "vectors/format_version.hpp"
#include "vectors/generate.hpp"
#include "vectors/row_selection.hpp"

namespace qkcts {
namespace {

// "q_norm.multiplier=1" -> "q_norm.multiplier"
std::string path_of(const Neighbour& neighbour) {
  return neighbour.name.substr(0, neighbour.name.find('='));
}

// Where tables are inputs, how they were made cannot be seen in what a kernel makes of them (QK-ROPE-10, QK-ROPE-11).
bool made_tables(const qkcts_contract& terms, const std::string& path) {
  constexpr std::string_view makers[] = {"rope.scaling", "rope.factor",      "rope.original_length", "rope.low",
                                         "rope.high",    "rope.untruncated", "rope.attention_factor"};
  return terms.rotation.angles == QKCTS_ANGLES_TABLE &&
         std::find(std::begin(makers), std::end(makers), path) != std::end(makers);
}

// In these sections everything is of a later version, whether a value stands at its default or not.
bool of_later_section(std::string_view path) {
  constexpr std::string_view sections[] = {"v_norm.", "projection.", "q_input_norm.", "k_input_norm."};
  return std::any_of(std::begin(sections), std::end(sections),
                     [&](std::string_view section) { return path.compare(0, section.size(), section) == 0; });
}

// Paths of what the contract says beyond ABI 1.0.
std::set<std::string> later_paths(const qkcts_contract& terms) {
  std::set<std::string> paths;
  for (const FieldValue& value : contract_field_values(terms)) {
    const bool later = value.by_claim || of_later_section(value.path);
    if (!later || made_tables(terms, value.path)) continue;
    paths.insert(value.path);
    if (value.path.find("_norm.") == 1) paths.insert(value.path.substr(2));  // both sides at once: "norm.multiplier"
  }
  return paths;
}

// For "contract neighbour", the largest separation over the binary32 cases of the suite that both can be computed of.
std::map<std::string, double> largest_separations(const Plan& plan) {
  std::map<std::string, double> largest;
  for (const PlannedCase& planned : plan.cases) {
    if (planned.format != Format::binary32) continue;
    const Case c = make_case(planned);
    const std::set<std::string> paths = later_paths(planned.contract.terms);
    std::optional<Separator> separator;
    for (const Neighbour& neighbour : neighbours(planned.contract.terms)) {
      if (paths.count(path_of(neighbour)) == 0) continue;
      const std::optional<Case> other = case_under(c, neighbour.terms);
      if (!other) continue;
      double& found = largest[planned.contract.name + " " + neighbour.name];
      if (found > 1) continue;
      if (!separator)
        separator.emplace(c, select_rows(planned.contract.terms, planned.shape, planned.rows, planned.seed),
                          std::vector<Profile>{shipped_profile("f32")});
      try {
        found = std::max(found, largest_separation(separator->quickly_to(*other), 0).value);
      } catch (const InputError&) {
        // It has no values here: a row of zeros without an epsilon, an overflow that does not saturate. Another case
        // has.
      }
    }
  }
  return largest;
}

TEST(ClauseSeparation, TheSuiteTellsEveryLaterClauseFromItsNeighbours) {
  const std::set<std::string> equal = {
      "clause_alibi_relative score.alibi=symmetric",          // beside causal j <= i', where m (j - i') = -m |j - i'|
      "clause_hidden_excluded softmax.hidden_values=finite",  // the same function wherever both have a value
      "clause_hidden_excluded_rows softmax.hidden_values=finite",
      "clause_hidden_excluded_rows softmax.hidden_values=propagated"  // numbers alone: the suite `special` has others
  };
  std::set<std::string> contracts;
  for (const auto& [name, separation] : largest_separations(load_plan("clauses"))) {
    if (equal.count(name) != 0) {
      EXPECT_EQ(separation, 0) << name;
      continue;
    }
    EXPECT_GT(separation, 1) << name;
    contracts.insert(name.substr(0, name.find(' ')));
  }
  // All but those that differ from their neighbours in how tables were made, or in which inputs there are.
  EXPECT_GE(contracts.size(), 18U);
}

TEST(ClauseSeparation, TheSpecialSuiteTellsHiddenValuesThatTakePartFromThoseThatDoNot) {
  std::size_t pairs = 0;
  for (const PlannedCase& planned : load_plan("special").cases) {
    if (planned.family != "nan_hidden" || planned.format != Format::binary32) continue;
    const Case c = make_case(planned);
    const StageRows rows = select_rows(planned.contract.terms, planned.shape, planned.rows, planned.seed);
    const Separator separator(c, rows, {shipped_profile("f32")});
    for (const Neighbour& neighbour : neighbours(planned.contract.terms)) {
      if (path_of(neighbour) != "softmax.hidden_values") continue;
      const double found = largest_separation(separator.to(case_under(c, neighbour.terms).value()), 0).value;
      // `finite` says nothing of a hidden value that is none.
      EXPECT_EQ(found > 1, !neighbour.name.ends_with("=finite")) << planned.contract.name << " " << neighbour.name;
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, 4U);
}

TEST(ClauseSeparation, TheSuiteOfPointsTellsEveryPointAndClauseFromItsNeighbours) {
  std::set<std::string> contracts;
  for (const auto& [name, separation] : largest_separations(load_plan("points"))) {
    if (name.find("rounding.saturate") != std::string::npos) continue;  // another domain, no other values
    if (name.find(".variance=") != std::string::npos) continue;         // one real number, two budgets
    EXPECT_GT(separation, 1) << name;
    contracts.insert(name.substr(0, name.find(' ')));
  }
  EXPECT_GE(contracts.size(), 26U);
}

}  // namespace
}  // namespace qkcts
