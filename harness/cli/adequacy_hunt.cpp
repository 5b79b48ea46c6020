// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/adequacy_hunt.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <thread>
#include <tuple>

#include "conformance/contract_field.hpp"
#include "conformance/neighbour.hpp"
#include "harness/cli/separation.hpp"
#include "reference/refusal.hpp"
#include "reference/separation.hpp"
#include "vectors/progress_line.hpp"
#include "vectors/relation_recipe.hpp"

namespace qkcts::cli {
namespace {

// What no case kills is compared once more in so many cases, over all rows that these store: a stored separation is
// that of a few rows.
constexpr std::size_t compared_whole = 8;

// A kill is looked at in as many of the likeliest cases, unless every case is.
constexpr std::size_t likeliest = 6;

// A wrong contract for the cases of one right one. Mutants that come to the same there share it.
struct Target {
  std::size_t terms = 0;
  qkcts_contract wrong{};
  std::optional<std::size_t> neighbour;  // of these terms
  bool is_identity = false;
  std::vector<std::size_t> kin;  // neighbours that differ in a field in which the target differs too
};

enum class Standing : std::uint8_t { open, compared, refused, untaken };

// Of a target on a case.
struct Comparison {
  Standing standing = Standing::open;
  PlacesByProfile places;  // by column
  double promise = 0;      // the larger, the sooner it is made
};

bool is_identity(const qkcts_contract& own, const qkcts_contract& wrong) {
  const RelationRecipe& order = relation_recipe(RelationKind::rotation_order);
  if (!order.fault(own, {}, Format::binary32).empty()) return false;
  qkcts_contract exchanged = own;
  order.terms(exchanged, Part::second);
  return same_terms(normalised(exchanged), wrong);
}

// Neighbours "q_norm.eps=0", or "norm.eps=0" of both, beside a target that changes an epsilon.
std::vector<std::size_t> kin_of(const SharedTerms& shared, const qkcts_contract& wrong) {
  Contract other = shared.contract;
  other.terms = wrong;
  std::vector<std::size_t> kin;
  for (const ClauseDifference& difference : contract_differences(shared.contract, other)) {
    const std::string key = difference.field.substr(difference.field.find('.') + 1);
    for (std::size_t i = 0; i < shared.neighbours.size(); ++i) {
      const std::string path = shared.neighbours[i].name.substr(0, shared.neighbours[i].name.find('='));
      if (path == difference.field || path == "norm." + key) kin.push_back(i);
    }
  }
  return kin;
}

class Hunt {
 public:
  Hunt(const AdequacyCases& cases, const std::vector<AdequacyMutant>& mutants, HuntEffort effort, unsigned jobs)
      : cases_(cases), mutants_(mutants), effort_(effort), jobs_(jobs) {
    for (const AdequacyCase& c : cases.all()) add_targets(c);
    for (std::size_t i = 0; i < cases.all().size(); ++i) compare_stored(i);
  }

  // The likeliest cases of every cell that has not enough, more of them each time, until none asks for any.
  void run() {
    for (std::size_t each = 2;; each *= 2) {
      const std::vector<Work> work = chosen(each);
      if (work.empty()) break;
      perform(work, Rows::some);
    }
    perform(nearest_to_a_kill(), Rows::all);
  }

  std::vector<AdequacyRow> rows() const {
    std::vector<AdequacyRow> rows;
    for (std::size_t mutant = 0; mutant < mutants_.size(); ++mutant) {
      const AdequacyMutant& m = mutants_[mutant];
      AdequacyRow& row = rows.emplace_back(AdequacyRow{m.id, m.clause, m.kind, m.right, m.wrong, m.invisible, {}});
      for (std::size_t column = 0; column < cases_.profiles().size(); ++column)
        if (AdequacyCell cell = cell_of(mutant, column); cell.cases > 0) row.cells.push_back(std::move(cell));
    }
    return rows;
  }

 private:
  enum class Rows : std::uint8_t { some, all };
  struct Work {
    std::size_t index = 0;  // of the case
    std::vector<std::size_t> targets;
  };

  void perform(const std::vector<Work>& work, Rows rows) {
    ProgressLine progress("compared", stderr);
    std::atomic<std::size_t> next = 0, done = 0;
    const auto loop = [&](bool reports) {
      for (std::size_t i = next++; i < work.size(); i = next++) {
        compare(work[i], rows);
        ++done;
        if (reports)
          progress.update(done, work.size(), static_cast<double>(done) / static_cast<double>(work.size()),
                          cases_.all()[work[i].index].slug);
      }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < jobs_; ++i) threads.emplace_back(loop, false);
    loop(true);
    for (std::thread& thread : threads) thread.join();
  }

  void add_targets(const AdequacyCase& c) {
    for (std::size_t i = 0; i < of_case_.size(); ++i) {
      const AdequacyCase& other = cases_.all()[i];
      if (other.terms != c.terms || std::memcmp(&other.shape, &c.shape, sizeof c.shape) != 0) continue;
      of_case_.push_back(std::vector<std::size_t>(of_case_[i]));
      return;
    }
    std::vector<std::size_t> of_mutant;
    for (const AdequacyMutant& mutant : mutants_) {
      const std::optional<qkcts_contract> wrong = mutant.contract(cases_.terms_of(c).contract.terms, c.shape);
      of_mutant.push_back(wrong ? target_of(c.terms, normalised(*wrong)) : no_target);
    }
    of_case_.push_back(std::move(of_mutant));
  }

  std::size_t target_of(std::size_t terms, const qkcts_contract& wrong) {
    std::vector<std::size_t>& known = of_terms_[terms];
    for (const std::size_t i : known)
      if (same_terms(targets_[i].wrong, wrong)) return i;
    known.push_back(targets_.size());
    const SharedTerms& shared = cases_.terms()[terms];
    Target& target = targets_.emplace_back(Target{terms, wrong, std::nullopt, false, {}});
    for (std::size_t i = 0; i < shared.neighbours.size(); ++i)
      if (same_terms(shared.neighbours[i].terms, wrong)) target.neighbour = i;
    target.is_identity = is_identity(shared.contract.terms, wrong);
    if (!target.neighbour) target.kin = kin_of(shared, wrong);
    return targets_.size() - 1;
  }

  // What the file says already, and how much the case promises of the rest.
  void compare_stored(std::size_t index) {
    const AdequacyCase& c = cases_.all()[index];
    std::map<std::size_t, Comparison>& comparisons = comparisons_.emplace_back();
    for (const std::size_t target : of_case_[index]) {
      if (target == no_target || comparisons.count(target) != 0) continue;
      const Target& t = targets_[target];
      Comparison& comparison = comparisons[target];
      if (t.neighbour && c.stores) {
        comparison.places = c.stored[*t.neighbour];
        comparison.standing = comparison.places.empty() ? Standing::untaken : Standing::compared;
        continue;
      }
      double seen = 0.5;  // of kin that no file speaks of nothing is known
      for (const std::size_t kin : t.kin) {
        if (!c.stores || c.stored[kin].empty()) continue;
        for (const std::optional<SeparatingPlace>& place : c.stored[kin])
          if (place) seen = std::max(seen, place->separation);
      }
      // Beyond a few hundred the smaller case is as good.
      comparison.promise = std::log2(std::min(seen, 256.0)) - std::log2(c.cost) / 4;
    }
  }

  bool is_enough(const AdequacyCell& cell) const {
    if (cell.compared == cell.cases) return true;
    if (effort_ == HuntEffort::all || !(cell.best.separation > 1)) return false;
    return effort_ == HuntEffort::first || cell.compared >= likeliest;
  }

  AdequacyCell cell_of(std::size_t mutant, std::size_t column) const {
    AdequacyCell cell;
    cell.profile = cases_.profiles()[column];
    for (std::size_t i = 0; i < cases_.all().size(); ++i) {
      const AdequacyCase& c = cases_.all()[i];
      const std::size_t target = of_case_[i][mutant];
      if (target == no_target || std::find(c.columns.begin(), c.columns.end(), column) == c.columns.end()) continue;
      const Comparison& comparison = comparisons_[i].at(target);
      if (comparison.standing == Standing::untaken) continue;
      ++cell.cases;
      if (targets_[target].is_identity) ++cell.identities;
      if (comparison.standing == Standing::open) continue;
      ++cell.compared;
      if (comparison.standing == Standing::refused) ++cell.refused;
      if (comparison.places.size() <= column || !comparison.places[column]) continue;
      const SeparatingPlace& place = *comparison.places[column];
      if (cell.best.slug.empty() || place.separation > cell.best.separation) cell.best = place;
    }
    return cell;
  }

  std::vector<Work> chosen(std::size_t each) const {
    std::map<std::size_t, std::vector<std::size_t>> by_case;
    for (std::size_t mutant = 0; mutant < mutants_.size(); ++mutant)
      for (std::size_t column = 0; column < cases_.profiles().size(); ++column) {
        if (is_enough(cell_of(mutant, column))) continue;
        std::vector<std::pair<double, std::size_t>> open;  // promise, case
        for (std::size_t i = 0; i < cases_.all().size(); ++i) {
          const AdequacyCase& c = cases_.all()[i];
          const std::size_t target = of_case_[i][mutant];
          if (target == no_target || std::find(c.columns.begin(), c.columns.end(), column) == c.columns.end()) continue;
          const Comparison& comparison = comparisons_[i].at(target);
          if (comparison.standing == Standing::open) open.emplace_back(-comparison.promise, i);
        }
        std::stable_sort(open.begin(), open.end());
        for (std::size_t i = 0; i < std::min(each, open.size()); ++i) {
          const std::size_t index = open[i].second;
          std::vector<std::size_t>& targets = by_case[index];
          const std::size_t target = of_case_[index][mutant];
          if (std::find(targets.begin(), targets.end(), target) == targets.end()) targets.push_back(target);
        }
      }
    std::vector<Work> work;
    for (auto& [index, targets] : by_case) work.push_back({index, std::move(targets)});
    return work;
  }

  // Of every cell that is not killed.
  std::vector<Work> nearest_to_a_kill() const {
    std::map<std::size_t, std::vector<std::size_t>> by_case;
    for (std::size_t mutant = 0; mutant < mutants_.size(); ++mutant)
      for (std::size_t column = 0; column < cases_.profiles().size(); ++column) {
        if (cell_of(mutant, column).best.separation > 1) continue;
        std::vector<std::tuple<double, double, std::size_t>> compared;  // separation, cost, case
        for (std::size_t i = 0; i < cases_.all().size(); ++i) {
          const std::size_t target = of_case_[i][mutant];
          if (target == no_target || targets_[target].is_identity) continue;
          const Comparison& comparison = comparisons_[i].at(target);
          if (comparison.places.size() > column && comparison.places[column])
            compared.emplace_back(-comparison.places[column]->separation, cases_.all()[i].cost, i);
        }
        std::sort(compared.begin(), compared.end());
        for (std::size_t i = 0; i < std::min(compared_whole, compared.size()); ++i) {
          const std::size_t index = std::get<2>(compared[i]);
          std::vector<std::size_t>& targets = by_case[index];
          if (std::find(targets.begin(), targets.end(), of_case_[index][mutant]) == targets.end())
            targets.push_back(of_case_[index][mutant]);
        }
      }
    std::vector<Work> work;
    for (auto& [index, targets] : by_case) work.push_back({index, std::move(targets)});
    return work;
  }

  // Each comparison is written by one thread; the map is not changed.
  void compare(const Work& work, Rows rows) {
    const AdequacyCase& c = cases_.all()[work.index];
    const GoldenCase golden = cases_.read(c);
    const CaseView view = view_of(golden);
    const Separator separator(golden.input, view, profiles_named(golden.profiles, golden.own_profiles));
    for (const std::size_t target : work.targets) {
      Comparison& comparison = comparisons_[work.index].at(target);
      const std::optional<Case> other = case_under(golden.input, targets_[target].wrong);
      if (!other) {
        comparison.standing = Standing::untaken;
        continue;
      }
      if (comparison.standing == Standing::open) comparison.standing = Standing::refused;
      try {
        comparison.places = places_of(c, rows == Rows::all ? separator.to(*other) : separator.quickly_to(*other));
        comparison.standing = Standing::compared;
      } catch (const UndecidedError&) {
      } catch (const InputError&) {
      }
    }
  }

  PlacesByProfile places_of(const AdequacyCase& c, const SeparationTable& table) const {
    PlacesByProfile places(cases_.profiles().size());
    for (std::size_t profile = 0; profile < c.columns.size(); ++profile) {
      if (c.columns[profile] == no_column) continue;
      SeparatingPlace& best = places[c.columns[profile]].emplace();
      best.slug = c.slug;
      best.corpus = c.corpus;
      for (const qkcts_stage stage : all_stages) {
        if (table[stage].empty() || !(table[stage][profile].value > best.separation)) continue;
        const Separation& found = table[stage][profile];
        best.separation = found.value;
        best.stage = stage;
        best.row = found.row;
        best.column = found.column;
      }
    }
    return places;
  }

  static constexpr std::size_t no_target = SIZE_MAX;

  const AdequacyCases& cases_;
  const std::vector<AdequacyMutant>& mutants_;
  const HuntEffort effort_;
  const unsigned jobs_;
  std::vector<Target> targets_;
  std::map<std::size_t, std::vector<std::size_t>> of_terms_;    // terms: targets
  std::vector<std::vector<std::size_t>> of_case_;               // [case][mutant]: target, or no_target
  std::vector<std::map<std::size_t, Comparison>> comparisons_;  // [case][target]
};

}  // namespace

std::vector<AdequacyRow> hunt(const AdequacyCases& cases, const std::vector<AdequacyMutant>& mutants, HuntEffort effort,
                              unsigned jobs) {
  Hunt work(cases, mutants, effort, jobs);
  work.run();
  return work.rows();
}

}  // namespace qkcts::cli
