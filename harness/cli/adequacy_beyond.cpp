// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/adequacy_beyond.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include <fmt/format.h>

#include "conformance/contract_field.hpp"
#include "harness/cli/separation.hpp"
#include "reference/evaluation.hpp"
#include "vectors/own_profile.hpp"
#include "vectors/separation_search.hpp"

namespace qkcts::cli {
namespace {

// A search costs evaluations of its shape at every step, so the extents of a large case are cut.
qkcts_shape small_shape(qkcts_shape shape) {
  const std::int64_t group = shape.q_heads / shape.kv_heads;
  shape.batch = std::min<std::int64_t>(shape.batch, 2);
  shape.kv_heads = std::min<std::int64_t>(shape.kv_heads, 2);
  shape.q_heads = shape.kv_heads * group;
  shape.q_len = std::min<std::int64_t>(shape.q_len, 8);
  shape.k_len = std::min<std::int64_t>(shape.k_len, 12);
  return shape;
}

struct OpenCell {
  AdequacyCell* cell;
  const AdequacyMutant* mutant;
};

std::vector<OpenCell> open_cells(std::vector<AdequacyRow>& rows, const std::vector<AdequacyMutant>& mutants) {
  std::vector<OpenCell> open;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (AdequacyCell& cell : rows[i].cells)
      if (!(cell.best.separation > 1) && kill_verdict(cell) != KillVerdict::identical)
        open.push_back({&cell, &mutants[i]});
  return open;
}

const AdequacyCase* case_of(const AdequacyCases& cases, const SeparatingPlace& place) {
  for (const AdequacyCase& c : cases.all())
    if (c.corpus == place.corpus && c.slug == place.slug) return &c;
  return nullptr;
}

void search(const OpenCell& open, const AdequacyCases& cases, std::uint32_t steps) {
  AdequacyCell& cell = *open.cell;
  const AdequacyCase* const nearest = case_of(cases, cell.best);
  if (nearest == nullptr) return;  // every comparison was refused
  SeparationSearch search;
  search.own = cases.terms_of(*nearest).contract;
  search.other = search.own;
  search.other.name += "_" + open.mutant->id;
  search.family = nearest->family;
  search.format = nearest->format;
  search.shape = small_shape(nearest->shape);
  const std::optional<qkcts_contract> wrong = open.mutant->contract(search.own.terms, search.shape);
  if (!wrong) return;
  search.other.terms = *wrong;
  search.steps = steps;
  try {
    search.profile = load_profile(cell.profile);
    const SearchResult found = search_separation(search);
    const double best = found.improvements.back().separation;
    if (best > cell.beyond || cell.beyond_where.empty()) {
      cell.beyond = std::max(cell.beyond, best);
      cell.beyond_where = fmt::format("a search of {} steps from {}", steps, nearest->slug);
    }
  } catch (const InputError&) {  // the family has no draw of this shape, or its start no evidence
    return;
  } catch (const UndecidedError&) {
    return;
  }
}

}  // namespace

void look_beyond(std::vector<AdequacyRow>& rows, const AdequacyCases& others,
                 const std::vector<AdequacyMutant>& mutants, unsigned jobs) {
  const std::vector<OpenCell> open = open_cells(rows, mutants);
  std::vector<AdequacyMutant> unkilled;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (std::any_of(open.begin(), open.end(), [&](const OpenCell& cell) { return cell.mutant == &mutants[i]; }))
      unkilled.push_back(mutants[i]);
  for (const AdequacyRow& found : hunt(others, unkilled, HuntEffort::first, jobs))
    for (const AdequacyCell& cell : found.cells)
      for (const OpenCell& mine : open)
        if (mine.mutant->id == found.id && mine.cell->profile == cell.profile && !cell.best.slug.empty()) {
          mine.cell->beyond = cell.best.separation;
          mine.cell->beyond_where = fmt::format("{} of {}", cell.best.slug, others.corpora()[cell.best.corpus].path);
        }
}

void search_beyond(std::vector<AdequacyRow>& rows, const AdequacyCases& cases,
                   const std::vector<AdequacyMutant>& mutants, std::uint32_t steps, unsigned jobs) {
  const std::vector<OpenCell> open = open_cells(rows, mutants);
  std::atomic<std::size_t> next = 0;
  const auto loop = [&] {
    for (std::size_t i = next++; i < open.size(); i = next++) search(open[i], cases, steps);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < jobs; ++i) threads.emplace_back(loop);
  loop();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace qkcts::cli
