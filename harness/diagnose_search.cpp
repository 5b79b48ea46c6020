// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_search.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include "harness/diagnose_explanation.hpp"

namespace qkcts {
namespace {

constexpr std::size_t pair_singles = 10;  // the best, each with every other
constexpr std::size_t nearest_kept = 3;
constexpr double worthwhile = 0.75;  // of its distance: a pair that comes no nearer than one of its parts says nothing

using Clock = std::chrono::steady_clock;

struct Trial {
  Candidate candidate;
  std::vector<std::string> parts;
  std::optional<Explanation> explanation;  // nothing: not evaluated, or has no value here
};

std::size_t clauses_of(const Suspect& suspect) {
  std::set<std::string> clauses;
  for (const ClauseDifference& change : suspect.changes) clauses.insert(change.clause);
  return clauses.size();
}

class Search {
 public:
  Search(const Observation& observation, const SearchLimits& limits)
      : observation_(observation),
        input_(observation.golden().input),
        limits_(limits),
        end_(Clock::now() + limits.time),
        telling_(observation.telling_rows()),
        stored_(observation.every_stored_row()) {}

  FoundSuspects run() {
    std::vector<Trial> singles;
    for (Candidate& candidate : candidates(input_)) {
      std::vector<std::string> parts = {candidate.name};
      singles.push_back({std::move(candidate), std::move(parts), std::nullopt});
    }
    evaluate(singles, telling_);
    confirm(singles);
    std::vector<Trial> all = singles;
    if (result_.matches.empty()) {
      std::vector<Trial> pairs = pairs_of(singles);
      evaluate(pairs, telling_);
      confirm(pairs);
      all.insert(all.end(), pairs.begin(), pairs.end());
    }
    if (result_.matches.empty()) keep_nearest(all);
    return std::move(result_);
  }

 private:
  // Every trial without an explanation, in a few threads; what the clock leaves out stays without one.
  void evaluate(std::vector<Trial>& trials, const StageRows& rows) {
    std::atomic<std::size_t> next{0};
    std::atomic<int> tried{0};
    std::atomic<bool> cut{false};
    const auto work = [&] {
      const Explainer explainer(observation_);
      for (std::size_t i = next++; i < trials.size(); i = next++) {
        if (Clock::now() > end_) {
          cut = true;
          return;
        }
        const std::optional<Case> other = case_of(input_, trials[i].candidate);
        if (!other) continue;
        trials[i].explanation = explainer.on(*other, rows);
        ++tried;
      }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < std::min<std::size_t>(limits_.threads, trials.size()); ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    result_.tried += tried;
    result_.cut = result_.cut || cut;
  }

  // What a few rows do not contradict, on all of them.
  void confirm(const std::vector<Trial>& trials) {
    std::vector<Trial> surviving;
    for (const Trial& trial : trials)
      if (trial.explanation && trial.explanation->fits()) surviving.push_back(trial);
    evaluate_again(surviving);
    for (const Trial& trial : surviving) {
      if (!trial.explanation || !trial.explanation->fits()) continue;
      (trial.explanation->is_whole() ? result_.matches : result_.wider).push_back(found(trial));
    }
    // One clause before two; what is equal else stands as the candidates do.
    std::stable_sort(result_.matches.begin(), result_.matches.end(), [](const FoundSuspect& a, const FoundSuspect& b) {
      return std::pair(clauses_of(a.suspect), a.suspect.worst) < std::pair(clauses_of(b.suspect), b.suspect.worst);
    });
  }

  void evaluate_again(std::vector<Trial>& trials) {
    for (Trial& trial : trials) trial.explanation.reset();
    const int before = result_.tried;
    evaluate(trials, stored_);
    result_.tried = before;  // they were counted
  }

  FoundSuspect found(const Trial& trial) const {
    const Explanation& e = *trial.explanation;
    return {{trial.candidate.name, changes_of(input_.contract, trial.candidate), e.all_judged(), e.all_explained(),
             e.valueless, e.worst, 0},
            trial.parts};
  }

  // Explains the whole of the first stage that fails, where more than one stage was observed.
  bool leads(const Trial& trial) const {
    const qkcts_stage first = observation_.first_failing();
    const Explanation& e = *trial.explanation;
    return first != QKCTS_STAGE_OUTPUT && first != QKCTS_STAGE_LSE && e.judged[first] > 0 &&
           e.explained[first] == e.judged[first];
  }

  std::vector<const Trial*> by_distance(const std::vector<Trial>& trials) const {
    std::vector<const Trial*> order;
    for (const Trial& trial : trials)
      if (trial.explanation && trial.explanation->all_judged() > 0) order.push_back(&trial);
    std::stable_sort(order.begin(), order.end(), [this](const Trial* a, const Trial* b) {
      const bool first = leads(*a), second = leads(*b);
      return first != second ? first : a->explanation->distance < b->explanation->distance;
    });
    return order;
  }

  std::vector<Trial> pairs_of(const std::vector<Trial>& singles) const {
    const std::vector<const Trial*> order = by_distance(singles);
    std::vector<Trial> pairs;
    // The most promising first, should time run out.
    for (std::size_t sum = 1; sum < order.size() + pair_singles; ++sum)
      for (std::size_t i = 0; i < std::min(pair_singles, sum); ++i) {
        const std::size_t j = sum - i;
        if (j <= i || j >= order.size()) continue;
        if (std::optional<Candidate> both = joined(input_.contract.terms, order[i]->candidate, order[j]->candidate))
          pairs.push_back({std::move(*both), {order[i]->parts.front(), order[j]->parts.front()}, std::nullopt});
      }
    return pairs;
  }

  void keep_nearest(const std::vector<Trial>& trials) {
    std::vector<Trial> best;
    for (const Trial* trial : by_distance(trials)) {
      if (best.size() == nearest_kept) break;
      const bool adds_nothing = std::any_of(best.begin(), best.end(), [&](const Trial& kept) {
        const bool is_part =
            std::find(trial->parts.begin(), trial->parts.end(), kept.parts.front()) != trial->parts.end();
        return is_part && trial->explanation->distance > worthwhile * kept.explanation->distance;
      });
      if (!adds_nothing) best.push_back(*trial);
    }
    evaluate_again(best);
    const double own =
        static_cast<double>(observation_.judged() - std::min(observation_.failing(), observation_.judged())) /
        static_cast<double>(std::max<std::uint64_t>(1, observation_.judged()));
    for (const Trial& trial : best) {
      if (!trial.explanation || trial.explanation->all_judged() == 0) continue;
      const FoundSuspect suspect = found(trial);
      const double share = static_cast<double>(suspect.suspect.explained) / static_cast<double>(suspect.suspect.judged);
      if (share > own) result_.nearest.push_back(suspect);
    }
    std::stable_sort(result_.nearest.begin(), result_.nearest.end(), [](const FoundSuspect& a, const FoundSuspect& b) {
      return static_cast<double>(a.suspect.explained) * static_cast<double>(b.suspect.judged) >
             static_cast<double>(b.suspect.explained) * static_cast<double>(a.suspect.judged);
    });
  }

  const Observation& observation_;
  const Case& input_;
  const SearchLimits limits_;
  const Clock::time_point end_;
  const StageRows telling_, stored_;
  FoundSuspects result_;
};

}  // namespace

FoundSuspects search_suspects(const Observation& observation, const SearchLimits& limits) {
  return Search(observation, limits).run();
}

std::vector<Agreement> agreement(const Observation& observation, const std::vector<FoundSuspect>& suspects) {
  const Case& input = observation.golden().input;
  const Explainer explainer(observation);
  const std::vector<Candidate> known = candidates(input);
  std::vector<Agreement> result;
  for (const FoundSuspect& found : suspects) {
    std::optional<Candidate> candidate;
    for (const std::string& part : found.parts) {
      const auto named = std::find_if(known.begin(), known.end(), [&](const Candidate& c) { return c.name == part; });
      if (named == known.end()) {
        candidate.reset();
        break;
      }
      candidate = candidate ? joined(input.contract.terms, *candidate, *named) : *named;
      if (!candidate) break;
    }
    const std::optional<Case> other = candidate ? case_of(input, *candidate) : std::nullopt;
    std::optional<Explanation> explanation = other ? explainer.on(*other, observation.telling_rows()) : std::nullopt;
    if (explanation && explanation->is_whole()) explanation = explainer.on(*other, observation.every_stored_row());
    result.push_back(!explanation              ? Agreement::absent
                     : explanation->is_whole() ? Agreement::matches
                                               : Agreement::contradicted);
  }
  return result;
}

}  // namespace qkcts
