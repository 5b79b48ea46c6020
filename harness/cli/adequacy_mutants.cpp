// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/adequacy_mutants.hpp"

#include <fmt/format.h>

#include "conformance/clause.hpp"
#include "conformance/mutant_catalogue.hpp"
#include "harness/cli/separation.hpp"
#include "harness/usage_error.hpp"

namespace qkcts::cli {

std::vector<AdequacyMutant> adequacy_mutants(const std::string& mutants, const std::string& classes) {
  std::vector<AdequacyMutant> list;
  for (const CatalogueMutant& mutant : mutant_catalogue()) {
    if (mutant.fields.empty() || !glob_matches(mutants, mutant.id)) continue;
    const std::string kind(mutant_kind_name(mutant.kind));
    if (!glob_matches(classes, kind) && !glob_matches(classes, mutant.clause) &&
        !glob_matches(classes, std::string(clause_group(mutant.clause))))
      continue;
    list.push_back({mutant.id, mutant.clause, kind, mutant.contract, mutant.mutant, mutant.invisible,
                    [&mutant](const qkcts_contract& asked, const qkcts_shape& shape) {
                      return contract_of(mutant, asked, &shape);
                    }});
  }
  if (list.empty())
    throw UsageError(fmt::format("no mutant of the catalogue that a contract expresses matches{}{}",
                                 mutants.empty() ? "" : " --mutant " + mutants,
                                 classes.empty() ? "" : " --class " + classes));
  return list;
}

}  // namespace qkcts::cli
