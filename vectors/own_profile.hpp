// SPDX-License-Identifier: Apache-2.0
// Machine profiles that are not shipped: a corpus whose budgets come from one carries its text.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "conformance/machine_profile.hpp"

namespace qkcts {

// Name -> canonical text, of profiles that are not shipped.
using OwnProfiles = std::map<std::string, std::string>;

struct NamedProfile {
  Profile profile;
  std::string text;  // canonical; empty: shipped
};

// A shipped profile by name, or a JSON file by its path. A file that says the same as a shipped profile is that one;
// one that only takes its name is refused. Throws InputError.
NamedProfile load_profile(const std::string& name_or_path);

// The profile of that name: one of `own`, else a shipped one. Throws InputError.
Profile profile_named(const std::string& name, const OwnProfiles& own);
std::vector<Profile> profiles_named(const std::vector<std::string>& names, const OwnProfiles& own);

// Why this text cannot stand in a corpus under that name; empty: it can.
std::string own_profile_fault(const std::string& name, const std::string& text);

}  // namespace qkcts
