// SPDX-License-Identifier: Apache-2.0
// P7 on proven values: which norms commute with the rotation, and which do not.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "vectors/relation_plan.hpp"
#include "vectors/relation_proof.hpp"
#include "vectors/relation_recipe.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

struct Normed {
  const char* contract;
  std::uint32_t statistic;
  std::uint32_t center;
  bool commutes;
};

void PrintTo(const Normed& normed, std::ostream* out) {
  *out << normed.contract << (normed.statistic == QKCTS_SUM_SQUARE ? ", sum of squares" : ", mean square")
       << (normed.center != 0 ? ", centred" : "");
}

PlannedCase planned_with(const Normed& normed, Format format) {
  PlannedCase planned = sample_plan(normed.contract, "gaussian", format, "1,4,2,5,9,16,12");
  for (qkcts_norm* norm : {&planned.contract.terms.q_norm, &planned.contract.terms.k_norm}) {
    norm->statistic = normed.statistic;
    norm->center = normed.center;
  }
  EXPECT_EQ(contract_fault(planned.contract.terms), "");
  return planned;
}

// What the proven values of both orders say against the relation.
std::string contradiction_of(const Normed& normed, Format format) {
  const PlannedCase planned = planned_with(normed, format);
  PlannedCase other = planned;
  relation_recipe(RelationKind::rotation_order).terms(other.contract.terms, Part::second);
  EXPECT_NE(other.contract.terms.rope.order, planned.contract.terms.rope.order);
  std::vector<DroppedProfile> dropped;
  const GoldenCase first = make_golden(planned, dropped), second = make_golden(other, dropped);
  EXPECT_TRUE(dropped.empty());
  Relation relation;
  relation.kind = RelationKind::rotation_order;
  relation.stages = bit(QKCTS_STAGE_SCORES) | bit(QKCTS_STAGE_PROBS) | bit(QKCTS_STAGE_LSE) | bit(QKCTS_STAGE_OUTPUT);
  return relation_contradiction(relation, first, &second);
}

class RotationOrder : public testing::TestWithParam<Normed> {};

TEST_P(RotationOrder, IsIndistinguishableExactlyWhereTheNormTurnsWithTheVector) {
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16}) {
    const std::string found = contradiction_of(GetParam(), format);
    if (GetParam().commutes) {
      EXPECT_EQ(found, "") << parameters(format).name;
    } else {
      EXPECT_NE(found.find("distinguishable"), std::string::npos) << parameters(format).name;
    }
  }
}

// The generator makes no pair where there is no relation.
TEST_P(RotationOrder, RelationIsRefusedElsewhere) {
  const PlannedCase planned = planned_with(GetParam(), Format::binary32);
  const std::string fault =
      relation_recipe(RelationKind::rotation_order).fault(planned.contract.terms, planned.shape, planned.format);
  EXPECT_EQ(fault, GetParam().commutes ? "" : "a mean, a gain or a bias does not turn with the vector");
}

INSTANTIATE_TEST_SUITE_P(Norm, RotationOrder,
                         testing::Values(Normed{"llama4_rms_unweighted", QKCTS_MEAN_SQUARE, 0, true},
                                         Normed{"llama4_rms_unweighted", QKCTS_SUM_SQUARE, 0, true},
                                         Normed{"llama4_rms_unweighted", QKCTS_MEAN_SQUARE, 1, false},
                                         Normed{"qwen3_rmsnorm", QKCTS_MEAN_SQUARE, 0, false},
                                         Normed{"qwen3_rmsnorm", QKCTS_SUM_SQUARE, 0, false}));

}  // namespace
}  // namespace qkcts
