// SPDX-License-Identifier: Apache-2.0
#include "vectors/own_profile.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "conformance/contract.hpp"
#include "conformance/file.hpp"
#include "conformance/further_profiles.hpp"
#include "vectors/hdf5_file.hpp"
#include "vectors/slug.hpp"

namespace qkcts {
namespace {

bool is_shipped(const std::string& name) {
  for (const std::vector<std::string>& names : {shipped_profiles(), further_profiles()})
    if (std::find(names.begin(), names.end(), name) != names.end()) return true;
  return false;
}

}  // namespace

NamedProfile load_profile(const std::string& name) {
  if (name.find('/') == std::string::npos && !name.ends_with(".json")) return {shipped_profile(name), {}};
  const std::string text = read_text_file(name);
  Profile profile = profile_from_json(text, name);
  std::string canonical = canonical_profile(text, name);
  if (canonical.size() > largest_attribute)
    throw InputError(fmt::format("{}: has {} bytes as a corpus holds it, {} are allowed: shorten its sources", name,
                                 canonical.size(), largest_attribute));
  if (!is_name(profile.name))
    throw InputError(fmt::format("{}: /name: a profile's name holds a-z, 0-9 and _ only", name));
  if (!is_shipped(profile.name)) return {std::move(profile), std::move(canonical)};
  if (canonical != canonical_profile(shipped_profile_text(profile.name), profile.name))
    throw InputError(fmt::format("{}: /name: {} is a shipped profile that says something else; give yours another name",
                                 name, profile.name));
  return {std::move(profile), {}};
}

Profile profile_named(const std::string& name, const OwnProfiles& own) {
  const auto found = own.find(name);
  return found != own.end() ? profile_from_json(found->second, "profile " + name) : shipped_profile(name);
}

std::vector<Profile> profiles_named(const std::vector<std::string>& names, const OwnProfiles& own) {
  std::vector<Profile> profiles;
  profiles.reserve(names.size());
  for (const std::string& name : names) profiles.push_back(profile_named(name, own));
  return profiles;
}

std::string own_profile_fault(const std::string& name, const std::string& text) {
  try {
    if (is_shipped(name)) return "takes the name of a shipped profile";
    if (profile_from_json(text, "json").name != name) return "holds a profile of another name";
    if (canonical_profile(text, "json") != text) return "is not written in the canonical way";
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace qkcts
