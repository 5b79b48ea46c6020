// SPDX-License-Identifier: Apache-2.0
#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

std::vector<const Mutant*> catalogue() {
  std::vector<const Mutant*> all;
  for (const std::span<const Mutant> group : {norm_mutants(), rope_mutants(), score_mutants(), mask_mutants(),
                                              softmax_mutants(), output_mutants(), misdeed_mutants()}) {
    for (const Mutant& mutant : group) all.push_back(&mutant);
  }
  return all;
}

const Mutant* find_mutant(std::string_view id) {
  for (const Mutant* mutant : catalogue())
    if (mutant->id == id) return mutant;
  return nullptr;
}

qkcts_status run_mutant(const Mutant* mutant, const qkcts_run_args& args) {
  static constexpr Mutant control{"none", "", QKCTS_STAGE_OUTPUT, ""};
  const Mutant& chosen = mutant == nullptr ? control : *mutant;
  qkcts_contract terms = *args.contract;
  if (chosen.edit != nullptr) chosen.edit(terms, *args.shape);
  (args.inputs->format == QKCTS_BINARY64 ? chosen.attention.binary64 : chosen.attention.binary32)(terms, args);
  return chosen.misdeed == nullptr ? QKCTS_OK : chosen.misdeed(args);
}

}  // namespace qkcts::mutants
