// SPDX-License-Identifier: Apache-2.0
// Known failures as files say them, and as run.json does.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "conformance/json_schema.hpp"
#include "harness/known_failures.hpp"

namespace qkcts {
namespace {

int number_in(std::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// The schema has seen to the digits; what is left are months and days that no calendar has.
bool is_day(std::string_view text) {
  const int year = number_in(text.substr(0, 4)), month = number_in(text.substr(5, 2)), day = number_in(text.substr(8));
  if (month < 1 || month > 12) return false;
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  constexpr std::array days = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return day >= 1 && day <= days[static_cast<std::size_t>(month - 1)] + (month == 2 && leap ? 1 : 0);
}

KnownFailure entry_from(const JsonAt& at) {
  KnownFailure entry;
  entry.cases = at["case"].text();
  if (at.has("stages"))
    for (const JsonAt& stage : at["stages"].items()) entry.stages |= bit(stage_named(stage.text()).value());
  if (at.has("verdict")) entry.verdict = verdict_named(at["verdict"].text()).value();
  entry.reason = at["reason"].text();
  entry.link = at["link"].text();
  entry.expires = at["expires"].text();
  if (at.has("suite")) entry.suite = at["suite"].text();
  if (!is_day(entry.expires)) at["expires"].refuse(fmt::format("{} is no day", entry.expires));
  return entry;
}

constexpr std::array states = {KnownFailureState::holds, KnownFailureState::stale, KnownFailureState::expired,
                               KnownFailureState::other_suite};

}  // namespace

std::vector<KnownFailure> known_failures_from_json(std::string_view text, std::string_view origin) {
  const Json document = parse_json(text, origin);
  require_schema(document, "known_failures", origin);
  std::vector<KnownFailure> entries;
  for (const JsonAt& one : JsonAt(document, std::string(origin))["failures"].items())
    entries.push_back(entry_from(one));
  return entries;
}

Json known_failures_json(const std::vector<KnownFailureUse>& uses) {
  Json list = Json::array();
  for (const KnownFailureUse& use : uses) {
    Json stages = Json::array();
    for (const qkcts_stage stage : all_stages)
      if ((use.entry.stages & bit(stage)) != 0) stages.push_back(stage_name(stage));
    list.push_back({{"case", use.entry.cases},
                    {"stages", std::move(stages)},
                    {"verdict", verdict_name(use.entry.verdict)},
                    {"reason", use.entry.reason},
                    {"link", use.entry.link},
                    {"expires", use.entry.expires},
                    {"suite", use.entry.suite},
                    {"state", known_failure_state_name(use.state)},
                    {"matched", use.matched}});
  }
  return list;
}

std::vector<KnownFailureUse> known_failure_uses_from_json(const JsonAt& at) {
  std::vector<KnownFailureUse> uses;
  for (const JsonAt& one : at.items()) {
    const std::string name = one["state"].text();
    const auto state = std::find_if(states.begin(), states.end(),
                                    [&](KnownFailureState s) { return known_failure_state_name(s) == name; });
    uses.push_back({entry_from(one), *state, one["matched"].get<std::size_t>()});
  }
  return uses;
}

}  // namespace qkcts
