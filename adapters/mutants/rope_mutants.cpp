// SPDX-License-Identifier: Apache-2.0
// QK-ROPE.
#include <algorithm>
#include <utility>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::Side;
using scalar::Turn;

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

// What a fault does to the two lanes of a pair, where they stay in their places.
template <class Real>
struct PairFault : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  // `opposite`: the head turned the other way. Of the span, lane `second` belongs to lane `first`.
  virtual void spoil(std::span<Real> span, std::span<const Real> opposite, std::size_t first,
                     std::size_t second) const = 0;
  void rotate_head(Side side, const Turn<Real>& turn, std::span<Real> head) const override {
    std::vector<Real> other(head.begin(), head.end());
    Turn<Real> back = turn;
    for (Real& sine : back.sine) sine = -sine;
    Base::rotate_head(side, back, other);
    Base::rotate_head(side, turn, head);
    if (this->terms_.rotation.layout != QKCTS_LAYOUT_KEPT) return;
    const std::size_t half = turn.sine.size();
    const std::size_t start = this->terms_.rope.span == QKCTS_SPAN_LAST ? head.size() - 2 * half : 0;
    const bool is_half_split = this->terms_.rope.pairing == QKCTS_HALF_SPLIT;
    for (std::size_t i = 0; i < half; ++i)
      spoil(head.subspan(start), std::span<const Real>(other).subspan(start), is_half_split ? i : 2 * i,
            is_half_split ? i + half : 2 * i + 1);
  }
};

// (a cos - b sin, b cos - a sin): one sign of the four is wrong.
template <class Real>
struct SecondLaneOtherSign : PairFault<Real> {
  using PairFault<Real>::PairFault;
  void spoil(std::span<Real> span, std::span<const Real> opposite, std::size_t, std::size_t second) const override {
    span[second] = opposite[second];
  }
};

template <class Real>
struct PairSwapped : PairFault<Real> {
  using PairFault<Real>::PairFault;
  void spoil(std::span<Real> span, std::span<const Real>, std::size_t first, std::size_t second) const override {
    std::swap(span[first], span[second]);
  }
};

constexpr Mutant table[] = {
    {"partial_rotary_full", "QK-ROPE-04", QKCTS_STAGE_Q_ROPE, "all lanes are rotated", nullptr, kernel<FullSpan>},
    {"rope_freq_table_mismatch", "QK-ROPE-05", QKCTS_STAGE_Q_ROPE,
     "the table is read as if each entry stood there twice", nullptr, kernel<TableMismatch>},
    {"rope_keys_one_early", "QK-ROPE-06", QKCTS_STAGE_K_ROPE, "keys are rotated by the position before theirs", nullptr,
     kernel<KeysOneEarly>},
    {"rope_position_is_index", "QK-ROPE-06", QKCTS_STAGE_Q_ROPE, "position ids are ignored", nullptr,
     kernel<PositionIsIndex>},
    {"rope_second_lane_sign", "QK-ROPE-07", QKCTS_STAGE_Q_ROPE, "b cos - a sin for b cos + a sin in the second lane",
     nullptr, kernel<SecondLaneOtherSign>},
    {"rope_pair_swapped", "QK-ROPE-02", QKCTS_STAGE_Q_ROPE, "the lanes of a pair come back in each other's place",
     nullptr, kernel<PairSwapped>},
};

}  // namespace

std::span<const Mutant> rope_mutants() {
  return table;
}

}  // namespace qkcts::mutants
