// SPDX-License-Identifier: Apache-2.0
// QK-ROPE.
#include <algorithm>

#include "adapters/mutants/catalogue.hpp"
#include "adapters/scalar/rope.hpp"

namespace qkcts::mutants {

namespace {

using scalar::Side;

// What a faulty rotation does to one head, given the row of the tables that it should use.
template <class Real>
struct RotationFault : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;

  virtual std::int64_t table_row(Side, std::int64_t position) const { return position; }
  virtual void turn(std::vector<Real>& cosine, std::vector<Real>& sine, std::span<Real> head) const = 0;

  void rotate_token(Side side, std::int64_t b, std::int64_t t, std::span<Real> token) override {
    const auto position = this->position_[static_cast<std::size_t>(side)].template load<std::int64_t>(b, t);
    const std::int64_t row = table_row(side, position);
    const auto dim = static_cast<std::size_t>(this->shape_.head_dim);
    for (std::size_t first = 0; first < token.size(); first += dim) {
      std::vector<Real> cosine, sine;
      for (std::int64_t i = 0; i < scalar::rotated_lanes(this->terms_.rope, this->shape_.head_dim) / 2; ++i) {
        cosine.push_back(this->cos_.template load<Real>(row, i));
        sine.push_back(this->sin_.template load<Real>(row, i));
      }
      turn(cosine, sine, token.subspan(first, dim));
    }
  }

  void turn_with(const qkcts_rope& rope, const std::vector<Real>& cosine, const std::vector<Real>& sine,
                 std::span<Real> head) const {
    scalar::rotate(rope, std::span<const Real>(cosine), std::span<const Real>(sine), head);
  }
};

template <class Real>
struct Skipped : RotationFault<Real> {
  using RotationFault<Real>::RotationFault;
  void turn(std::vector<Real>&, std::vector<Real>&, std::span<Real>) const override {}
};

template <class Real>
struct Backwards : RotationFault<Real> {
  using RotationFault<Real>::RotationFault;
  void turn(std::vector<Real>& cosine, std::vector<Real>& sine, std::span<Real> head) const override {
    for (Real& s : sine) s = -s;
    this->turn_with(this->terms_.rope, cosine, sine, head);
  }
};

// All D lanes turn; the angles of the rotated span begin again behind it.
template <class Real>
struct FullSpan : RotationFault<Real> {
  using RotationFault<Real>::RotationFault;
  void turn(std::vector<Real>& cosine, std::vector<Real>& sine, std::span<Real> head) const override {
    const std::size_t given = cosine.size();
    for (std::size_t i = given; i < head.size() / 2; ++i) {
      cosine.push_back(cosine[i - given]);
      sine.push_back(sine[i - given]);
    }
    this->turn_with(this->terms_.rope, cosine, sine, head);
  }
};

// Lane i of the half-split rotation takes the table entry of pair floor(i/2), as an interleaved table would hold it.
template <class Real>
struct TableMismatch : RotationFault<Real> {
  using RotationFault<Real>::RotationFault;
  void turn(std::vector<Real>& cosine, std::vector<Real>& sine, std::span<Real> head) const override {
    if (this->terms_.rope.pairing == QKCTS_HALF_SPLIT) {
      for (std::size_t i = cosine.size(); i-- > 0;) {
        cosine[i] = cosine[i / 2];
        sine[i] = sine[i / 2];
      }
    }
    this->turn_with(this->terms_.rope, cosine, sine, head);
  }
};

// Interleaved pairs are written back as all first, then all second components.
template <class Real>
struct OutputConcatenated : RotationFault<Real> {
  using RotationFault<Real>::RotationFault;
  void turn(std::vector<Real>& cosine, std::vector<Real>& sine, std::span<Real> head) const override {
    this->turn_with(this->terms_.rope, cosine, sine, head);
    if (this->terms_.rope.pairing != QKCTS_INTERLEAVED) return;
    const std::size_t pairs = cosine.size();
    const std::size_t first = this->terms_.rope.span == QKCTS_SPAN_LAST ? head.size() - 2 * pairs : 0;
    const std::vector<Real> turned(head.begin() + static_cast<std::ptrdiff_t>(first), head.end());
    for (std::size_t i = 0; i < pairs; ++i) {
      head[first + i] = turned[2 * i];
      head[first + pairs + i] = turned[2 * i + 1];
    }
  }
};

// Keys stand one position early (position 0 stays), as after an off-by-one in a cache.
template <class Real>
struct KeysOneEarly : RotationFault<Real> {
  using RotationFault<Real>::RotationFault;
  std::int64_t table_row(Side side, std::int64_t position) const override {
    return side == Side::key ? std::max<std::int64_t>(position - 1, 0) : position;
  }
  void turn(std::vector<Real>& cosine, std::vector<Real>& sine, std::span<Real> head) const override {
    this->turn_with(this->terms_.rope, cosine, sine, head);
  }
};

// The position ids are ignored: token t stands at position t.
template <class Real>
struct PositionIsIndex : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void rotate_token(Side side, std::int64_t b, std::int64_t t, std::span<Real> token) override {
    const std::int64_t row = std::min(t, this->cos_.extent(0) - 1);
    std::vector<Real> cosine, sine;
    for (std::int64_t i = 0; i < scalar::rotated_lanes(this->terms_.rope, this->shape_.head_dim) / 2; ++i) {
      cosine.push_back(this->cos_.template load<Real>(row, i));
      sine.push_back(this->sin_.template load<Real>(row, i));
    }
    const auto dim = static_cast<std::size_t>(this->shape_.head_dim);
    for (std::size_t first = 0; first < token.size(); first += dim)
      scalar::rotate(this->terms_.rope, std::span<const Real>(cosine), std::span<const Real>(sine),
                     token.subspan(first, dim));
    (void)side;
    (void)b;
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
    {"rope_output_concat", "QK-ROPE-02", QKCTS_STAGE_Q_ROPE, "rotated pairs are written back to other lanes", nullptr,
     kernel<OutputConcatenated>},
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
