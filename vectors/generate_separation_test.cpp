// SPDX-License-Identifier: Apache-2.0
// The suite of clauses must tell each clause from its neighbours, or a kernel that takes a clause and ignores it
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

// Paths of what the contract says beyond ABI 1.0.
std::set<std::string> later_paths(const qkcts_contract& terms) {
  std::set<std::string> paths;
  for (const FieldValue& value : contract_field_values(terms)) {
    if (!value.by_claim || made_tables(terms, value.path)) continue;
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
      found = std::max(found, largest_separation(separator->to(*other), 0).value);
    }
  }
  return largest;
}

TEST(ClauseSeparation, TheSuiteTellsEveryLaterClauseFromItsNeighbours) {
  const std::set<std::string> equal = {
      "clause_alibi_relative score.alibi=symmetric",         // beside causal j <= i', where m (j - i') = -m |j - i'|
      "clause_hidden_excluded softmax.hidden_values=finite"  // the same function wherever both have a value
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

}  // namespace
}  // namespace qkcts
