// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/adequacy_cases.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include <fmt/format.h>

#include "conformance/clause.hpp"
#include "conformance/contract_field.hpp"
#include "conformance/machine_profile.hpp"
#include "conformance/neighbour.hpp"
#include "harness/cli/separation.hpp"
#include "vectors/case_separation.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts::cli {
namespace {

// Of "q_norm.eps=0", "norm.eps=0" (q and k together) or "mask.window=null".
std::string clause_of(const std::string& neighbour) {
  std::string path = neighbour.substr(0, neighbour.find('='));
  if (path.rfind("norm.", 0) == 0) path = "q_" + path;
  for (const ContractField& field : contract_field_table())
    if (field.path() == path) return std::string(field.clause);
  for (const NormSection& section : norm_sections())
    if (section.path() == path) return std::string(section.clause);
  return path == "mask.window" ? "QK-MASK-05" : "";
}

std::vector<std::string> ordinary_profiles() {
  std::vector<std::string> names;
  for (const Format format : {Format::binary64, Format::binary32, Format::bfloat16, Format::binary16})
    for (const Profile& profile : profiles_for(format)) names.push_back(profile.name);
  return names;
}

double cost_of(const qkcts_shape& s) {
  const auto tokens = static_cast<double>(s.batch * (s.q_heads * s.q_len + s.kv_heads * s.k_len));
  const auto scores = static_cast<double>(s.batch * s.q_heads * s.q_len * s.k_len);
  return (tokens + 4 * scores) * static_cast<double>(s.head_dim + s.v_head_dim);
}

}  // namespace

bool same_terms(const qkcts_contract& a, const qkcts_contract& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

AdequacyCases::AdequacyCases(const std::vector<std::string>& files, const std::string& profiles, Declared declared)
    : declared_(declared) {
  for (const std::string& file : files) {
    check_untrusted_corpus(file);
    readers_.push_back(std::make_unique<CorpusReader>(file));
    const CorpusInfo& info = readers_.back()->info();
    corpora_.push_back({file, info.suite, info.digest, readers_.back()->slugs().size()});
  }
  const std::vector<std::string> ordinary = ordinary_profiles();
  std::set<std::string> present;
  for (const std::unique_ptr<CorpusReader>& reader : readers_)
    for (const std::string& slug : reader->slugs())
      for (const std::string& name : reader->outline(slug).profiles) present.insert(name);
  for (const std::string& name : ordinary)
    if (present.erase(name) != 0 && glob_matches(profiles, name)) profiles_.push_back(name);
  if (!profiles.empty())
    for (const std::string& name : present)
      if (glob_matches(profiles, name)) profiles_.push_back(name);
  for (std::size_t corpus = 0; corpus < readers_.size(); ++corpus)
    for (const std::string& slug : readers_[corpus]->slugs()) add(corpus, slug);
}

GoldenCase AdequacyCases::read(const AdequacyCase& c) const {
  return readers_[c.corpus]->read(c.slug);
}

std::size_t AdequacyCases::index_of_terms(const Contract& contract) {
  const qkcts_contract terms = normalised(contract.terms);
  for (std::size_t i = 0; i < terms_.size(); ++i)
    if (same_terms(terms_[i].contract.terms, terms)) return i;
  SharedTerms& shared = terms_.emplace_back();
  shared.contract = contract;
  shared.contract.terms = terms;
  for (Neighbour& neighbour : neighbours(terms)) {
    std::string clause = clause_of(neighbour.name);
    shared.neighbours.push_back({std::move(neighbour.name), std::move(clause), neighbour.terms});
  }
  return terms_.size() - 1;
}

void AdequacyCases::add(std::size_t corpus, const std::string& slug) {
  const GoldenCase golden = readers_[corpus]->read(slug);
  AdequacyCase c;
  c.corpus = corpus;
  c.slug = slug;
  c.family = golden.family;
  c.format = golden.input.inputs.format;
  c.shape = golden.input.shape;
  c.cost = cost_of(c.shape);
  bool is_asked = false;
  for (const std::string& name : golden.profiles) {
    const auto found = std::find(profiles_.begin(), profiles_.end(), name);
    c.columns.push_back(found == profiles_.end() ? no_column : static_cast<std::size_t>(found - profiles_.begin()));
    is_asked = is_asked || found != profiles_.end();
  }
  if (!is_asked || !is_wanted(golden.input.contract.terms)) return;
  c.terms = index_of_terms(golden.input.contract);
  add_stored(c, golden);
  cases_.push_back(std::move(c));
}

void AdequacyCases::add_stored(AdequacyCase& c, const GoldenCase& golden) const {
  c.stores = golden.jacobian.has_value();
  if (!c.stores) return;
  const std::vector<SharedTerms::Other>& others = terms_[c.terms].neighbours;
  c.stored.resize(others.size());
  const SeparationRecord& record = golden.separation;
  for (std::size_t i = 0; i < record.neighbours.size(); ++i) {
    const auto found = std::find_if(others.begin(), others.end(), [&](const SharedTerms::Other& other) {
      return other.name == record.neighbours[i];
    });
    if (found == others.end()) continue;  // written by a version that had other neighbours
    PlacesByProfile& places = c.stored[static_cast<std::size_t>(found - others.begin())];
    places.resize(profiles_.size());
    for (std::size_t profile = 0; profile < golden.profiles.size(); ++profile) {
      if (c.columns[profile] == no_column) continue;
      SeparatingPlace& best = places[c.columns[profile]].emplace();
      best.slug = c.slug;
      best.corpus = c.corpus;
      for (const qkcts_stage stage : all_stages) {
        if (!golden.stages[stage].present) continue;
        const SeparationEntry entry = separation_entry(golden, record, i, stage, profile);
        const auto value = static_cast<double>(entry.value);
        if (!(value > best.separation)) continue;  // no_separation is a NaN
        best.separation = value;
        best.stage = stage;
        best.row = entry.row;
        best.column = entry.column;
      }
    }
  }
}

std::vector<ClauseSeparation> clause_separations(const AdequacyCases& cases) {
  std::map<std::string, ClauseSeparation> found;
  for (const AdequacyCase& c : cases.all()) {
    const std::vector<SharedTerms::Other>& others = cases.terms_of(c).neighbours;
    for (std::size_t i = 0; i < c.stored.size(); ++i) {
      if (c.stored[i].empty()) continue;
      ClauseSeparation& clause = found[others[i].clause];
      clause.best.resize(cases.profiles().size());
      for (std::size_t column = 0; column < c.stored[i].size(); ++column) {
        const std::optional<SeparatingPlace>& place = c.stored[i][column];
        if (place && (!clause.best[column] || place->separation > clause.best[column]->separation))
          clause.best[column] = place;
      }
    }
  }
  // In the order of the table of clauses.
  std::vector<ClauseSeparation> list;
  for (const Clause& clause : clauses())
    if (const auto entry = found.find(std::string(clause.id)); entry != found.end()) {
      entry->second.clause = clause.id;
      list.push_back(std::move(entry->second));
    }
  return list;
}

}  // namespace qkcts::cli
