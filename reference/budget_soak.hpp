// SPDX-License-Identifier: Apache-2.0
// Runs legal implementations on hostile cases and keeps the largest error/Delta of every stage.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reference/budget_soak_case.hpp"
#include "reference/legal_variant.hpp"

namespace qkcts {

class SoakRandom {  // SplitMix64
 public:
  explicit SoakRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t n) {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % n;
  }
  template <typename T>
  T choose(const std::vector<T>& values) {
    return values[below(values.size())];
  }
  template <typename Enum>
  Enum choose(int count) {
    return static_cast<Enum>(below(static_cast<std::uint64_t>(count)));
  }

 private:
  std::uint64_t state_;
};

// A profile and the freedom that it leaves to implementations: all of it for a shipped one.
struct SoakProfile {
  Profile profile;
  bool eight_lanes = false;  // sums by eight lanes only, as the profile declares
  int block = 0;             // online blocks of this size only; 0: any
};
std::vector<SoakProfile> soak_profiles(Format format);

LegalVariant random_variant(SoakRandom& random, const SoakProfile& profile);
// A shipped contract, or one of the many that the clauses allow besides.
Contract random_contract(SoakRandom& random);

struct Worst {
  double ratio = 0;
  std::string where;
};

struct SoakTally {
  // profile, stage -> family -> largest error/Delta
  std::map<std::pair<std::string, std::string>, std::map<std::string, Worst>> worst;
  std::uint64_t runs = 0, elements = 0, rejects = 0, mistrusted = 0, domain = 0, refused = 0;
  std::uint64_t by_class = 0;  // elements of which the class alone is judged
  std::string first_reject;

  Worst largest(const std::string& profile, const std::string& stage) const;
  std::string text() const;  // the sharpness table
};

// How the implementation under attack differs from the contract that judges it; legal if it changes nothing.
struct SoakFault {
  double eps_factor = 1, scale_factor = 1, weight_factor = 1;
  bool drop_last_key = false;
  void (*change)(qkcts_contract&) = nullptr;  // any other clause
  bool cut_at_points = false;                 // rounding points toward zero
};

// Judges `variants` implementations of the case by every profile of its format.
// `terms` are those that the budgets count.
void soak_one(const Case& c, std::string_view family, int variants, SoakRandom& random, SoakTally& tally,
              const SoakFault& fault = {}, TermSet terms = all_budget_terms);

// `cases` random cases of random contracts.
void soak(std::uint64_t seed, int cases, int variants, SoakTally& tally,
          Contract (*contract)(SoakRandom&) = random_contract);

}  // namespace qkcts
