// SPDX-License-Identifier: Apache-2.0
#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

std::string_view verdict_text(Expectation expectation) {
  switch (expectation) {
    case Expectation::crash:
      return "error(crash)";
    case Expectation::timeout:
      return "error(timeout)";
    case Expectation::unwritten:
      return "error(unwritten)";
    case Expectation::overrun:
      return "error(overrun)";
    case Expectation::underrun:
      return "error(underrun)";
    case Expectation::input_modified:
      return "error(input_modified)";
    case Expectation::protocol:
      return "error(protocol)";
    default:
      return "fail";
  }
}

std::string_view stage_text(qkcts_stage stage) {
  constexpr std::string_view names[QKCTS_STAGE_COUNT] = {"q_norm", "k_norm", "q_rope", "k_rope", "scores",
                                                         "capped", "masked", "probs",  "lse",    "output",
                                                         "q_proj", "k_proj", "v_norm"};
  return names[stage];
}

std::vector<const Mutant*> catalogue() {
  std::vector<const Mutant*> all;
  for (const std::span<const Mutant> group :
       {norm_mutants(), rope_mutants(), score_mutants(), mask_mutants(), softmax_mutants(), output_mutants(),
        misdeed_mutants(), range_mutants(), rotation_mutants(), logit_mutants(), region_mutants(), sink_mutants(),
        value_mutants(), projection_mutants(), vector_rounding_mutants(), row_rounding_mutants(), special_mutants(),
        tile_mutants()}) {
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
  qkcts_contract terms = qkcts_known_contract(args.contract);
  if (chosen.edit != nullptr) chosen.edit(terms, *args.shape);
  (args.inputs->format == QKCTS_BINARY64 ? chosen.attention.binary64 : chosen.attention.binary32)(terms, args);
  return chosen.misdeed == nullptr ? QKCTS_OK : chosen.misdeed(args);
}

}  // namespace qkcts::mutants
