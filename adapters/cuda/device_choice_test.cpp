// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/device_choice.hpp"

#include <gtest/gtest.h>

#include "adapters/cuda/settings.hpp"

namespace qkcts::cuda {
namespace {

const BuiltCode shipped{{{8, 0}, {9, 0}}, {{9, 0}}};
const Card turing{"Tesla T4", {7, 5}}, ampere{"A100", {8, 0}}, ada{"L40S", {8, 9}}, hopper{"H100", {9, 0}};

// Every generation that exists, and those that will: binaries of the same major version, PTX for all later ones.
TEST(DeviceChoice, OldArchitecturesHaveNoCode) {
  for (const Architecture old : {Architecture{3, 5}, {6, 1}, {7, 0}, {7, 5}})
    EXPECT_FALSE(runs_on(shipped, old)) << name_of(old);
  for (const Architecture known : {Architecture{8, 0}, {8, 6}, {8, 9}, {9, 0}, {10, 0}, {10, 3}, {12, 0}, {12, 1}})
    EXPECT_TRUE(runs_on(shipped, known)) << name_of(known);
}

TEST(DeviceChoice, BinariesRunWithinTheirMajorVersion) {
  const BuiltCode without_ptx{{{8, 6}}, {}};
  EXPECT_FALSE(runs_on(without_ptx, {8, 0}));  // older than what it was built for
  EXPECT_TRUE(runs_on(without_ptx, {8, 6}));
  EXPECT_TRUE(runs_on(without_ptx, {8, 9}));
  EXPECT_FALSE(runs_on(without_ptx, {9, 0}));  // and nothing from which the driver could make code
  EXPECT_FALSE(runs_on({{}, {{9, 0}}}, {8, 9}));
  EXPECT_TRUE(runs_on({{}, {{8, 0}}}, {8, 9}));
  EXPECT_FALSE(runs_on({}, {9, 0}));
}

TEST(DeviceChoice, WithoutACardNothingIsRun) {
  EXPECT_EQ(choose_device({}, shipped, -1).refusal, "not run: no CUDA device");
  EXPECT_EQ(choose_device({}, shipped, 0).refusal, "not run: no CUDA device");
}

// "Not run", with the card and what would be needed: never an error of the kernel, and never a pass.
TEST(DeviceChoice, AnOldCardIsNotRunAndSaysWhy) {
  EXPECT_EQ(choose_device({turing}, shipped, -1).refusal,
            "not run: this build has no code for device 0, Tesla T4, sm_75 (binaries: sm_80, sm_90; PTX for later "
            "ones: sm_90)");
  const std::string both = choose_device({turing, {"Quadro P400", {6, 1}}}, shipped, -1).refusal;
  EXPECT_NE(both.find("device 0, Tesla T4, sm_75; device 1, Quadro P400, sm_61 ("), std::string::npos) << both;
  EXPECT_NE(choose_device({hopper}, {{{8, 0}}, {}}, -1).refusal.find("PTX for later ones: none"), std::string::npos);
}

TEST(DeviceChoice, TheFirstCardWithCodeIsUsed) {
  EXPECT_EQ(choose_device({ampere, hopper}, shipped, -1).device, 0);
  const DeviceChoice behind = choose_device({turing, ada}, shipped, -1);
  EXPECT_EQ(behind.refusal, "");
  EXPECT_EQ(behind.device, 1);
}

TEST(DeviceChoice, TheCardThatIsAskedForIsTheOnlyOneThatCounts) {
  EXPECT_EQ(choose_device({ampere, hopper}, shipped, 1).device, 1);
  const std::string old = choose_device({ampere, turing}, shipped, 1).refusal;
  EXPECT_NE(old.find("no code for device 1, Tesla T4, sm_75 ("), std::string::npos) << old;
  EXPECT_THROW(choose_device({ampere, hopper}, shipped, 2), InvalidOption);
}

}  // namespace
}  // namespace qkcts::cuda
