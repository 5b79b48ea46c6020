// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fnmatch.h>

#include "harness/bundle.hpp"
#include "harness/diagnose_search.hpp"
#include "harness/diagnose_shrink.hpp"
#include "harness/diagnose_stage.hpp"
#include "harness/interruption.hpp"
#include "harness/value_text.hpp"
#include "vectors/case_separation.hpp"
#include "vectors/corpus_reader.hpp"

namespace qkcts {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t further_cases = 8;  // that are looked at to tell matches apart

std::vector<const CaseResult*> failing_cases(const RunRecord& record, const std::string& glob) {
  std::vector<const CaseResult*> failing;
  for (const CaseResult& result : record.cases)
    if (violates(result.verdict) && fnmatch(glob.c_str(), result.slug.c_str(), 0) == 0) failing.push_back(&result);
  return failing;
}

// Wrong values before errors, the first case of every contract before the second of any.
std::vector<const CaseResult*> by_variety(std::vector<const CaseResult*> failing) {
  const auto is_error = [](const CaseResult* result) { return result->verdict != Verdict::fail; };
  std::stable_sort(failing.begin(), failing.end(),
                   [&](const CaseResult* a, const CaseResult* b) { return is_error(a) < is_error(b); });
  std::map<std::string, int> seen;
  std::vector<std::pair<int, const CaseResult*>> ranked;
  for (const CaseResult* result : failing) ranked.emplace_back(seen[result->contract]++, result);
  std::stable_sort(ranked.begin(), ranked.end(), [&](const auto& a, const auto& b) {
    const std::pair<bool, int> first{is_error(a.second), a.first}, second{is_error(b.second), b.first};
    return first < second;
  });
  std::vector<const CaseResult*> order;
  for (const auto& [rank, result] : ranked) order.push_back(result);
  return order;
}

std::size_t profile_of(const GoldenCase& golden, const CaseResult& result) {
  return static_cast<std::size_t>(std::find(golden.profiles.begin(), golden.profiles.end(), result.profile) -
                                  golden.profiles.begin());
}

struct Diagnosed {
  CaseDiagnosis diagnosis;
  std::vector<FoundSuspect> matches;
  std::optional<Shrunk> smallest;
};

Diagnosed searched(const GoldenCase& golden, const CaseResult& result, const Observation& observation,
                   unsigned threads) {
  Diagnosed made;
  CaseDiagnosis& d = made.diagnosis;
  d.slug = golden.input.slug;
  d.contract = golden.input.contract.name;
  d.failing = observation.failing();
  d.judged = observation.judged();
  if (d.failing == 0) {
    d.finding = Finding::passes;
    d.detail = fmt::format("verdict {} when it was run again", verdict_name(result.verdict));
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
  for (const FoundSuspect& one : found.nearest) d.nearest.push_back(one.suspect);
  if (found.matches.empty() && !found.wider.empty())
    d.detail = fmt::format("it stays within the larger budget that {} has around the same values",
                           found.wider.front().suspect.name);
  if (!d.nearest.empty() && d.nearest.front().valueless > 0 && d.nearest.front().valueless == d.nearest.front().judged)
    d.detail = "no number was got anywhere: it agrees with a contract that has no value here, which proves little";
  made.matches = std::move(found.matches);
  return made;
}

class Session {
 public:
  Session(const RunRequest& request, const RunRecord& record, const DiagnoseOptions& options)
      : request_(request), record_(record), options_(options), corpus_(request.corpus_path) {
    runner_ = adapter_runner(request);
    const OpenAnswer answer = runner_->open(true);
    description_ = description_from_adapter(answer.description, request.adapter.given);
    probe_ = answer.probe;
  }

  Diagnosis run(const DiagnoseProgress& progress) {
    Diagnosis result;
    const std::vector<const CaseResult*> failing = by_variety(failing_cases(record_, options_.case_glob));
    result.failing_cases = static_cast<int>(failing.size());
    if (!failing.empty() && probe_ != QKCTS_OK) {
      result.warnings.push_back("the adapter says that its device is not there: nothing could be run again");
      return result;
    }
    const std::size_t count =
        options_.cases == 0 ? failing.size() : std::min(failing.size(), static_cast<std::size_t>(options_.cases));
    std::vector<Diagnosed> made;
    for (std::size_t i = 0; i < count && interruption() == 0; ++i) {
      made.push_back(diagnosed(*failing[i]));
      if (progress) progress(made.back().diagnosis, i + 1, count);
    }
    for (Diagnosed& one : made) {
      if (one.diagnosis.finding == Finding::ambiguous && interruption() == 0) tell_apart(one, failing);
      bundle(one);
      result.cases.push_back(std::move(one.diagnosis));
    }
    return result;
  }

 private:
  struct Again {
    GoldenCase golden;
    CaseResult result;
    KeptOutputs kept;
  };

  Again run_again(const std::string& slug) {
    Again again;
    again.golden = corpus_.read(slug);
    RunOptions options = request_.options;
    options.repeat = 1;
    again.result = run_case(*runner_, description_, again.golden, options, &again.kept);
    return again;
  }

  static bool has_values(const Again& again) {
    const bool wrong = again.result.verdict == Verdict::fail || again.result.verdict == Verdict::not_repeatable;
    return wrong && again.kept.filled;
  }

  Diagnosed diagnosed(const CaseResult& failed) {
    const Clock::time_point start = Clock::now();
    Again again = run_again(failed.slug);
    Diagnosed made;
    if (has_values(again)) {
      const Observation observation(again.golden, profile_of(again.golden, again.result), again.kept.outputs);
      made = searched(again.golden, again.result, observation, options_.threads);
      if (observation.failing() > 0) locate(made.diagnosis, observation, again.result);
    } else {
      made.diagnosis.slug = failed.slug;
      made.diagnosis.contract = failed.contract;
      made.diagnosis.finding = violates(again.result.verdict) ? Finding::no_values : Finding::passes;
      made.diagnosis.detail = fmt::format("{}{}{}", verdict_name(again.result.verdict),
                                          again.result.detail.empty() ? "" : ": ", again.result.detail);
    }
    if (violates(again.result.verdict)) reproduce(made, again);
    made.diagnosis.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return made;
  }

  Rerunner rerunner() const { return {*runner_, description_, request_.options}; }
  bool can_run_others() const { return request_.adapter.kind != AdapterKind::results; }

  void locate(CaseDiagnosis& d, const Observation& observation, const CaseResult& result) const {
    if (can_run_others()) {
      d.divergence = first_divergence(observation, rerunner(), result);
    } else {
      d.divergence = {observation.first_failing(), "the first that fails of those that were written"};
    }
  }

  // Results in a file answer no other case, and what takes a minute is not run a hundred times.
  void reproduce(Diagnosed& made, const Again& again) const {
    const bool is_slow =
        again.result.verdict == Verdict::error_timeout || again.result.verdict == Verdict::error_memory;
    if (!can_run_others() || is_slow) return;
    made.smallest = shrink(rerunner(), again.golden, again.result, ShrinkLimits{});
    if (!made.smallest) return;
    made.diagnosis.reproducer = Reproducer{made.smallest->smallest.golden.input.shape, made.smallest->tries, {}, {}};
  }

  // When all that there is to say is known.
  void bundle(Diagnosed& made) const {
    if (options_.bundle.empty() || !made.smallest) return;
    GoldenCase& golden = made.smallest->smallest.golden;
    golden.separation = make_separations(golden);  // `verify` expects them
    const WrittenBundle written =
        write_bundle(options_.bundle, golden, made.smallest->smallest.result, made.diagnosis, record_);
    made.diagnosis.reproducer->bundle = written.folder;
    made.diagnosis.reproducer->command = written.command;
  }

  // Other failing cases, those of the same contract first: what they contradict is dropped, unless they contradict all.
  void tell_apart(Diagnosed& one, const std::vector<const CaseResult*>& failing) {
    CaseDiagnosis& d = one.diagnosis;
    std::vector<const CaseResult*> others;
    for (const CaseResult* result : failing)
      if (result->slug != d.slug && result->verdict == Verdict::fail) others.push_back(result);
    std::stable_partition(others.begin(), others.end(),
                          [&](const CaseResult* result) { return result->contract == d.contract; });
    others.resize(std::min(others.size(), further_cases));
    std::vector<int> agreeing(d.matches.size(), 0), against(d.matches.size(), 0);
    for (const CaseResult* other : others) {
      const Again again = run_again(other->slug);
      if (!has_values(again)) continue;
      const Observation observation(again.golden, profile_of(again.golden, again.result), again.kept.outputs);
      const std::vector<Agreement> says = agreement(observation, one.matches);
      for (std::size_t i = 0; i < says.size(); ++i) {
        agreeing[i] += says[i] == Agreement::matches ? 1 : 0;
        against[i] += says[i] == Agreement::contradicted ? 1 : 0;
      }
    }
    narrow(d, agreeing, against);
  }

  static void narrow(CaseDiagnosis& d, const std::vector<int>& agreeing, const std::vector<int>& against) {
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
    if (dropped.empty()) return;
    d.finding = d.matches.size() == 1 ? Finding::matched : Finding::ambiguous;
    d.detail = fmt::format(
        "this case alone allows {} too; further failing cases of the run do not",
        dropped.size() == 1 ? dropped.front() : counted(dropped.size(), "other contract", "other contracts"));
  }

  const RunRequest& request_;
  const RunRecord& record_;
  const DiagnoseOptions& options_;
  const CorpusReader corpus_;
  std::unique_ptr<AdapterRunner> runner_;
  AdapterDescription description_;
  std::uint32_t probe_ = QKCTS_OK;
};

}  // namespace

Diagnosis diagnose(const RunRequest& request, const RunRecord& record, const DiagnoseOptions& options,
                   const DiagnoseProgress& progress) {
  return Session(request, record, options).run(progress);
}

CaseDiagnosis diagnose_outputs(const GoldenCase& golden, const CaseResult& result, const StageBytes& outputs,
                               unsigned threads) {
  const Observation observation(golden, profile_of(golden, result), outputs);
  return searched(golden, result, observation, threads).diagnosis;
}

}  // namespace qkcts
