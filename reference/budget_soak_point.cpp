// SPDX-License-Identifier: Apache-2.0
#include "reference/budget_soak_point.hpp"

namespace qkcts {
namespace {

class RandomPoints {
 public:
  // Most points of a contract have one format; sparse contracts have few of them.
  explicit RandomPoints(SoakRandom& random)
      : random_(random),
        usual_(random.choose<std::uint32_t>(
            {QKCTS_BFLOAT16, QKCTS_BFLOAT16, QKCTS_BINARY16, QKCTS_E4M3FN, QKCTS_E5M2, QKCTS_BINARY32})),
        one_in_(random.choose<std::uint64_t>({1, 2, 4, 8})) {}

  std::uint32_t format() {
    return random_.below(4) != 0 ? usual_
                                 : random_.choose<std::uint32_t>({QKCTS_BFLOAT16, QKCTS_BINARY16, QKCTS_BINARY32,
                                                                  QKCTS_E4M3FN, QKCTS_E5M2, QKCTS_BINARY64});
  }
  void perhaps(std::uint32_t& point, bool exists) {
    if (exists && random_.below(one_in_) == 0) {
      point = format();
    }
  }

  void vary(qkcts_vector_rounding& points, const qkcts_norm& norm, const qkcts_norm_range& range, bool projects,
            bool turns) {
    const bool transformed = transforms(norm, range);
    perhaps(points.projection, projects);
    perhaps(points.norm, transformed);
    if (points.norm != 0) {
      perhaps(points.root, norm.applied != 0);
      perhaps(points.reciprocal, norm.applied != 0);
      perhaps(points.unit, norm.applied != 0);
    }
    perhaps(points.rope, turns);
    perhaps(points.rope_product, points.rope != 0);
  }

  void vary(qkcts_input_rounding& points, bool exists) {
    perhaps(points.norm, exists);
    perhaps(points.unit, points.norm != 0);
  }

 private:
  SoakRandom& random_;
  std::uint32_t usual_;
  std::uint64_t one_in_;
};

}  // namespace

void vary_points(SoakRandom& random, qkcts_contract& terms) {
  qkcts_rounding& rounding = terms.rounding;
  const bool projects = terms.projection.form != QKCTS_PROJECTION_NONE;
  const bool turns = terms.rope.order != QKCTS_ROPE_NONE;
  RandomPoints points(random);
  points.vary(rounding.q, terms.q_norm, terms.q_range, projects, turns);
  points.vary(rounding.k, terms.k_norm, terms.k_range, projects, turns);
  points.vary(rounding.v, terms.v_norm, terms.v_range, false, false);
  points.vary(rounding.q_input, projects && terms.projection.q_input.applied != 0);
  points.vary(rounding.k_input, projects && terms.projection.k_input.applied != 0);
  points.perhaps(rounding.scaled_q, true);
  points.perhaps(rounding.product, rounding.scaled_q == 0);
  points.perhaps(rounding.scores, true);
  points.perhaps(rounding.capped, (stages_of(terms) & bit(QKCTS_STAGE_CAPPED)) != 0);
  points.perhaps(rounding.probs, true);
  points.perhaps(rounding.output, true);
  rounding.saturate = has_rounding_points(rounding) ? static_cast<std::uint32_t>(random.below(2)) : 0;
}

Contract random_contract_with_points(SoakRandom& random) {
  for (;;) {
    Contract contract = random_contract(random);
    contract.terms.rounding = {};
    vary_points(random, contract.terms);
    contract.name += "_points";
    if (has_rounding_points(contract.terms.rounding) && contract_fault(contract.terms).empty()) {
      return contract;
    }
  }
}

}  // namespace qkcts
