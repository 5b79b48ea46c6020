// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_case.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "harness/value_text.hpp"

namespace qkcts {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int further_cases = 8;  // that are looked at to tell matches apart
constexpr std::chrono::milliseconds further_time{1500};
constexpr double small_errors = 0x1p-5;  // of a row: what a few roundings to 8 bits leave

void mark_same_values(std::vector<Suspect>& matches) {
  for (Suspect& match : matches) match.same_values = match.values == matches.front().values;
}

void narrow(CaseDiagnosis& d, const std::vector<int>& agreeing, const std::vector<int>& against) {
  const int fewest = *std::min_element(against.begin(), against.end());
  std::vector<Suspect> kept;
  std::vector<std::string> dropped;
  for (std::size_t i = 0; i < d.matches.size(); ++i) {
    d.matches[i].further_cases = agreeing[i];
    if (fewest == 0 && against[i] > 0) {
      dropped.push_back(d.matches[i].name);
    } else {
      kept.push_back(d.matches[i]);
    }
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const Suspect& a, const Suspect& b) { return a.further_cases > b.further_cases; });
  d.matches = std::move(kept);
  mark_same_values(d.matches);
  if (dropped.empty()) return;
  d.finding = d.matches.size() == 1 ? Finding::matched : Finding::ambiguous;
  d.detail =
      fmt::format("this case alone allows {} too; further failing cases of the run do not",
                  dropped.size() == 1 ? dropped.front() : counted(dropped.size(), "other contract", "other contracts"));
}

}  // namespace

Diagnosed diagnosed_outputs(const Observation& observation, Verdict verdict, unsigned threads) {
  Diagnosed made;
  CaseDiagnosis& d = made.diagnosis;
  d.slug = observation.golden().input.slug;
  d.contract = observation.golden().input.contract.name;
  d.failing = observation.failing();
  d.judged = observation.judged();
  if (d.failing == 0) {
    d.finding = Finding::passes;
    d.detail = fmt::format("verdict {} when it was run again", verdict_name(verdict));
    return made;
  }
  SearchLimits limits;
  limits.threads = threads;
  FoundSuspects found = search_suspects(observation, limits);
  d.tried = found.tried;
  d.cut = found.cut;
  d.finding = found.matches.empty()       ? Finding::unmatched
              : found.matches.size() == 1 ? Finding::matched
                                          : Finding::ambiguous;
  for (const FoundSuspect& one : found.matches) d.matches.push_back(one.suspect);
  mark_same_values(d.matches);
  for (const FoundSuspect& one : found.nearest) d.nearest.push_back(one.suspect);
  if (found.matches.empty() && !found.wider.empty())
    d.detail = fmt::format("it stays within the larger budget that {} has around the same values",
                           found.wider.front().suspect.name);
  if (!d.nearest.empty() && d.nearest.front().valueless > 0 && d.nearest.front().valueless == d.nearest.front().judged)
    d.detail = "no number was got anywhere: it agrees with a contract that has no value here, which proves little";
  const double coarseness = d.matches.empty() && d.nearest.empty() && d.detail.empty() ? observation.coarseness() : 1;
  if (coarseness < small_errors)
    d.detail = fmt::format(
        "no element is off by more than {} of the largest of its row: arithmetic that is too coarse, or a small number "
        "that is wrong",
        short_text(coarseness));
  made.matches = std::move(found.matches);
  return made;
}

void tell_apart(Diagnosed& made, const NextFailedCase& next) {
  const Clock::time_point end = Clock::now() + further_time;
  std::vector<int> agreeing(made.matches.size(), 0), against(made.matches.size(), 0);
  for (int asked = 0; asked < further_cases && Clock::now() < end; ++asked) {
    std::optional<FailedCase> other = next();
    if (!other) break;
    const Observation observation(other->golden, other->profile, std::move(other->outputs));
    const std::vector<Agreement> says = agreement(observation, made.matches, end);
    for (std::size_t i = 0; i < says.size(); ++i) {
      agreeing[i] += says[i] == Agreement::matches ? 1 : 0;
      against[i] += says[i] == Agreement::contradicted ? 1 : 0;
    }
  }
  narrow(made.diagnosis, agreeing, against);
}

}  // namespace qkcts
