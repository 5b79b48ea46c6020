// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/device_choice.hpp"

#include <algorithm>

#include "adapters/cuda/settings.hpp"

namespace qkcts::cuda {

namespace {

bool from_on(Architecture first, Architecture card) {
  return card.major > first.major || (card.major == first.major && card.minor >= first.minor);
}

std::string list_of(const std::vector<Architecture>& architectures) {
  std::string text;
  for (const Architecture& one : architectures) text += (text.empty() ? "" : ", ") + name_of(one);
  return text.empty() ? "none" : text;
}

std::string no_code_for(const std::string& cards, const BuiltCode& built) {
  return "not run: this build has no code for " + cards + " (binaries: " + list_of(built.binaries) +
         "; PTX for later ones: " + list_of(built.ptx) + ")";
}

std::string description_of(const std::vector<Card>& cards, std::size_t device) {
  return "device " + std::to_string(device) + ", " + cards[device].name + ", " + name_of(cards[device].architecture);
}

}  // namespace

std::string name_of(Architecture architecture) {
  return "sm_" + std::to_string(architecture.major) + std::to_string(architecture.minor);
}

bool runs_on(const BuiltCode& built, Architecture card) {
  const auto binary_runs = [&](Architecture one) { return one.major == card.major && from_on(one, card); };
  const auto ptx_runs = [&](Architecture one) { return from_on(one, card); };
  return std::any_of(built.binaries.begin(), built.binaries.end(), binary_runs) ||
         std::any_of(built.ptx.begin(), built.ptx.end(), ptx_runs);
}

DeviceChoice choose_device(const std::vector<Card>& cards, const BuiltCode& built, int asked) {
  if (cards.empty()) return {0, "not run: no CUDA device"};
  const int count = static_cast<int>(cards.size());
  if (asked >= count)
    throw InvalidOption("device=" + std::to_string(asked) + ": numbers from 0 to " + std::to_string(count - 1) +
                        " are wanted, there is no other CUDA device");
  std::string unusable;
  for (int device = asked < 0 ? 0 : asked; device < (asked < 0 ? count : asked + 1); ++device) {
    const auto at = static_cast<std::size_t>(device);
    if (runs_on(built, cards[at].architecture)) return {device, ""};
    unusable += (unusable.empty() ? "" : "; ") + description_of(cards, at);
  }
  return {0, no_code_for(unusable, built)};
}

}  // namespace qkcts::cuda
