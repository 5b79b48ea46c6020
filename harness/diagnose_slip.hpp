// SPDX-License-Identifier: Apache-2.0
// Inputs that a kernel reads wrongly.
#pragma once

#include <string>
#include <vector>

#include "harness/diagnose_candidate.hpp"

namespace qkcts {

// Of the inputs that the case has; those that change nothing are left out.
std::vector<InputSlip> input_slips(const Case& c);

// The input of `changed` becomes what the slip makes of that of `c`. False if it cannot be done or changes nothing;
// then `changed` is as it was.
bool apply(const InputSlip& slip, const Case& c, Case& changed);

std::string slip_text(const InputSlip& slip);  // "that of head 0"
std::string slip_name(const InputSlip& slip);  // "input sink: that of head 0"

}  // namespace qkcts
