// SPDX-License-Identifier: Apache-2.0
// Which of a machine's GPUs is used, and why none: decided from what the cards are and what was built, without a call
// of CUDA, so that it is tested where there is no GPU.
#pragma once

#include <string>
#include <vector>

namespace qkcts::cuda {

// sm_80 is {8, 0}, sm_120 is {12, 0}.
struct Architecture {
  int major = 0, minor = 0;
};

// A binary runs on cards of its major version from its minor version on; PTX is compiled by the driver, for its
// architecture and for every later one.
struct BuiltCode {
  std::vector<Architecture> binaries, ptx;
};

struct Card {
  std::string name;
  Architecture architecture;
};

struct DeviceChoice {
  int device = 0;
  std::string refusal;  // why nothing is run; empty: `device` it is
};

std::string name_of(Architecture architecture);  // "sm_80"
bool runs_on(const BuiltCode& built, Architecture card);

// `asked` < 0: the first card that there is code for. A number that no card has throws InvalidOption.
DeviceChoice choose_device(const std::vector<Card>& cards, const BuiltCode& built, int asked);

}  // namespace qkcts::cuda
