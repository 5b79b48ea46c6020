// SPDX-License-Identifier: Apache-2.0
// QK-ROPE.
#include <algorithm>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::Side;
using scalar::Turn;

template <class Real>
struct Skipped : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  void rotate_head(Side, const Turn<Real>&, std::span<Real>) const override {}
};

template <class Real>
struct Backwards : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void rotate_head(Side side, const Turn<Real>& turn, std::span<Real> head) const override {
    Turn<Real> back = turn;
    for (Real& s : back.sine) s = -s;
    Base::rotate_head(side, back, head);
  }
};

// All D lanes turn; the angles of the rotated span begin again behind it.
template <class Real>
struct FullSpan : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void rotate_head(Side side, const Turn<Real>& turn, std::span<Real> head) const override {
    Turn<Real> wide = turn;
    for (std::size_t i = turn.sine.size(); i < head.size() / 2; ++i) {
      wide.cosine.push_back(wide.cosine[i - turn.cosine.size()]);
      wide.sine.push_back(wide.sine[i - turn.sine.size()]);
    }
    Base::rotate_head(side, wide, head);
  }
};

// Lane i of the half-split rotation takes the table entry of pair floor(i/2), as an interleaved table would hold it.
template <class Real>
struct TableMismatch : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void rotate_head(Side side, const Turn<Real>& turn, std::span<Real> head) const override {
    Turn<Real> other = turn;
    for (std::size_t i = 0; i < turn.sine.size() && this->terms_.rope.pairing == QKCTS_HALF_SPLIT; ++i) {
      other.cosine[i] = turn.cosine[i / 2];
      other.sine[i] = turn.sine[i / 2];
    }
    Base::rotate_head(side, other, head);
  }
};

// Keys stand one position early (position 0 stays), as after an off-by-one in a cache.
template <class Real>
struct KeysOneEarly : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  std::int64_t position_of(Side side, std::int64_t b, std::int64_t t) const override {
    const std::int64_t position = Base::position_of(side, b, t);
    return side == Side::key ? std::max<std::int64_t>(position - 1, 0) : position;
  }
};

// The position ids are ignored: token t stands at position t.
template <class Real>
struct PositionIsIndex : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  std::int64_t position_of(Side, std::int64_t, std::int64_t t) const override {
    const std::size_t axis = this->terms_.rotation.tables == QKCTS_TABLES_PER_HEAD ? 1 : 0;
    return this->cos_.present() ? std::min(t, this->cos_.extent(axis) - 1) : t;
  }
};

constexpr Mutant table[] = {
    {"rope_before_norm", "QK-ROPE-01", QKCTS_STAGE_Q_NORM, "the rotation comes before the norm",
     [](qkcts_contract& terms, const qkcts_shape&) {
       if (terms.rope.order == QKCTS_NORM_THEN_ROPE) terms.rope.order = QKCTS_ROPE_THEN_NORM;
     }},
    {"rope_after_norm", "QK-ROPE-01", QKCTS_STAGE_Q_ROPE, "the rotation comes after the norm",
     [](qkcts_contract& terms, const qkcts_shape&) {
       if (terms.rope.order == QKCTS_ROPE_THEN_NORM) terms.rope.order = QKCTS_NORM_THEN_ROPE;
     }},
    {"rope_skipped", "QK-ROPE-01", QKCTS_STAGE_Q_ROPE, "nothing is rotated", nullptr, kernel<Skipped>},
    {"rope_interleaved_for_half", "QK-ROPE-02", QKCTS_STAGE_Q_ROPE, "neighbouring lanes turn together",
     [](qkcts_contract& terms, const qkcts_shape&) { terms.rope.pairing = QKCTS_INTERLEAVED; }},
    {"rope_half_for_interleaved", "QK-ROPE-02", QKCTS_STAGE_Q_ROPE, "lanes half a span apart turn together",
     [](qkcts_contract& terms, const qkcts_shape&) { terms.rope.pairing = QKCTS_HALF_SPLIT; }},
    {"rope_output_concat", "QK-ROPE-02", QKCTS_STAGE_Q_ROPE,
     "interleaved pairs are written back as all first, then all second components",
     [](qkcts_contract& terms, const qkcts_shape&) {
       if (terms.rope.pairing == QKCTS_INTERLEAVED) terms.rotation.layout = QKCTS_LAYOUT_DEINTERLEAVED;
     }},
    {"rope_span_last_for_first", "QK-ROPE-03", QKCTS_STAGE_Q_ROPE, "the other end of the head is rotated",
     [](qkcts_contract& terms, const qkcts_shape&) { terms.rope.span ^= 1u; }},
    {"partial_rotary_full", "QK-ROPE-04", QKCTS_STAGE_Q_ROPE, "all lanes are rotated", nullptr, kernel<FullSpan>},
    {"rope_freq_table_mismatch", "QK-ROPE-05", QKCTS_STAGE_Q_ROPE,
     "the table is read as if each entry stood there twice", nullptr, kernel<TableMismatch>},
    {"rope_sign", "QK-ROPE-06", QKCTS_STAGE_Q_ROPE, "the rotation turns the other way", nullptr, kernel<Backwards>},
    {"rope_keys_one_early", "QK-ROPE-06", QKCTS_STAGE_K_ROPE, "keys are rotated by the position before theirs", nullptr,
     kernel<KeysOneEarly>},
    {"rope_position_is_index", "QK-ROPE-06", QKCTS_STAGE_Q_ROPE, "position ids are ignored", nullptr,
     kernel<PositionIsIndex>},
};

}  // namespace

std::span<const Mutant> rope_mutants() {
  return table;
}

}  // namespace qkcts::mutants
