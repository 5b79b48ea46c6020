// SPDX-License-Identifier: Apache-2.0
// QK-SPECIAL attacked: legal implementations of cases with NaN and infinities in them have the classes that are due,
// and judged numbers where nothing is reached; wrong ones do not.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/special_values.hpp"
#include "reference/budget_soak.hpp"

namespace qkcts {
namespace {

void put(Case& c, Input input, std::size_t i, double value) {
  c.inputs.tensors[static_cast<std::size_t>(input)]->set_pattern(i, encode(c.inputs.format, value));
}

// One to three NaNs and infinities, where they may stand.
void spoil(Case& c, SoakRandom& random) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<Input> candidates;
  for (const Input input : {Input::q, Input::k, Input::v, Input::q_x, Input::k_x, Input::q, Input::k, Input::v,
                            Input::q_gain, Input::k_gain, Input::v_gain, Input::q_bias, Input::q_weight, Input::bias})
    if (c.inputs.has(input)) candidates.push_back(input);
  const std::uint64_t count = 1 + random.below(3);
  for (std::uint64_t n = 0; n < count; ++n) {
    const Input input = random.choose(candidates);
    const double value = random.choose<double>({std::nan(""), infinity, -infinity});
    if (input == Input::bias && value == -infinity) continue;
    const Case before = c;
    put(c, input, random.below(c.inputs.at(input).count()), value);
    if (!case_fault(c).empty()) c = before;
  }
}

std::uint64_t wanted_cases() {
  const char* cases = std::getenv("QKCTS_SOAK_CASES");
  return cases != nullptr ? static_cast<std::uint64_t>(std::atoi(cases)) : 150;
}

Case spoiled_case(SoakRandom& random) {
  for (;;) {
    Contract contract = random_contract(random);
    if (hides_keys(contract.terms) && random.below(2) == 0 && contract.terms.mask.empty_row != QKCTS_EMPTY_UNIFORM)
      contract.terms.softmax.hidden_values = QKCTS_HIDDEN_EXCLUDED;
    if (contract.terms.score.bias_order != QKCTS_BIAS_NONE &&
        contract.terms.softmax.hidden_values == QKCTS_HIDDEN_PROPAGATED)
      contract.terms.softmax.hidden_values = QKCTS_HIDDEN_FINITE;  // these implementations do not add their masks
    const auto format = random.choose<Format>(
        {Format::binary32, Format::binary32, Format::bfloat16, Format::binary16, Format::binary64});
    qkcts_shape shape{1, 2, 1, 2, 0, 0, 3};
    shape.k_len = random.choose<std::int64_t>({1, 2, 3, 7, 24});
    shape.head_dim = random.choose<std::int64_t>({2, 6, 18, 32});
    if (contract.terms.rotation.tables == QKCTS_TABLES_PER_HEAD) shape.kv_heads = shape.q_heads;
    if (!shape_fault(contract.terms, shape).empty()) shape.head_dim = 32;
    Case c = soak_case(contract, format, SoakFamily::normal, shape, random.below(1u << 30));
    spoil(c, random);
    if (case_fault(c).empty() && has_special_values(c)) return c;
  }
}

TEST(SpecialSoak, LegalImplementationsPass) {
  SoakTally tally;
  SoakRandom random(31);
  const std::uint64_t cases = wanted_cases();
  for (std::uint64_t i = 0; i < cases; ++i) soak_one(spoiled_case(random), "special", 8, random, tally);
  EXPECT_EQ(tally.rejects, 0u) << tally.first_reject;
  std::printf("%llu runs, %llu by class, %llu numbers, %llu not judged, %llu refused\n",
              static_cast<unsigned long long>(tally.runs), static_cast<unsigned long long>(tally.by_class),
              static_cast<unsigned long long>(tally.elements), static_cast<unsigned long long>(tally.domain),
              static_cast<unsigned long long>(tally.refused));
  EXPECT_GT(tally.by_class, 10000u);
  EXPECT_GT(tally.elements - tally.domain, 10000u);
  EXPECT_LT(tally.refused, cases / 10);
}

}  // namespace
}  // namespace qkcts
