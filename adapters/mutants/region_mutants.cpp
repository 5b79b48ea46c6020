// SPDX-License-Identifier: Apache-2.0
// The conditions of QK-MASK that came with ABI 1.1, and QK-HIDDEN.
#include <algorithm>

#include "adapters/mutants/catalogue.hpp"
#include "adapters/mutants/weighted_value.hpp"

namespace qkcts::mutants {

namespace {

using scalar::infinity;
using scalar::QueryRow;

// A kernel in which one of the later conditions is replaced: all but that one, and then another.
template <class Real>
struct RegionFault : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  RegionFault(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
              const qkcts_outputs& outputs, void (*drop)(qkcts_regions&))
      : Base(terms, shape, inputs, outputs) {
    drop(this->terms_.regions);
    given_ = terms.regions;
  }

 protected:
  qkcts_regions given_{};
};

// The chunk of a query is that of its index, not of the key at which it stands.
template <class Real>
struct ChunkOfIndex : RegionFault<Real> {
  ChunkOfIndex(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
               const qkcts_outputs& outputs)
      : RegionFault<Real>(terms, shape, inputs, outputs, [](qkcts_regions& regions) { regions.chunk = 0; }) {}
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    const std::int64_t chunk = this->given_.chunk;
    return scalar::Attention<Real>::visible(b, h, t, k) && (chunk == 0 || k / chunk == t / chunk);
  }
};

// A chunk is read as a window: the last `chunk` keys.
template <class Real>
struct ChunkAsWindow : RegionFault<Real> {
  ChunkAsWindow(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                const qkcts_outputs& outputs)
      : RegionFault<Real>(terms, shape, inputs, outputs, [](qkcts_regions& regions) { regions.chunk = 0; }) {}
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    const std::int64_t chunk = this->given_.chunk;
    return scalar::Attention<Real>::visible(b, h, t, k) && (chunk == 0 || k > t + this->query_offset(b) - chunk);
  }
};

template <class Real>
struct Documents : RegionFault<Real> {
  Documents(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
            const qkcts_outputs& outputs)
      : RegionFault<Real>(terms, shape, inputs, outputs, [](qkcts_regions& regions) { regions.documents = 0; }) {}
  virtual bool seen(std::int64_t b, std::int64_t t, std::int64_t k) const = 0;
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    return scalar::Attention<Real>::visible(b, h, t, k) && (this->given_.documents == 0 || seen(b, t, k));
  }
  std::int64_t of_query(std::int64_t b, std::int64_t t) const {
    return this->documents_[0].template load<std::int64_t>(b, t);
  }
  std::int64_t of_key(std::int64_t b, std::int64_t k) const {
    return this->documents_[1].template load<std::int64_t>(b, k);
  }
};

template <class Real>
struct DocumentsOfFirstEntry : Documents<Real> {
  using Documents<Real>::Documents;
  bool seen(std::int64_t, std::int64_t t, std::int64_t k) const override {
    return this->of_query(0, t) == this->of_key(0, k);
  }
};

// Documents are taken to be in order, so that an earlier one is visible too.
template <class Real>
struct EarlierDocuments : Documents<Real> {
  using Documents<Real>::Documents;
  bool seen(std::int64_t b, std::int64_t t, std::int64_t k) const override {
    return this->of_key(b, k) <= this->of_query(b, t);
  }
};

// The prefix by another rule; the rest of the mask stands.
template <class Real>
struct Prefix : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  virtual bool in_prefix(std::int64_t b, std::int64_t k) const = 0;
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    const std::int64_t place = t + this->query_offset(b);
    if (this->terms_.regions.prefix == 0 || k <= place) return Base::visible(b, h, t, k);
    return in_prefix(b, k) && without_causal(b, h, t, k);
  }
  bool without_causal(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const {
    auto& self = const_cast<Prefix&>(*this);
    self.terms_.mask.causal = 0;
    const bool seen = Base::visible(b, h, t, k);
    self.terms_.mask.causal = 1;
    return seen;
  }
  std::int64_t length(std::int64_t b) const { return this->prefix_len_.template load<std::int64_t>(b); }
};

template <class Real>
struct PrefixOneLonger : Prefix<Real> {
  using Prefix<Real>::Prefix;
  bool in_prefix(std::int64_t b, std::int64_t k) const override { return k <= this->length(b); }
};

template <class Real>
struct PrefixOfFirstEntry : Prefix<Real> {
  using Prefix<Real>::Prefix;
  bool in_prefix(std::int64_t, std::int64_t k) const override { return k < this->length(0); }
};

// The prefix is a second union at the end: it opens what the other conditions hide.
template <class Real>
struct PrefixOverrules : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    const bool prefix = this->terms_.regions.prefix != 0 && k < this->prefix_len_.template load<std::int64_t>(b);
    return prefix || Base::visible(b, h, t, k);
  }
};

// 0 times the value of a hidden key, which is NaN where that value is none.
template <class Real>
struct HiddenValuesMultiplied : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    if (row.empty) return;
    for (std::int64_t k = 0; k < this->shape_.k_len; ++k) {
      if (row.visible[k] != 0) continue;
      add_weighted<Real>(row, k, this->value(row.b, this->kv_head(row.h), k));
    }
  }
};

// The mask is added to the scores: NaN + (-inf) is NaN, and so is the row.
template <class Real>
struct MaskAdded : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void mask_row(QueryRow<Real>& row) override {
    row.masked = row.capped;
    for (std::size_t k = 0; k < row.visible.size(); ++k)
      if (row.visible[k] == 0) row.masked[k] += -infinity<Real>;
  }
};

constexpr Mutant table[] = {
    {"chunk_of_index", "QK-MASK-07", QKCTS_STAGE_MASKED, "the chunk of query i is that of key i, not of key i'",
     nullptr, kernel<ChunkOfIndex>},
    {"chunk_as_window", "QK-MASK-07", QKCTS_STAGE_MASKED, "the last keys instead of those of the chunk", nullptr,
     kernel<ChunkAsWindow>},
    {"documents_of_first_entry", "QK-MASK-08", QKCTS_STAGE_MASKED, "every batch entry uses the documents of the first",
     nullptr, kernel<DocumentsOfFirstEntry>},
    {"documents_earlier_too", "QK-MASK-08", QKCTS_STAGE_MASKED, "keys of documents with a smaller number are visible",
     nullptr, kernel<EarlierDocuments>},
    {"prefix_one_longer", "QK-MASK-09", QKCTS_STAGE_MASKED, "k <= prefix_len for k < prefix_len", nullptr,
     kernel<PrefixOneLonger>},
    {"prefix_of_first_entry", "QK-MASK-09", QKCTS_STAGE_MASKED, "every batch entry uses the prefix of the first",
     nullptr, kernel<PrefixOfFirstEntry>},
    {"prefix_overrules", "QK-MASK-09", QKCTS_STAGE_MASKED, "the prefix is visible whatever the other conditions say",
     nullptr, kernel<PrefixOverrules>},
    {"hidden_values_multiplied", "QK-HIDDEN-01", QKCTS_STAGE_OUTPUT, "0 times the value of a hidden key, NaN or not",
     nullptr, kernel<HiddenValuesMultiplied>},
    {"hidden_mask_added", "QK-HIDDEN-01", QKCTS_STAGE_MASKED, "-inf is added to the score of a hidden key, NaN or not",
     nullptr, kernel<MaskAdded>},
};

}  // namespace

std::span<const Mutant> region_mutants() {
  return table;
}

}  // namespace qkcts::mutants
