// SPDX-License-Identifier: Apache-2.0
// The cases of several corpora with their stored separations, as `adequacy` looks through them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/adequacy.hpp"
#include "vectors/corpus_reader.hpp"

namespace qkcts::cli {

// The terms of cases that share them, and those of their neighbours.
struct SharedTerms {
  Contract contract;  // its terms are normalised
  struct Other {
    std::string name, clause;
    qkcts_contract terms;
  };
  std::vector<Other> neighbours;
};

// What a case says of one neighbour, by column of the report; nothing where the case does not judge by that profile.
using PlacesByProfile = std::vector<std::optional<SeparatingPlace>>;

struct AdequacyCase {
  std::size_t corpus = 0;
  std::string slug, family;
  Format format = Format::binary32;
  qkcts_shape shape{};
  std::size_t terms = 0;             // of AdequacyCases::terms
  std::vector<std::size_t> columns;  // column of each profile of the case; no_column: not asked for
  double cost = 0;                   // of an evaluation, in arbitrary units
  bool stores = false;               // separations stand in the file
  // [neighbour of the terms]; empty: the file has none of it.
  std::vector<PlacesByProfile> stored;
};
constexpr std::size_t no_column = SIZE_MAX;

// Which contracts are wanted.
enum class Declared : std::uint8_t {
  any,
  no_rounding,  // those that declare no rounding point
};

class AdequacyCases {
 public:
  // `profiles`: a glob; empty: the shipped profiles by which cases are judged unless a plan says otherwise. Throws
  // InputError.
  AdequacyCases(const std::vector<std::string>& files, const std::string& profiles, Declared declared = Declared::any);

  const std::vector<std::string>& profiles() const { return profiles_; }  // columns
  const std::vector<AdequacyCorpus>& corpora() const { return corpora_; }
  const std::vector<AdequacyCase>& all() const { return cases_; }
  const SharedTerms& terms_of(const AdequacyCase& c) const { return terms_[c.terms]; }
  const std::vector<SharedTerms>& terms() const { return terms_; }
  GoldenCase read(const AdequacyCase& c) const;

 private:
  bool is_wanted(const qkcts_contract& terms) const {
    return declared_ == Declared::any || !has_rounding_points(terms.rounding);
  }
  std::size_t index_of_terms(const Contract& contract);
  void add(std::size_t corpus, const std::string& slug);
  void add_stored(AdequacyCase& c, const GoldenCase& golden) const;

  Declared declared_;
  std::vector<std::unique_ptr<CorpusReader>> readers_;
  std::vector<AdequacyCorpus> corpora_;
  std::vector<std::string> profiles_;
  std::vector<SharedTerms> terms_;
  std::vector<AdequacyCase> cases_;
};

// Of every clause that is a field: the best that stored separations say of it.
std::vector<ClauseSeparation> clause_separations(const AdequacyCases& cases);

bool same_terms(const qkcts_contract& a, const qkcts_contract& b);  // both normalised

}  // namespace qkcts::cli
