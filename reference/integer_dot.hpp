// SPDX-License-Identifier: Apache-2.0
// Dot products of vectors of enclosures, exact but for the conversion of the operands.
//
// A ScaledVector writes x_i = (m_i + r_i) * 2^exponent with an integer m_i of a fixed number of 64-bit limbs and
// |r_i| <= radius. The products m_i n_i are added without any rounding in an accumulator of one limb more than a
// product, hence
//   sum x_i y_i = 2^(ex + ey) * (sum m_i n_i + E),   |E| <= ry * sum|m_i| + rx * sum|n_i| + count * rx * ry.
// The precision is absolute: relative to the largest entry of each vector. Where that is not enough (huge range within
// one vector) the enclosure is wide, and the next level with more limbs decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/real.hpp"

namespace qkcts {

class ScaledVector {
 public:
  // Reserves `count` entries of at most `limbs` limbs each.
  ScaledVector() = default;

  // Entries by their ends; all must be finite.
  struct Ends {
    RealView lower, upper;
  };
  void assign(std::span<const Ends> entries, int limbs);

  // Exact where `limbs` suffice; uses fewer limbs if the values need no more.
  void assign(std::span<const double> entries, int limbs);

  std::size_t size() const { return negative_.size(); }

  // Enclosure of sum over i of x[i] * y[i].
  template <unsigned Digits>
  friend void set_dot(Enclosure<Digits>& result, const ScaledVector& x, const ScaledVector& y) {
    set_dot_ends(result.left(), result.right(), x, y, {});
  }
  // Enclosure of sum over i of x[i] * y[picks[i]].
  template <unsigned Digits>
  friend void set_dot(Enclosure<Digits>& result, const ScaledVector& x, const ScaledVector& y,
                      std::span<const std::uint32_t> picks) {
    set_dot_ends(result.left(), result.right(), x, y, picks);
  }

 private:
  friend void set_dot_ends(mpfr_ptr left, mpfr_ptr right, const ScaledVector& x, const ScaledVector& y,
                           std::span<const std::uint32_t> picks);

  int limbs_ = 1;
  long exponent_ = 0;
  double radius_ = 0;    // of every entry, in units of 2^exponent_
  double one_norm_ = 0;  // >= sum |m_i| / 2^(64 limbs)
  std::vector<mp_limb_t> magnitudes_;
  std::vector<std::uint8_t> negative_;
};

void set_dot_ends(mpfr_ptr left, mpfr_ptr right, const ScaledVector& x, const ScaledVector& y,
                  std::span<const std::uint32_t> picks);

}  // namespace qkcts
