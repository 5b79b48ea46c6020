// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "harness/call_plan.hpp"

namespace qkcts {

// What one stage came to when the case was asked for in another way.
struct VariantFinding {
  Variant variant = Variant::plain;
  bool same_bits = true;            // as the first plain call, wherever the contract says something of an element
  std::optional<double> max_ratio;  // error/Delta, where other bits were judged
  std::string implementation = {};  // if it is not that of the first call
};

}  // namespace qkcts
