// SPDX-License-Identifier: Apache-2.0
// QK-MASK, QK-EMPTY.
#include <algorithm>
#include <limits>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::QueryRow;

template <class Real>
struct DiagonalHidden : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    if (this->terms_.mask.causal != 0 && k == t + this->query_offset(b)) return false;
    return Base::visible(b, h, t, k);
  }
};

template <class Real>
struct OneAhead : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    if (this->terms_.mask.causal == 0) return Base::visible(b, h, t, k);
    return Base::visible(b, h, t, k) || (k > 0 && k == t + this->query_offset(b) + 1 && Base::visible(b, h, t, k - 1));
  }
};

template <class Real>
struct FirstLength : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    if (this->terms_.mask.kv_lengths == 0) return Base::visible(b, h, t, k);
    return Base::visible(0, h, t, k);
  }
};

template <class Real>
struct MaskOfHeadZero : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    const bool tensor = this->terms_.mask.boolean != 0;
    return Base::visible(tensor ? 0 : b, tensor ? 0 : h, t, k);
  }
};

template <class Real>
struct MaskInverted : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    if (this->terms_.mask.boolean == 0) return Base::visible(b, h, t, k);
    return this->mask_.template load<int>(b, h, t, k) == 0;
  }
};

// What a mask does to a key that it should exclude.
template <class Real>
struct SoftMask : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  virtual Real soften(Real capped) const = 0;
  void mask_row(QueryRow<Real>& row) override {
    scalar::Attention<Real>::mask_row(row);
    if (row.empty) return;
    for (std::size_t k = 0; k < row.visible.size(); ++k) {
      if (row.visible[k] != 0) continue;
      row.masked[k] = soften(row.capped[k]);
      row.visible[k] = 1;
    }
  }
};

template <class Real>
struct FiniteSentinel : SoftMask<Real> {
  using SoftMask<Real>::SoftMask;
  static constexpr Real sentinel = -1e4;
  Real soften(Real) const override { return sentinel; }
  // An observer of the stage before sees what is due.
  void softmax_row(QueryRow<Real>& row) override {
    SoftMask<Real>::softmax_row(row);
    std::replace(row.masked.begin(), row.masked.end(), sentinel, -std::numeric_limits<Real>::infinity());
  }
};

template <class Real>
struct SmallSentinel : SoftMask<Real> {
  using SoftMask<Real>::SoftMask;
  Real soften(Real capped) const override { return capped - 30; }
};

template <class Real>
struct Multiplicative : SoftMask<Real> {
  using SoftMask<Real>::SoftMask;
  Real soften(Real) const override { return 0; }
};

// false and true are converted to 0 and 1 and added.
template <class Real>
struct BoolAdded : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    return this->terms_.mask.boolean != 0 || Base::visible(b, h, t, k);
  }
  void mask_row(QueryRow<Real>& row) override {
    Base::mask_row(row);
    if (this->terms_.mask.boolean == 0) return;
    for (std::int64_t k = 0; k < this->shape_.k_len; ++k)
      row.masked[k] += this->mask_.template load<Real>(row.b, row.h, row.t, k);
  }
};

// Keys behind the last whole tile of 16 are never visited.
template <class Real>
struct TailKeysDropped : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    const std::int64_t whole = this->shape_.k_len / 16 * 16;
    return (whole == 0 || k < whole) && Base::visible(b, h, t, k);
  }
};

// One key of one row is forgotten: the last visible one of the last row.
template <class Real>
struct LastRowOneKeyShort : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void mask_row(QueryRow<Real>& row) override {
    Base::mask_row(row);
    if (row.t != this->shape_.q_len - 1 || std::count(row.visible.begin(), row.visible.end(), 1) < 2) return;
    std::size_t last = row.visible.size() - 1;
    while (row.visible[last] == 0) --last;
    row.visible[last] = 0;
    row.masked[last] = -std::numeric_limits<Real>::infinity();
  }
};

constexpr Mutant table[] = {
    {"causal_off_by_one", "QK-MASK-01", QKCTS_STAGE_MASKED, "k < q' for k <= q'", nullptr, kernel<DiagonalHidden>},
    {"causal_one_ahead", "QK-MASK-01", QKCTS_STAGE_MASKED, "k <= q' + 1 for k <= q'", nullptr, kernel<OneAhead>},
    {"batch0_length", "QK-MASK-03", QKCTS_STAGE_MASKED, "every batch entry uses the length of the first", nullptr,
     kernel<FirstLength>},
    {"mask_inverted", "QK-MASK-04", QKCTS_STAGE_MASKED, "true hides", nullptr, kernel<MaskInverted>},
    {"mask_bool_as_additive", "QK-MASK-04", QKCTS_STAGE_MASKED, "false and true are added as 0 and 1", nullptr,
     kernel<BoolAdded>},
    {"mask_batch_as_head", "QK-MASK-04", QKCTS_STAGE_MASKED, "the mask of batch 0 and head 0 serves all", nullptr,
     kernel<MaskOfHeadZero>},
    {"mask_finite_sentinel", "QK-MASK-06", QKCTS_STAGE_PROBS, "a hidden score becomes -1e4", nullptr,
     kernel<FiniteSentinel>},
    {"mask_small_sentinel", "QK-MASK-06", QKCTS_STAGE_MASKED, "a hidden score is only lowered by 30", nullptr,
     kernel<SmallSentinel>},
    {"mask_multiplicative", "QK-MASK-06", QKCTS_STAGE_MASKED, "a hidden score is multiplied by 0", nullptr,
     kernel<Multiplicative>},
    {"tail_keys_dropped", "QK-MASK-06", QKCTS_STAGE_MASKED, "keys behind the last whole 16 are left out", nullptr,
     kernel<TailKeysDropped>},
    {"last_row_one_key_short", "QK-MASK-06", QKCTS_STAGE_MASKED, "the last row forgets its last key", nullptr,
     kernel<LastRowOneKeyShort>},
};

}  // namespace

std::span<const Mutant> mask_mutants() {
  return table;
}

}  // namespace qkcts::mutants
