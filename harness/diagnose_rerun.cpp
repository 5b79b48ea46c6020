// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_rerun.hpp"

#include "vectors/generate.hpp"
#include "vectors/row_selection.hpp"

namespace qkcts {

std::optional<Rerun> rerun(const Rerunner& rerunner, Case part, const GoldenCase& origin, const std::string& profile) {
  if (!unsupported_reason(rerunner.description, part).empty()) return std::nullopt;
  Rerun made;
  GoldenCase& golden = made.golden;
  golden.input = std::move(part);
  golden.family = origin.family;
  golden.description = origin.description;
  golden.seed = origin.seed;
  golden.first_position = golden.input.inputs.has(Input::cos) ? origin.first_position : 0;
  golden.profiles = {profile};
  if (const auto own = origin.own_profiles.find(profile); own != origin.own_profiles.end())
    golden.own_profiles.insert(*own);
  try {
    std::vector<DroppedProfile> dropped;
    seal(golden, select_rows(golden.input.contract.terms, golden.input.shape, 0, golden.seed), dropped);
  } catch (const UndecidedError&) {
    return std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
  if (golden.profiles.empty()) return std::nullopt;
  RunOptions options = rerunner.options;
  options.profile = profile;
  options.repeat = 1;
  made.result = run_case(rerunner.runner, rerunner.description, golden, options);
  return made;
}

}  // namespace qkcts
