// SPDX-License-Identifier: Apache-2.0
#include "vectors/generate_workers.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "reference/attention.hpp"
#include "reference/point_overflow.hpp"
#include "vectors/generate_parts.hpp"
#include "vectors/generate_relations.hpp"
#include "vectors/input_family.hpp"

namespace qkcts {
namespace {

constexpr auto stop_interval = std::chrono::milliseconds(100);

// What is made for a relation keeps to that and promises nothing else.
std::string promise_fault(const PlannedCase& planned, const GoldenCase& golden) {
  return planned.member ? std::string() : input_family(planned.family).broken(golden);
}

// With the relations that the case completes. A second case whose only relation says nothing is not kept.
void seal(const PlannedCase& planned, GoldenCase golden, Tier tier, CaseOutcome& outcome) {
  SealedRelations sealed = seal_relations(planned, golden, tier);
  outcome.says_nothing = std::move(sealed.says_nothing);
  outcome.refusal = std::move(sealed.refusal);
  outcome.relations = std::move(sealed.relations);
  const bool second = planned.member && planned.member->part == Part::second;
  if (outcome.refusal.empty() && !(second && outcome.relations.empty())) outcome.golden = std::move(golden);
}

CaseOutcome computed(const PlannedCase& planned, Tier tier) {
  CaseOutcome outcome;
  try {
    GoldenCase golden = make_golden(planned, outcome.dropped, tier);
    if (golden.profiles.empty()) {
      outcome.refusal = unjudged;
    } else if (std::string broken = promise_fault(planned, golden); !broken.empty()) {
      outcome.refusal = fmt::format("the promise of family {} is broken: {}", planned.family, broken);
    } else {
      seal(planned, std::move(golden), tier, outcome);
    }
  } catch (const UndecidedError& undecided) {
    outcome.refusal = undecided.what();
  } catch (const PointOverflow& overflow) {
    outcome.refusal = overflow.what();
  } catch (const RelationInapplicable& inapplicable) {
    outcome.says_nothing.push_back(fmt::format("{}: {}", planned.slug, inapplicable.what()));
  } catch (const InputError& error) {
    if (planned.member) {  // the other contract has no meaning for these inputs: epsilon 0 for a row of zeros, say
      outcome.says_nothing.push_back(fmt::format("{}: {}", planned.slug, error.what()));
      return outcome;
    }
    outcome.error = std::make_exception_ptr(InputError(fmt::format("{}: {}", planned.slug, error.what())));
  } catch (...) {
    outcome.error = std::current_exception();
  }
  return outcome;
}

CaseOutcome work_on(const PlannedCase& planned, std::size_t index, Tier tier, CaseParts* parts) {
  if (parts == nullptr) return computed(planned, tier);
  try {
    if (std::optional<CaseOutcome> kept = parts->load(index, planned)) return std::move(*kept);
    CaseOutcome outcome = computed(planned, tier);
    if (!outcome.error) parts->keep(index, planned, outcome);
    return outcome;
  } catch (...) {
    CaseOutcome outcome;
    outcome.error = std::current_exception();
    return outcome;
  }
}

}  // namespace

GenerateWorkers::GenerateWorkers(const Plan& plan, unsigned jobs, Tier tier, CaseParts* parts)
    : plan_(plan), tier_(tier), parts_(parts), order_(plan) {
  for (unsigned i = 0; i < std::max(1U, jobs); ++i) threads_.emplace_back([this] { run(); });
}

GenerateWorkers::~GenerateWorkers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::optional<CaseOutcome> GenerateWorkers::take(std::size_t index, const std::function<bool()>& stopped) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (stopped && stopped()) {
      stop_ = true;
      return std::nullopt;
    }
    if (outcomes_.find(index) != outcomes_.end()) break;
    changed_.wait_for(lock, stop_interval, [&] { return outcomes_.find(index) != outcomes_.end(); });
  }
  CaseOutcome outcome = std::move(outcomes_.extract(index).mapped());
  order_.take(index);
  changed_.notify_all();
  return outcome;
}

void GenerateWorkers::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    std::optional<std::size_t> index;
    changed_.wait(lock, [&] { return stop_ || order_.all_started() || (index = order_.start()); });
    if (!index) return;
    lock.unlock();
    CaseOutcome outcome = work_on(plan_.cases[*index], *index, tier_, parts_);
    lock.lock();
    order_.finish(*index);
    outcomes_.emplace(*index, std::move(outcome));
    changed_.notify_all();
  }
}

}  // namespace qkcts
