// SPDX-License-Identifier: Apache-2.0
// The budgets attacked: legal implementations must never be rejected, and some must come near the bound.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include <fmt/format.h>

#include "reference/attention.hpp"
#include "reference/budget_soak_case.hpp"
#include "reference/legal_variant.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t n) {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % n;
  }
  template <typename Enum>
  Enum choose(int count) {
    return static_cast<Enum>(below(static_cast<std::uint64_t>(count)));
  }

 private:
  std::uint64_t state_;
};

LegalVariant random_variant(Random& random) {
  LegalVariant v;
  v.sum = random.choose<LegalVariant::Sum>(5);
  v.variance = random.choose<LegalVariant::Variance>(4);
  v.root = random.choose<LegalVariant::Root>(3);
  v.association = random.choose<LegalVariant::Association>(3);
  v.scale = random.choose<LegalVariant::Scale>(4);
  v.base = random.choose<LegalVariant::Base>(5);
  v.softmax = random.choose<LegalVariant::Softmax>(4);
  v.order = random.choose<LegalVariant::Order>(2);
  v.normalise = random.choose<LegalVariant::Normalise>(2);
  v.quotient = random.choose<LegalVariant::Quotient>(2);
  v.row_sum = random.choose<LegalVariant::RowSum>(2);
  v.functions = random.choose<LegalVariant::Functions>(5);
  v.block = std::array{1, 2, 5, 16}[random.below(4)];
  v.lazy = random.below(2) == 0;
  v.store_weights = random.below(4) != 0;
  v.target = static_cast<std::uint32_t>(random.below(64));
  return v;
}

struct Worst {
  double ratio = 0;
  std::string where;
};

struct Tally {
  std::map<std::string, Worst> by_stage;                          // "profile stage"
  std::map<std::string, std::map<std::string, Worst>> by_family;  // "profile stage" -> family
  std::uint64_t runs = 0, refused = 0, elements = 0, rejects = 0, mistrusted = 0, domain = 0;
  std::string first_reject;
};

// |got - z| / Delta, z = hi + lo/256 ulp64(hi); the difference of two doubles is exact enough in long double.
double ratio(double got, const ProvenStage& proven, std::size_t i, float delta) {
  const auto fine =
      static_cast<long double>(proven.lo[i]) / 256 * static_cast<long double>(ulp(Format::binary64, proven.hi[i]));
  const long double error = std::fabs((static_cast<long double>(got) - static_cast<long double>(proven.hi[i])) - fine);
  if (error == 0) {
    return 0;
  }
  return static_cast<double>(error / static_cast<long double>(delta));
}

void judge(const Case& c, const ReferenceResult& truth, const std::array<StageBudget, QKCTS_STAGE_COUNT>& budgets,
           const Profile& profile, const LegalVariant& variant, const std::string& family, Tally& tally) {
  const StageValues got = run_legal_variant(c, truth.exact, profile, variant);
  ++tally.runs;
  for (const qkcts_stage stage : all_stages) {
    const ProvenStage& proven = truth.stages[stage];
    for (std::size_t i = 0; i < proven.hi.size(); ++i) {
      if (proven.rule[i] != ElementRule::budget && proven.rule[i] != ElementRule::budget_exact) {
        continue;
      }
      const Trust trust = budgets[stage].trust[i];
      ++tally.elements;
      if (trust == Trust::domain) {
        ++tally.domain;
        continue;
      }
      tally.mistrusted += trust == Trust::mistrusted ? 1 : 0;
      double r = ratio(got[stage][i], proven, i, budgets[stage].delta[i]);
      const double largest = parameters(stage_format(stage, c.inputs.format)).largest;
      if (std::isinf(got[stage][i]) &&
          std::fabs(proven.hi[i]) + static_cast<double>(budgets[stage].delta[i]) >= largest) {
        r = 0;
      }
      if (!(r <= 1)) {
        ++tally.rejects;
        if (tally.first_reject.empty()) {
          tally.first_reject = fmt::format("{} {} {}[{}]: got {} exact {} delta {} r {} variant {}", c.slug,
                                           profile.name, stage_name(stage), i, got[stage][i], proven.hi[i],
                                           budgets[stage].delta[i], r, variant.text());
        }
      }
      const std::string key = profile.name + " " + std::string(stage_name(stage));
      Worst& all = tally.by_stage[key];
      if (r > all.ratio) {
        all = {r, c.slug + " " + variant.text()};
      }
      Worst& here = tally.by_family[key][family];
      here.ratio = std::max(here.ratio, r);
    }
  }
}

void attack(std::uint64_t seed, int cases, int variants, Tally& tally) {
  Random random(seed);
  const std::vector<std::string> contracts = shipped_contracts();
  for (int i = 0; i < cases; ++i) {
    const Contract contract = shipped_contract(contracts[random.below(contracts.size())]);
    const auto format = std::array{Format::binary32, Format::binary32, Format::bfloat16, Format::binary16,
                                   Format::binary64}[random.below(5)];
    const auto family = random.choose<SoakFamily>(soak_family_count);
    qkcts_shape shape{1, 2, 1, 2, 0, 0, 3};
    shape.k_len = static_cast<std::int64_t>(std::array{1, 2, 3, 7, 24, 65}[random.below(6)]);
    shape.head_dim = static_cast<std::int64_t>(std::array{18, 32, 64}[random.below(3)]);
    const Case c = soak_case(contract, format, family, shape, random.below(1u << 30));
    ASSERT_EQ(case_fault(c), "") << c.slug;
    ReferenceResult truth;
    try {
      truth = evaluate(c, every_row(c));
    } catch (const UndecidedError&) {
      ++tally.refused;
      continue;
    } catch (const InputError&) {  // e.g. 0/0 in a norm without epsilon
      ++tally.refused;
      continue;
    }
    for (const Profile& profile : profiles_for(format)) {
      const auto budgets = stage_budgets(c, truth.exact, every_row(c), profile);
      for (int k = 0; k < variants; ++k) {
        judge(c, truth, budgets, profile, random_variant(random), std::string(soak_family_name(family)), tally);
      }
    }
  }
}

void print(const Tally& tally) {
  std::printf("%llu runs, %llu elements, %llu mistrusted, %llu domain, %llu rejects\n",
              static_cast<unsigned long long>(tally.runs), static_cast<unsigned long long>(tally.elements),
              static_cast<unsigned long long>(tally.mistrusted), static_cast<unsigned long long>(tally.domain),
              static_cast<unsigned long long>(tally.rejects));
  for (const auto& [key, worst] : tally.by_stage) {
    std::string best;
    double value = -1;
    for (const auto& [family, w] : tally.by_family.at(key)) {
      if (w.ratio > value) {
        value = w.ratio;
        best = family;
      }
    }
    std::printf("%-24s %.3f %-18s %s\n", key.c_str(), worst.ratio, best.c_str(), worst.where.c_str());
  }
}

TEST(BudgetSoak, LegalVariantsPass) {
  Tally tally;
  const char* cases = std::getenv("QKCTS_SOAK_CASES");
  attack(1, cases != nullptr ? std::atoi(cases) : 200, 12, tally);
  print(tally);
  EXPECT_EQ(tally.rejects, 0u) << tally.first_reject;
}

}  // namespace
}  // namespace qkcts
