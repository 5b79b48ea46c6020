// SPDX-License-Identifier: Apache-2.0
// Named variants of the shipped profiles: tighter or looser machines, by which nobody is judged unless a plan asks for
// it. shipped_profile() knows them by name; shipped_profiles() and profiles_for() leave them out.
#pragma once

#include "conformance/machine_profile.hpp"

namespace qkcts {

std::vector<std::string> further_profiles();

// profiles_for(storage), and then the named variants of that format.
std::vector<Profile> selectable_profiles(Format storage);

}  // namespace qkcts
