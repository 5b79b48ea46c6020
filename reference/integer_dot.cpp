// SPDX-License-Identifier: Apache-2.0
#include "reference/integer_dot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace qkcts {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr int limb_bits = 64;
constexpr int most_limbs = 66;
static_assert(GMP_NUMB_BITS == limb_bits);

// A sum of fewer than 2^30 nonnegative binary64 terms, each formed with a few roundings, is off by less than 2^-20
// relative.
double inflate(double bound) {
  return bound * (1.0 + 0x1p-20);
}

class Integer {
 public:
  Integer() { mpz_init(value_); }
  Integer(const Integer&) = delete;
  Integer& operator=(const Integer&) = delete;
  ~Integer() { mpz_clear(value_); }
  mpz_ptr get() { return value_; }

 private:
  mpz_t value_;
};

// Exponent e with |x| < 2^e, or the least long for 0.
long upper_exponent(RealView x) {
  return mpfr_zero_p(x) ? std::numeric_limits<long>::min() : mpfr_get_exp(x);
}

// z = x / 2^exponent, truncated toward zero. True if nothing was cut off.
bool truncate(Integer& z, RealView x, long exponent) {
  if (mpfr_zero_p(x)) {
    mpz_set_ui(z.get(), 0);
    return true;
  }
  if (mpfr_get_exp(x) <= exponent) {  // |x| < 2^exponent
    mpz_set_ui(z.get(), 0);
    return false;
  }
  const long scale = mpfr_get_z_2exp(z.get(), x) - exponent;
  if (scale >= 0) {
    mpz_mul_2exp(z.get(), z.get(), static_cast<mp_bitcnt_t>(scale));
    return true;
  }
  const auto cut = static_cast<mp_bitcnt_t>(-scale);
  const bool exact = mpz_scan1(z.get(), 0) >= cut;
  mpz_tdiv_q_2exp(z.get(), z.get(), cut);
  return exact;
}

void store(mp_limb_t* target, int limbs, mpz_srcptr z) {
  const auto used = static_cast<int>(mpz_size(z));
  std::copy_n(mpz_limbs_read(z), used, target);
  std::fill(target + used, target + limbs, mp_limb_t{0});
}

double fraction_of(mpz_srcptr z, const mp_limb_t* magnitude, int limbs) {  // |z| / 2^(64 limbs), rounded up a little
  if (mpz_sgn(z) == 0) return 0.0;
  double fraction = std::ldexp(static_cast<double>(magnitude[limbs - 1]), -limb_bits);
  if (limbs > 1) fraction += std::ldexp(static_cast<double>(magnitude[limbs - 2]) + 1.0, -2 * limb_bits);
  return fraction;
}

// acc += a * b; acc has la + lb + 1 limbs.
void add_product(mp_limb_t* acc, const mp_limb_t* a, int la, const mp_limb_t* b, int lb) {
  if (lb == 1) {
    const mp_limb_t carry = mpn_addmul_1(acc, a, la, b[0]);
    acc[la] += carry;
    acc[la + 1] += acc[la] < carry ? 1 : 0;
    return;
  }
  std::array<mp_limb_t, 2 * most_limbs> product;
  mpn_mul(product.data(), a, la, b, lb);
  acc[la + lb] += mpn_add_n(acc, acc, product.data(), la + lb);
}

mp_limb_t low_half(Wide x) {
  return static_cast<mp_limb_t>(x);
}
mp_limb_t high_half(Wide x) {
  return static_cast<mp_limb_t>(x >> limb_bits);
}

// The common sizes. Partial products are added by the weight of their halves in columns of 128 bits, so that no carry
// runs from column to column until the end; a column holds more than 2^60 of them.
template <int YLimbs>
void add_products(mp_limb_t* sums, std::size_t count, const mp_limb_t* x, const std::uint8_t* x_negative,
                  const mp_limb_t* y, const std::uint8_t* y_negative, const std::uint32_t* picks) {
  constexpr int total = 2 + YLimbs + 1;
  Wide columns[2][4] = {};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t j = picks == nullptr ? i : picks[i];
    const mp_limb_t* a = x + 2 * i;
    const mp_limb_t* b = y + YLimbs * j;
    Wide* column = columns[x_negative[i] ^ y_negative[j]];
    const Wide p00 = static_cast<Wide>(a[0]) * b[0];
    const Wide p10 = static_cast<Wide>(a[1]) * b[0];
    column[0] += low_half(p00);
    if constexpr (YLimbs == 1) {
      column[1] += static_cast<Wide>(high_half(p00)) + low_half(p10);
      column[2] += high_half(p10);
    } else {
      const Wide p01 = static_cast<Wide>(a[0]) * b[1];
      const Wide p11 = static_cast<Wide>(a[1]) * b[1];
      column[1] += static_cast<Wide>(high_half(p00)) + low_half(p10) + low_half(p01);
      column[2] += static_cast<Wide>(high_half(p10)) + high_half(p01) + low_half(p11);
      column[3] += high_half(p11);
    }
  }
  for (const auto& column : columns) {
    Wide carry = 0;
    for (int limb = 0; limb < total; ++limb) {
      if (limb < 4) carry += column[limb];
      sums[limb] = low_half(carry);
      carry >>= limb_bits;
    }
    sums += total;
  }
}

}  // namespace

void ScaledVector::assign(std::span<const Ends> entries, int limbs) {
  limbs_ = limbs;
  magnitudes_.resize(entries.size() * static_cast<std::size_t>(limbs));
  negative_.assign(entries.size(), 0);
  radius_ = one_norm_ = 0;
  long top = std::numeric_limits<long>::min();
  for (const Ends& x : entries) top = std::max({top, upper_exponent(x.lower), upper_exponent(x.upper)});
  exponent_ = top == std::numeric_limits<long>::min() ? 0 : top - static_cast<long>(limbs) * limb_bits;

  thread_local Integer z;
  thread_local Real width(limb_bits);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Ends& x = entries[i];
    // The end of smaller magnitude is kept: m_i = trunc(end), so |x - m_i| <= 1 + width.
    const RealView kept = mpfr_cmpabs(x.lower, x.upper) <= 0 ? x.lower : x.upper;
    const bool exact = truncate(z, kept, exponent_);
    mp_limb_t* magnitude = magnitudes_.data() + i * static_cast<std::size_t>(limbs);
    store(magnitude, limbs, z.get());
    negative_[i] = mpz_sgn(z.get()) < 0 ? 1 : 0;
    one_norm_ += fraction_of(z.get(), magnitude, limbs);
    double radius = exact ? 0.0 : 1.0;
    if (!mpfr_equal_p(x.lower, x.upper)) {
      mpfr_sub(width.get(), x.upper, x.lower, MPFR_RNDU);
      mpfr_mul_2si(width.get(), width.get(), -exponent_, MPFR_RNDU);
      radius += mpfr_get_d(width.get(), MPFR_RNDU);
    }
    radius_ = std::max(radius_, radius);
  }
  radius_ = inflate(radius_);
  one_norm_ = inflate(one_norm_);
}

void ScaledVector::assign(std::span<const double> entries, int limbs) {
  int top = std::numeric_limits<int>::min();
  int bottom = std::numeric_limits<int>::max();
  for (const double x : entries) {
    if (x == 0) continue;
    int exponent = 0;
    double rest = std::frexp(x, &exponent);
    int last = exponent;  // no bit of x weighs less than 2^last
    while (rest != 0) {
      rest = std::ldexp(rest, 27);
      rest -= std::trunc(rest);
      last -= 27;
    }
    top = std::max(top, exponent);
    bottom = std::min(bottom, last);
  }
  if (top < bottom) top = bottom = 0;  // all zero
  const int needed = std::max(1, (top - bottom + limb_bits - 1) / limb_bits);
  limbs_ = std::min(needed, limbs);
  exponent_ = static_cast<long>(top) - static_cast<long>(limbs_) * limb_bits;
  magnitudes_.resize(entries.size() * static_cast<std::size_t>(limbs_));
  negative_.assign(entries.size(), 0);
  radius_ = one_norm_ = 0;

  thread_local Integer z;
  thread_local Real value(53);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    mpfr_set_d(value.get(), entries[i], MPFR_RNDN);
    if (!truncate(z, value.get(), exponent_)) radius_ = 1;
    mp_limb_t* magnitude = magnitudes_.data() + i * static_cast<std::size_t>(limbs_);
    store(magnitude, limbs_, z.get());
    negative_[i] = mpz_sgn(z.get()) < 0 ? 1 : 0;
    one_norm_ += fraction_of(z.get(), magnitude, limbs_);
  }
  one_norm_ = inflate(one_norm_);
}

void set_dot_ends(mpfr_ptr left, mpfr_ptr right, const ScaledVector& x, const ScaledVector& y,
                  std::span<const std::uint32_t> picks) {
  const int lx = x.limbs_;
  const int ly = y.limbs_;
  const int total = lx + ly + 1;
  // One sum per sign of the product: no branch, and no borrow while adding. A sum of fewer than 2^64 products fits.
  std::array<mp_limb_t, 2 * (2 * most_limbs + 1)> sums;
  std::fill_n(sums.data(), 2 * total, mp_limb_t{0});
  const std::size_t count = x.size();
  const std::uint32_t* pick = picks.empty() ? nullptr : picks.data();
  if (lx == 2 && ly <= 2) {
    const auto add = ly == 1 ? add_products<1> : add_products<2>;
    add(sums.data(), count, x.magnitudes_.data(), x.negative_.data(), y.magnitudes_.data(), y.negative_.data(), pick);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t j = pick == nullptr ? i : pick[i];
      const mp_limb_t* a = x.magnitudes_.data() + i * static_cast<std::size_t>(lx);
      const mp_limb_t* b = y.magnitudes_.data() + j * static_cast<std::size_t>(ly);
      mp_limb_t* acc = sums.data() + (x.negative_[i] ^ y.negative_[j]) * total;
      if (lx >= ly) {
        add_product(acc, a, lx, b, ly);
      } else {
        add_product(acc, b, ly, a, lx);
      }
    }
  }

  mp_limb_t* positive = sums.data();
  const mp_limb_t* negative = sums.data() + total;
  const bool below_zero = mpn_cmp(positive, negative, total) < 0;
  if (below_zero) {
    mpn_sub_n(positive, negative, positive, total);
  } else {
    mpn_sub_n(positive, positive, negative, total);
  }
  mpz_t sum;
  mpz_roinit_n(sum, positive, below_zero ? -total : total);
  const long exponent = x.exponent_ + y.exponent_;
  mpfr_set_z_2exp(left, sum, exponent, MPFR_RNDD);
  mpfr_set_z_2exp(right, sum, exponent, MPFR_RNDU);
  const bool zero = (x.radius_ == 0 && x.one_norm_ == 0) || (y.radius_ == 0 && y.one_norm_ == 0);
  if (zero || (x.radius_ == 0 && y.radius_ == 0)) return;

  // The bound E in units of 2^(64 min(lx, ly)). one_norm_ is in units of 2^(64 limbs); picked entries of y sum to no
  // more than count times 1 in that unit. A vector with a radius is never the shorter one unless both are as long, so
  // no shift below overflows where it is used; what underflows is covered by the last term.
  const int shorter = std::min(lx, ly);
  const double norm_y = picks.empty() ? y.one_norm_ : static_cast<double>(count);
  double error = 0;
  if (y.radius_ > 0) error += std::ldexp(y.radius_ * x.one_norm_, limb_bits * (lx - shorter));
  if (x.radius_ > 0) error += std::ldexp(x.radius_ * norm_y, limb_bits * (ly - shorter));
  if (x.radius_ > 0 && y.radius_ > 0)
    error += std::ldexp(static_cast<double>(count) * x.radius_ * y.radius_, -limb_bits * shorter);
  thread_local Real bound(53);
  mpfr_set_d(bound.get(), inflate(error) + std::numeric_limits<double>::min(), MPFR_RNDU);
  mpfr_mul_2si(bound.get(), bound.get(), exponent + static_cast<long>(limb_bits) * shorter, MPFR_RNDU);
  mpfr_sub(left, left, bound.get(), MPFR_RNDD);
  mpfr_add(right, right, bound.get(), MPFR_RNDU);
}

}  // namespace qkcts
