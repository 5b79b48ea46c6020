// SPDX-License-Identifier: Apache-2.0
// Budgets of contracts with rounding points attacked: every rewrite between two points passes, a point that is missing,
// elsewhere or cut off does not, and the bounds are what code attains.
#include "reference/budget_soak_point.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "reference/attention.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

int wanted_cases(int usual) {
  const char* cases = std::getenv("QKCTS_SOAK_CASES");
  return cases != nullptr ? std::atoi(cases) / 2 : usual;
}

TEST(BudgetSoakPoints, LegalImplementationsPass) {
  SoakTally tally;
  soak(41, wanted_cases(200), 8, tally, random_contract_with_points);
  std::printf("%s", tally.text().c_str());
  EXPECT_EQ(tally.rejects, 0u) << tally.first_reject;
  EXPECT_GT(tally.runs, 1000u);
}

// Behind a point there is nothing between a number and its neighbour: legal code attains the bound itself.
TEST(BudgetSoakPoints, BoundsAreAttained) {
  SoakTally tally;
  SoakRandom random(5);
  for (const char* name : {"clause_round_eager", "clause_round_rope", "clause_round_norm_reciprocal",
                           "clause_round_probs", "clause_round_output"}) {
    for (const SoakFamily family :
         {SoakFamily::normal, SoakFamily::absorbed_squares, SoakFamily::saturating, SoakFamily::stored_weights}) {
      for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        const Case c = soak_case(shipped_contract(name), Format::bfloat16, family, {1, 2, 1, 8, 24, 64, 16}, seed);
        ASSERT_EQ(case_fault(c), "") << c.slug;
        soak_one(c, soak_family_name(family), 6, random, tally);
      }
    }
  }
  std::printf("%s", tally.text().c_str());
  EXPECT_EQ(tally.rejects, 0u) << tally.first_reject;
  // A number that may go to its neighbour has one code in a dozen that sends it there: any of the profiles will do.
  const auto attained = [&](qkcts_stage stage) {
    double ratio = 0;
    for (const SoakProfile& profile : soak_profiles(Format::bfloat16)) {
      ratio = std::max(ratio, tally.largest(profile.profile.name, std::string(stage_name(stage))).ratio);
    }
    return ratio;
  };
  for (const qkcts_stage stage : {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_NORM, QKCTS_STAGE_K_ROPE, QKCTS_STAGE_SCORES,
                                  QKCTS_STAGE_PROBS, QKCTS_STAGE_OUTPUT}) {
    EXPECT_GT(attained(stage), 0.9) << stage_name(stage);
  }
}

std::uint64_t rejects(const char* contract, const SoakFault& fault) {
  SoakTally tally;
  SoakRandom random(3);
  const Case c =
      soak_case(shipped_contract(contract), Format::bfloat16, SoakFamily::normal, {1, 2, 1, 6, 24, 32, 16}, 5);
  soak_one(c, "", 4, random, tally, fault);
  EXPECT_EQ(tally.refused, 0u) << contract;
  return tally.rejects;
}

SoakFault changed(void (*change)(qkcts_contract&)) {
  SoakFault fault;
  fault.change = change;
  return fault;
}

// Every point of the eager chain left out, one at a time; some of them somewhere else; and all of them toward zero.
TEST(BudgetSoakPoints, WrongPointsAreRejected) {
  const char* eager = "clause_round_eager";
  EXPECT_EQ(rejects(eager, {}), 0u);
  const std::pair<const char*, void (*)(qkcts_contract&)> faults[] = {
      {"no q_norm_unit", [](qkcts_contract& terms) { terms.rounding.q.unit = 0; }},
      {"no k_norm_unit", [](qkcts_contract& terms) { terms.rounding.k.unit = 0; }},
      {"no q_norm", [](qkcts_contract& terms) { terms.rounding.q.norm = 0; }},
      {"no q_rope_product", [](qkcts_contract& terms) { terms.rounding.q.rope_product = 0; }},
      {"no k_rope", [](qkcts_contract& terms) { terms.rounding.k.rope = terms.rounding.k.rope_product = 0; }},
      {"no scores", [](qkcts_contract& terms) { terms.rounding.scores = 0; }},
      {"no probs", [](qkcts_contract& terms) { terms.rounding.probs = 0; }},
      {"scaled_q for scores",
       [](qkcts_contract& terms) {
         terms.rounding.scores = 0;
         terms.rounding.scaled_q = QKCTS_BFLOAT16;
       }},
      {"reciprocal for unit",
       [](qkcts_contract& terms) {
         terms.rounding.q.unit = 0;
         terms.rounding.q.reciprocal = QKCTS_BFLOAT16;
       }},
      {"binary16 for bfloat16", [](qkcts_contract& terms) { terms.rounding.q.norm = QKCTS_BINARY16; }},
  };
  for (const auto& [name, change] : faults) {
    EXPECT_GT(rejects(eager, changed(change)), 0u) << name;
  }
  SoakFault cut;
  cut.cut_at_points = true;
  EXPECT_GT(rejects(eager, cut), 0u);
  // A root that is rounded beside one that is not; saturation beside none is another clause, not another budget.
  EXPECT_EQ(rejects("clause_round_norm_root", {}), 0u);
  EXPECT_GT(rejects("clause_round_norm_root", changed([](qkcts_contract& terms) { terms.rounding.q.root = 0; })), 0u);
  EXPECT_EQ(rejects("clause_round_norm_reciprocal", {}), 0u);
  EXPECT_GT(
      rejects("clause_round_norm_reciprocal", changed([](qkcts_contract& terms) { terms.rounding.k.reciprocal = 0; })),
      0u);
}

// What declaring the points is worth. A profile that let every rounding of the eager chain happen without a contract
// that says where would have to grant at least this much of an output: u of each of the four roundings of either
// operand and of the score, of the weights and of the result.
double undeclared_output(const Case& c, const ExactStages& exact, std::size_t row, std::size_t d) {
  constexpr double u = 0x1p-8;
  const auto head_dim = static_cast<std::size_t>(c.shape.head_dim);
  const auto k_len = static_cast<std::size_t>(c.shape.k_len);
  const auto width = static_cast<std::size_t>(c.shape.v_head_dim);
  const double* q = exact.values[QKCTS_STAGE_Q_ROPE].data() + row * head_dim;
  const double* p = exact.values[QKCTS_STAGE_PROBS].data() + row * k_len;
  const std::vector<double> v = c.inputs.at(Input::v).values();
  const double o = exact.values[QKCTS_STAGE_OUTPUT][row * width + d];
  double moved = 0, size = 0, shrunk = 0, radius = 0;
  for (std::size_t j = 0; j < k_len; ++j) {
    if (p[j] == 0) {
      continue;
    }
    const double* k = exact.values[QKCTS_STAGE_K_ROPE].data() + j * head_dim;
    double products = 0;
    for (std::size_t i = 0; i < head_dim; ++i) {
      products += std::fabs(q[i] * k[i]);
    }
    const double score = std::fabs(exact.values[QKCTS_STAGE_SCORES][row * k_len + j]);
    const double t = products * 0.11 * (std::pow(1 + u, 8) - 1) + u * score;
    const double apart = std::fabs(v[j * width + d] - o);
    moved += p[j] * std::expm1(t) * apart;
    shrunk += p[j] * std::exp(-t);
    size += p[j] * std::fabs(v[j * width + d]);
    radius = std::max(radius, apart);
  }
  return std::min(moved / shrunk, radius) + u * size + u * std::fabs(o);
}

TEST(BudgetSoakPoints, DeclaredPointsAreWorthAFactor) {
  std::vector<double> zeros;
  double undeclared = 0, declared = 0;
  std::size_t outputs = 0, settled = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Case c = soak_case(shipped_contract("clause_round_eager"), Format::bfloat16, SoakFamily::normal,
                             {1, 1, 1, 16, 64, 64, 16}, seed);
    const ReferenceResult truth = evaluate(c, every_row(c));
    const auto budgets = stage_budgets(c, truth.exact, every_row(c), shipped_profile("bf16_f32acc"));
    for (std::size_t row = 0; row < 16; ++row) {
      for (std::size_t d = 0; d < 16; ++d) {
        const auto delta = static_cast<double>(budgets[QKCTS_STAGE_OUTPUT].delta[row * 16 + d]);
        undeclared += undeclared_output(c, truth.exact, row, d);
        declared += delta;
        ++outputs;
        settled += delta == 0 ? 1 : 0;
      }
    }
    const std::vector<float>& norm = budgets[QKCTS_STAGE_Q_NORM].delta;
    zeros.push_back(static_cast<double>(std::count(norm.begin(), norm.end(), 0.0f)) / static_cast<double>(norm.size()));
  }
  const double share = static_cast<double>(settled) / static_cast<double>(outputs);
  std::printf(
      "budget of an output, mean without points / with them: %.1f; share with budget 0: %.3f; of q_norm: %.4f\n",
      undeclared / declared, share, *std::min_element(zeros.begin(), zeros.end()));
  EXPECT_GT(undeclared / declared, 5);
  EXPECT_GT(share, 0.5);
  EXPECT_GT(*std::min_element(zeros.begin(), zeros.end()), 0.98);
}

}  // namespace
}  // namespace qkcts
