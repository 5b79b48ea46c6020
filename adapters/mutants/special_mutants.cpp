// SPDX-License-Identifier: Apache-2.0
// QK-SPECIAL: what becomes of NaN and infinities; and QK-HIDDEN where a hidden value takes part.
#include <algorithm>
#include <cmath>
#include <limits>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::infinity;
using scalar::QueryRow;
using scalar::Side;

// A score that is NaN is smaller than every other: exp of it counts as 0.
template <class Real>
struct NanScoresHidden : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void softmax_row(QueryRow<Real>& row) override {
    const std::vector<Real> masked = row.masked;
    for (Real& m : row.masked)
      if (std::isnan(m)) m = -std::numeric_limits<Real>::max();
    Base::softmax_row(row);
    row.masked = masked;
  }
};

template <class Real>
struct NanOutputZero : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    for (Real& o : row.output)
      if (std::isnan(o)) o = 0;
  }
};

// Rows are handled in tiles of two, and the NaN of one reaches both.
template <class Real>
struct NanInTile : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void score_row(QueryRow<Real>& row) override {
    Base::score_row(row);
    const auto q = this->query(row.b, row.h, (row.t ^ 1) < this->shape_.q_len ? row.t ^ 1 : row.t);
    const bool spoiled = std::any_of(q.begin(), q.end(), [](Real x) { return std::isnan(x); });
    if (spoiled) std::fill(row.scores.begin(), row.scores.end(), std::numeric_limits<Real>::quiet_NaN());
  }
};

// A NaN in one value spoils all lanes of the output.
template <class Real>
struct NanInAllLanes : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    const bool spoiled = std::any_of(row.output.begin(), row.output.end(), [](Real o) { return std::isnan(o); });
    if (spoiled) std::fill(row.output.begin(), row.output.end(), std::numeric_limits<Real>::quiet_NaN());
  }
};

template <class Real>
Real clamped(Real x) {
  constexpr Real largest = std::numeric_limits<Real>::max();
  return std::isinf(x) ? std::copysign(largest, x) : x;
}

template <class Real>
struct InfinityClamped : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    for (Real& o : row.output) o = clamped(o);
  }
};

// Rows are read through a clamp to the largest number.
template <class Real>
struct InfiniteRowsClamped : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void normalise_token(Side side, std::span<Real> token) override {
    for (Real& x : token)
      if (std::isinf(x)) x = std::copysign(Real{1}, x);
    Base::normalise_token(side, token);
  }
};

constexpr Mutant table[] = {
    {"special_nan_score_hidden", "QK-SPECIAL-03", QKCTS_STAGE_PROBS, "a score that is NaN weighs nothing", nullptr,
     kernel<NanScoresHidden>},
    {"special_nan_output_zero", "QK-SPECIAL-03", QKCTS_STAGE_OUTPUT, "0 in the place of NaN", nullptr,
     kernel<NanOutputZero>},
    {"special_nan_in_tile", "QK-SPECIAL-01", QKCTS_STAGE_SCORES, "NaN in a row of q reaches the row beside it", nullptr,
     kernel<NanInTile>},
    {"special_nan_in_all_lanes", "QK-SPECIAL-01", QKCTS_STAGE_OUTPUT, "NaN in one lane of v reaches all of them",
     nullptr, kernel<NanInAllLanes>},
    {"special_infinity_clamped", "QK-SPECIAL-04", QKCTS_STAGE_OUTPUT, "the largest number in the place of infinity",
     nullptr, kernel<InfinityClamped>},
    {"special_infinite_rows_clamped", "QK-SPECIAL-02", QKCTS_STAGE_Q_NORM, "1 in the place of infinity in q and k",
     nullptr, kernel<InfiniteRowsClamped>},
};

}  // namespace

std::span<const Mutant> special_mutants() {
  return table;
}

}  // namespace qkcts::mutants
