// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fnmatch.h>

#include "harness/bundle.hpp"
#include "harness/diagnose_case.hpp"
#include "harness/diagnose_shrink.hpp"
#include "harness/diagnose_stage.hpp"
#include "harness/interruption.hpp"
#include "vectors/case_separation.hpp"
#include "vectors/corpus_reader.hpp"

namespace qkcts {
namespace {

using Clock = std::chrono::steady_clock;

// Of the ten seconds of a case; what is not located by then stays so.
constexpr std::chrono::milliseconds latest_location{8000};

// All that a diagnosis takes from the run: the case is run again.
struct FailingCase {
  std::string slug, contract;
  Verdict verdict = Verdict::fail;
};

std::vector<FailingCase> failing_cases(const RunRecord& record, const std::string& glob) {
  std::vector<FailingCase> failing;
  for (const CaseResult& result : record.cases)
    if (violates(result.verdict) && fnmatch(glob.c_str(), result.slug.c_str(), 0) == 0)
      failing.push_back({result.slug, result.contract, result.verdict});
  return failing;
}

// Wrong values before errors, the first case of every contract before the second of any.
std::vector<FailingCase> by_variety(std::vector<FailingCase> failing) {
  const auto is_error = [](const FailingCase& one) { return one.verdict != Verdict::fail; };
  std::stable_sort(failing.begin(), failing.end(),
                   [&](const FailingCase& a, const FailingCase& b) { return is_error(a) < is_error(b); });
  std::map<std::string, int> seen;
  std::vector<std::pair<int, FailingCase>> ranked;
  for (const FailingCase& one : failing) ranked.emplace_back(seen[one.contract]++, one);
  std::stable_sort(ranked.begin(), ranked.end(), [&](const auto& a, const auto& b) {
    const std::pair<bool, int> first{is_error(a.second), a.first}, second{is_error(b.second), b.first};
    return first < second;
  });
  std::vector<FailingCase> order;
  for (auto& [rank, one] : ranked) order.push_back(std::move(one));
  return order;
}

std::size_t profile_of(const GoldenCase& golden, const CaseResult& result) {
  return static_cast<std::size_t>(std::find(golden.profiles.begin(), golden.profiles.end(), result.profile) -
                                  golden.profiles.begin());
}

// A diagnosis, and what it leaves behind.
struct Whole {
  Diagnosed found;
  std::optional<Shrunk> smallest;
};

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
    const std::vector<FailingCase> failing = by_variety(failing_cases(record_, options_.case_glob));
    result.failing_cases = static_cast<int>(failing.size());
    if (!failing.empty() && probe_ != QKCTS_OK) {
      result.warnings.push_back("the adapter says that its device is not there: nothing could be run again");
      return result;
    }
    const std::size_t count =
        options_.cases == 0 ? failing.size() : std::min(failing.size(), static_cast<std::size_t>(options_.cases));
    for (std::size_t i = 0; i < count && interruption() == 0; ++i) {
      const Clock::time_point start = Clock::now();
      Whole made = diagnosed(failing[i], start);
      CaseDiagnosis& d = made.found.diagnosis;
      if (d.finding == Finding::ambiguous && interruption() == 0) ask_others(made, failing);
      d.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      bundle(made);
      result.cases.push_back(d);
      if (progress) progress(result.cases.back(), i + 1, count);
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

  Whole diagnosed(const FailingCase& failed, Clock::time_point start) {
    Again again = run_again(failed.slug);
    Whole made;
    if (!has_values(again)) {
      CaseDiagnosis& d = made.found.diagnosis;
      d.slug = failed.slug;
      d.contract = failed.contract;
      d.finding = violates(again.result.verdict) ? Finding::no_values : Finding::passes;
      d.detail = fmt::format("{}{}{}", verdict_name(again.result.verdict), again.result.detail.empty() ? "" : ": ",
                             again.result.detail);
      if (violates(again.result.verdict)) reproduce(made, again);
      return made;
    }
    const Observation observation(again.golden, profile_of(again.golden, again.result), again.kept.outputs);
    made.found = diagnosed_outputs(observation, again.result.verdict, options_.threads);
    reproduce(made, again);
    if (observation.failing() > 0) locate(made, observation, again.result, start);
    return made;
  }

  Rerunner rerunner() const { return {*runner_, description_, request_.options}; }
  bool can_run_others() const { return request_.adapter.kind != AdapterKind::results; }

  // On the smallest case that fails where stages were not observed: on that one it takes no time.
  void locate(Whole& made, const Observation& observation, const CaseResult& failed, Clock::time_point start) const {
    Divergence& divergence = made.found.diagnosis.divergence;
    divergence = observed_divergence(observation);
    if (!divergence.detail.empty()) return;
    if (!can_run_others()) {
      divergence.detail = "the first that fails of those that were written";
    } else if (Clock::now() > start + latest_location) {
      divergence.detail = "not located before it: time ran out";
    } else if (made.smallest) {
      const Rerun& small = made.smallest->smallest;
      divergence = substituted_divergence(*divergence.stage, small.golden, rerunner(), small.result);
    } else {
      divergence = substituted_divergence(*divergence.stage, observation.golden(), rerunner(), failed);
    }
  }

  // Results in a file answer no other case, and what takes a minute is not run a hundred times.
  void reproduce(Whole& made, const Again& again) const {
    const bool is_slow =
        again.result.verdict == Verdict::error_timeout || again.result.verdict == Verdict::error_memory;
    if (!can_run_others() || is_slow) return;
    made.smallest = shrink(rerunner(), again.golden, again.result, ShrinkLimits{});
    if (!made.smallest) return;
    made.found.diagnosis.reproducer =
        Reproducer{made.smallest->smallest.golden.input.shape, made.smallest->tries, {}, {}};
  }

  // When all that there is to say is known.
  void bundle(Whole& made) const {
    if (options_.bundle.empty() || !made.smallest) return;
    GoldenCase& golden = made.smallest->smallest.golden;
    golden.separation = make_separations(golden);  // `verify` expects them
    const WrittenBundle written =
        write_bundle(options_.bundle, golden, made.smallest->smallest.result, made.found.diagnosis, record_);
    made.found.diagnosis.reproducer->bundle = written.folder;
    made.found.diagnosis.reproducer->command = written.command;
  }

  // Those of the same contract first.
  void ask_others(Whole& one, const std::vector<FailingCase>& failing) {
    const CaseDiagnosis& d = one.found.diagnosis;
    std::vector<FailingCase> others;
    for (const FailingCase& other : failing)
      if (other.slug != d.slug && other.verdict == Verdict::fail) others.push_back(other);
    std::stable_partition(others.begin(), others.end(),
                          [&](const FailingCase& other) { return other.contract == d.contract; });
    std::size_t at = 0;
    tell_apart(one.found, [&]() -> std::optional<FailedCase> {
      while (at < others.size()) {
        Again again = run_again(others[at++].slug);
        if (!has_values(again)) continue;
        const std::size_t profile = profile_of(again.golden, again.result);
        return FailedCase{std::move(again.golden), profile, std::move(again.kept.outputs)};
      }
      return std::nullopt;
    });
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
  return diagnosed_outputs(observation, result.verdict, threads).diagnosis;
}

}  // namespace qkcts
