// SPDX-License-Identifier: Apache-2.0
#include "vectors/eps_sweep.hpp"

#include <gtest/gtest.h>

namespace qkcts {
namespace {

TEST(EpsSweep, ARangeHoldsTheDecimalNumbersThemselves) {
  EXPECT_EQ(eps_values("0"), std::vector<double>{0});
  EXPECT_EQ(eps_values("1e-6"), std::vector<double>{1e-6});
  EXPECT_EQ(eps_values("1e-12..1e-3"),
            (std::vector<double>{1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3}));
  EXPECT_EQ(eps_values("0.003..1"), (std::vector<double>{0.003, 0.03, 0.3})) << "the end is not passed";
  EXPECT_EQ(eps_values("2.5e-7..2.5e-6"), (std::vector<double>{2.5e-7, 2.5e-6}));
  EXPECT_EQ(eps_values("7..7"), std::vector<double>{7});
  EXPECT_EQ(eps_values("5e-324..1e308").size(), 632U) << "ends where numbers end";
}

TEST(EpsSweep, NonsenseIsRefusedWithItsText) {
  for (const char* text : {"", "nan", "inf", "-1", "-0", "1e-3x", "..", "1..", "..1", "1e-3..1e-6", "0..1", "1..inf",
                           "1..2..3", "1e999", "1 "}) {
    try {
      static_cast<void>(eps_values(text));
      ADD_FAILURE() << text << " is accepted";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("\"") + text + "\""), std::string::npos) << error.what();
    }
  }
}

TEST(EpsSweep, PlacesByNameAndAll) {
  EXPECT_EQ(eps_placements("all").size(), 4U);
  EXPECT_EQ(eps_placements("max_root"), std::vector<qkcts_root>{QKCTS_MAX_ROOT});
  EXPECT_THROW(eps_placements("outside"), InputError);
}

TEST(EpsSweep, NamesSayWhatIsChanged) {
  const Contract contract = shipped_contract("clause_eps_inside_root");
  const Contract placed = with_placement(contract, QKCTS_MAX_ROOT);
  EXPECT_EQ(placed.name, "clause_eps_inside_root_max_root");
  EXPECT_EQ(placed.terms.q_norm.root, static_cast<std::uint32_t>(QKCTS_MAX_ROOT));
  EXPECT_EQ(placed.terms.k_norm.root, static_cast<std::uint32_t>(QKCTS_MAX_ROOT));
  EXPECT_EQ(placed.terms.q_norm.eps, contract.terms.q_norm.eps) << "values stay";
  EXPECT_EQ(with_epsilon(placed, 1e-9).name, "clause_eps_inside_root_max_root_eps_1em09");
  EXPECT_THROW(with_placement(shipped_contract("plain_sdpa"), QKCTS_MAX_ROOT), InputError);
  EXPECT_THROW(with_epsilon(shipped_contract("plain_sdpa"), 1e-3), InputError);
}

}  // namespace
}  // namespace qkcts
