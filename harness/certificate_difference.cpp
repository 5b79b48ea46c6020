// SPDX-License-Identifier: Apache-2.0
// run.json against its own outputs, judged again: figure for figure, but for what only the live run can know.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/certificate_package.hpp"
#include "harness/run_json_parts.hpp"

namespace qkcts::package {
namespace {

// Of the live run alone: times, what was printed, what other calls did.
constexpr std::array of_cases = {"seconds", "calls", "output", "detail", "stages"};
constexpr std::array of_stages = {"detail", "differing_calls", "call", "spread_ulp", "variants", "plain"};

template <class Keys>
Json without(Json object, const Keys& keys) {
  for (const char* const key : keys) object.erase(key);
  return object;
}

// The outputs are those of the first call; where another call was worse, the run may say worse than they do.
bool may_say_worse(const StageResult& claimed) {
  const bool restless = std::any_of(claimed.variants.begin(), claimed.variants.end(),
                                    [](const VariantFinding& variant) { return !variant.same_bits; });
  return claimed.differing_calls > 0 || restless || violates(claimed.verdict);
}

std::string stage_difference(const StageResult& claimed, const StageResult& again, const Json& first,
                             const Json& second) {
  if (without(first, of_stages) == without(second, of_stages)) return {};
  if (may_say_worse(claimed) && claimed.output_sha256 == again.output_sha256 && claimed.verdict >= again.verdict &&
      (!claimed.judgement || !again.judgement || claimed.judgement->max_ratio >= again.judgement->max_ratio))
    return {};
  const Json difference = Json::diff(without(first, of_stages), without(second, of_stages));
  const auto path = difference.at(0).at("path").get<std::string>();
  const auto shown = [&](const Json& json) {
    const Json::json_pointer pointer(path);
    return json.contains(pointer) ? json.at(pointer).dump() : std::string("nothing");
  };
  return fmt::format("{}: run.json says {}, the outputs say {}", path.empty() ? "/" : path, shown(first),
                     shown(second));
}

void compare(const CaseResult& claimed, const CaseResult& again, std::vector<std::string>& lines) {
  const Json first = case_json(claimed), second = case_json(again);
  Json head = without(first, of_cases), other = without(second, of_cases);
  const bool worse = claimed.verdict > again.verdict && violates(claimed.verdict);
  if (worse) {
    head.erase("verdict");
    other.erase("verdict");
  }
  if (head != other)
    lines.push_back(fmt::format("{}: {}: run.json and the outputs differ", claimed.slug,
                                Json::diff(head, other).at(0).at("path").get<std::string>()));
  if (claimed.stages.size() != again.stages.size()) {
    lines.push_back(fmt::format("{}: has other stages", claimed.slug));
    return;
  }
  for (std::size_t i = 0; i < claimed.stages.size(); ++i) {
    const std::string difference =
        stage_difference(claimed.stages[i], again.stages[i], first.at("stages").at(i), second.at("stages").at(i));
    if (!difference.empty())
      lines.push_back(fmt::format("{}: {}{}", claimed.slug, stage_name(claimed.stages[i].stage), difference));
  }
}

}  // namespace

std::vector<std::string> differences(const RunRecord& claimed, const RunRecord& judged_again) {
  std::vector<std::string> lines;
  std::map<std::string, std::size_t> again;  // where among those
  for (std::size_t i = 0; i < judged_again.cases.size(); ++i) again[judged_again.cases[i].slug] = i;
  for (const CaseResult& result : claimed.cases) {
    const auto found = again.find(result.slug);
    if (found == again.end()) {
      lines.push_back(
          fmt::format("{}: run.json judges it, and it is not in the scope of this certificate", result.slug));
      continue;
    }
    compare(result, judged_again.cases[found->second], lines);
    again.erase(found);
  }
  for (const auto& [slug, number] : again)
    lines.push_back(fmt::format("{}: lies in the scope of this certificate, and run.json does not judge it", slug));
  return lines;
}

}  // namespace qkcts::package
