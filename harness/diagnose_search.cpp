// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_search.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <set>
#include <thread>
#include <tuple>

#include "harness/diagnose_explanation.hpp"

namespace qkcts {
namespace {

constexpr std::size_t pair_singles = 10;  // the best, each with every other
constexpr std::size_t nearest_kept = 3;
constexpr std::size_t rows_at_once = 48;  // of attention, between two looks at the clock
constexpr double about_as_near = 2;
constexpr double worth_a_hint = 0.25;  // of what fails: that some of many candidates explain a little is chance
constexpr double worthwhile = 0.75;  // of its distance: a pair that comes no nearer than one of its parts says nothing

using Clock = std::chrono::steady_clock;

struct Trial {
  Candidate candidate;
  std::vector<std::string> parts;
  std::optional<Explanation> explanation;  // nothing: not evaluated, or has no value here
};

// The rows in parts; those of vectors stand in the first.
std::vector<StageRows> in_parts(const StageRows& rows) {
  std::set<std::uint32_t> attention;
  for (const qkcts_stage stage : all_stages)
    if ((attention_stages & bit(stage)) != 0) attention.insert(rows[stage].begin(), rows[stage].end());
  const std::vector<std::uint32_t> all(attention.begin(), attention.end());
  std::vector<StageRows> parts;
  for (std::size_t first = 0; first < std::max<std::size_t>(1, all.size()); first += rows_at_once) {
    StageRows& part = parts.emplace_back();
    for (const qkcts_stage stage : all_stages) {
      if ((attention_stages & bit(stage)) == 0) {
        if (first == 0) part[stage] = rows[stage];
        continue;
      }
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), first + rows_at_once));
      std::set_intersection(begin, end, rows[stage].begin(), rows[stage].end(), std::back_inserter(part[stage]));
    }
  }
  return parts;
}

enum class Until : std::uint8_t { contradicted, all_rows };

struct Evaluated {
  std::optional<Explanation> explanation;
  bool cut = false;  // by the clock; there is no explanation then
};

Evaluated on_parts(const Explainer& explainer, const Case& other, const CatalogueMutant* fault,
                   const std::vector<StageRows>& parts, Until until, Clock::time_point end) {
  Evaluated made;
  for (const StageRows& part : parts) {
    if (Clock::now() > end) return {std::nullopt, true};
    const std::optional<Explanation> further = explainer.on(other, part, fault);
    if (!further) return {};
    if (!made.explanation) {
      made.explanation = further;
    } else {
      made.explanation->add(*further);
    }
    if (until == Until::contradicted &&
        (made.explanation->uncovered > 0 || made.explanation->all_explained() != made.explanation->all_judged()))
      break;
  }
  return made;
}

std::size_t changed_clauses(const Suspect& suspect) {
  std::set<std::string> clauses;
  for (const ClauseDifference& change : suspect.changes) clauses.insert(change.clause);
  return clauses.size();
}

// A mistake that was seen before is one, whatever fields it takes to say it.
std::size_t clauses_of(const Suspect& suspect) {
  return !suspect.known_as.empty() && !suspect.by_kernel ? 1 : changed_clauses(suspect);
}

class Search {
 public:
  Search(const Observation& observation, const SearchLimits& limits)
      : observation_(observation),
        input_(observation.golden().input),
        limits_(limits),
        end_(Clock::now() + limits.time),
        last_(end_ + limits.longer),
        telling_({observation.telling_rows()}),
        stored_(in_parts(observation.every_stored_row())) {}

  FoundSuspects run() {
    std::vector<Trial> singles;
    for (Candidate& candidate : candidates(input_)) {
      std::vector<std::string> parts = {candidate.name};
      singles.push_back({std::move(candidate), std::move(parts), std::nullopt});
    }
    evaluate(singles, telling_, Until::all_rows, end_);
    confirm(singles);
    std::vector<Trial> all = singles;
    if (result_.matches.empty()) {
      std::vector<Trial> pairs = pairs_of(singles);
      evaluate(pairs, telling_, Until::all_rows, end_);
      confirm(pairs);
      all.insert(all.end(), pairs.begin(), pairs.end());
    }
    if (result_.matches.empty()) keep_nearest(all);
    return std::move(result_);
  }

 private:
  // Every trial without an explanation, in a few threads; what the clock leaves out stays without one.
  void evaluate(std::vector<Trial>& trials, const std::vector<StageRows>& parts, Until until, Clock::time_point end) {
    std::atomic<std::size_t> next{0};
    std::atomic<int> tried{0};
    std::atomic<bool> cut{false};
    const auto work = [&] {
      const Explainer explainer(observation_);
      for (std::size_t i = next++; i < trials.size(); i = next++) {
        if (Clock::now() > end) {
          cut = true;
          return;
        }
        const std::optional<Case> other = case_of(input_, trials[i].candidate);
        if (!other) continue;
        Evaluated made = on_parts(explainer, *other, trials[i].candidate.fault, parts, until, end);
        cut = cut || made.cut;
        trials[i].explanation = std::move(made.explanation);
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
    evaluate_again(surviving, Until::contradicted);
    for (const Trial& trial : surviving) {
      if (!trial.explanation || !trial.explanation->fits()) continue;
      if (trial.explanation->is_whole()) {
        result_.matches.push_back(found(trial));
      } else if (trial.candidate.fault == nullptr) {  // the budget of a wrong kernel is none
        result_.wider.push_back(found(trial));
      }
    }
    rank(result_.matches);
  }

  // One clause before two; then what lies about as near as any does to what was got; of these what is proven before
  // what is not, the shorter change before the longer, what others got wrong before, and then the nearest.
  static void rank(std::vector<FoundSuspect>& matches) {
    if (matches.empty()) return;
    const double nearest =
        std::min_element(matches.begin(), matches.end(), [](const FoundSuspect& a, const FoundSuspect& b) {
          return a.off < b.off;
        })->off;
    std::stable_sort(matches.begin(), matches.end(), [&](const FoundSuspect& a, const FoundSuspect& b) {
      const auto key = [&](const FoundSuspect& one) {
        return std::tuple(clauses_of(one.suspect), one.off > about_as_near * nearest, one.suspect.by_kernel,
                          changed_clauses(one.suspect), one.suspect.known_as.empty(), one.off);
      };
      return key(a) < key(b);
    });
  }

  void evaluate_again(std::vector<Trial>& trials, Until until) {
    for (Trial& trial : trials) trial.explanation.reset();
    const int before = result_.tried;
    evaluate(trials, stored_, until, last_);
    result_.tried = before;  // they were counted
  }

  FoundSuspect found(const Trial& trial) const {
    const Explanation& e = *trial.explanation;
    Suspect suspect;
    suspect.name = trial.candidate.name;
    suspect.changes = changes_of(input_.contract, trial.candidate);
    for (const CatalogueMutant* entry : entries_of(input_, trial.candidate))
      suspect.known_as.push_back({entry->id, entry->clause, entry->mutant});
    suspect.by_kernel = trial.candidate.fault != nullptr;
    suspect.judged = e.all_judged();
    suspect.explained = e.all_explained();
    suspect.valueless = e.valueless;
    suspect.worst = e.worst;
    suspect.values = e.values;
    return {std::move(suspect), e.off, trial.parts};
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
    evaluate_again(best, Until::all_rows);
    const double own =
        static_cast<double>(observation_.judged() - std::min(observation_.failing(), observation_.judged())) /
        static_cast<double>(std::max<std::uint64_t>(1, observation_.judged()));
    for (const Trial& trial : best) {
      if (!trial.explanation || trial.explanation->all_judged() == 0) continue;
      // Within a budget that is not proven says nothing by itself.
      if (trial.candidate.fault != nullptr && 2 * trial.explanation->nearer < trial.explanation->failing) continue;
      const FoundSuspect suspect = found(trial);
      const double share = static_cast<double>(suspect.suspect.explained) / static_cast<double>(suspect.suspect.judged);
      if (share > own + worth_a_hint * (1 - own)) result_.nearest.push_back(suspect);
    }
    std::stable_sort(result_.nearest.begin(), result_.nearest.end(), [](const FoundSuspect& a, const FoundSuspect& b) {
      return static_cast<double>(a.suspect.explained) * static_cast<double>(b.suspect.judged) >
             static_cast<double>(b.suspect.explained) * static_cast<double>(a.suspect.judged);
    });
  }

  const Observation& observation_;
  const Case& input_;
  const SearchLimits limits_;
  const Clock::time_point end_, last_;
  const std::vector<StageRows> telling_, stored_;
  FoundSuspects result_;
};

}  // namespace

FoundSuspects search_suspects(const Observation& observation, const SearchLimits& limits) {
  return Search(observation, limits).run();
}

std::vector<Agreement> agreement(const Observation& observation, const std::vector<FoundSuspect>& suspects,
                                 Clock::time_point end) {
  const Case& input = observation.golden().input;
  const Explainer explainer(observation);
  const std::vector<StageRows> telling = {observation.telling_rows()};
  const std::vector<StageRows> stored = in_parts(observation.every_stored_row());
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
    std::optional<Explanation> explanation;
    if (other)
      explanation = on_parts(explainer, *other, candidate->fault, telling, Until::contradicted, end).explanation;
    if (explanation && explanation->is_whole())
      explanation = on_parts(explainer, *other, candidate->fault, stored, Until::contradicted, end).explanation;
    result.push_back(!explanation              ? Agreement::absent
                     : explanation->is_whole() ? Agreement::matches
                                               : Agreement::contradicted);
  }
  return result;
}

}  // namespace qkcts
