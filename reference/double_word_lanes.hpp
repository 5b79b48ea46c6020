// SPDX-License-Identifier: Apache-2.0
// The one door to Highway: several binary64 numbers side by side, compiled once per instruction set that a
// double_word_kernels*.cpp lists, or one number alone. Included anew for every instruction set.
#if defined(QKCTS_DOUBLE_WORD_LANES) == defined(HWY_TARGET_TOGGLE)
#ifdef QKCTS_DOUBLE_WORD_LANES
#undef QKCTS_DOUBLE_WORD_LANES
#else
#define QKCTS_DOUBLE_WORD_LANES
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace qkcts::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<double, 8>;
using BitsTag = hn::RebindToUnsigned<Tag>;
using SignedTag = hn::RebindToSigned<Tag>;
using Lanes = hn::Vec<Tag>;
using Bits = hn::Vec<BitsTag>;
using Mask = hn::Mask<Tag>;
constexpr std::size_t lane_count = hn::MaxLanes(Tag());

HWY_INLINE Lanes all(double x) {
  return hn::Set(Tag(), x);
}
HWY_INLINE Lanes load(const double* x) {
  return hn::LoadU(Tag(), x);
}
HWY_INLINE void store(double* x, Lanes v) {
  hn::StoreU(v, Tag(), x);
}

// RN(a b + c), one rounding on every instruction set.
HWY_INLINE Lanes fused(Lanes a, Lanes b, Lanes c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  HWY_ALIGN double x[lane_count], y[lane_count], z[lane_count];
  hn::Store(a, Tag(), x);
  hn::Store(b, Tag(), y);
  hn::Store(c, Tag(), z);
  for (std::size_t i = 0; i < lane_count; ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(Tag(), z);
#endif
}
// RN(c - a b).
HWY_INLINE Lanes fused_less(Lanes a, Lanes b, Lanes c) {
#if HWY_NATIVE_FMA
  return hn::NegMulAdd(a, b, c);
#else
  return fused(hn::Neg(a), b, c);
#endif
}
// RN(a b - c).
HWY_INLINE Lanes fused_minus(Lanes a, Lanes b, Lanes c) {
#if HWY_NATIVE_FMA
  return hn::MulSub(a, b, c);
#else
  return fused(a, b, hn::Neg(c));
#endif
}
HWY_INLINE Lanes magnitude(Lanes a) {
  return hn::Abs(a);
}
HWY_INLINE Lanes negated(Lanes a) {
  return hn::Neg(a);
}
HWY_INLINE Lanes root_of(Lanes a) {
  return hn::Sqrt(a);
}

HWY_INLINE double fused(double a, double b, double c) {
  return std::fma(a, b, c);
}
HWY_INLINE double fused_less(double a, double b, double c) {
  return std::fma(-a, b, c);
}
HWY_INLINE double fused_minus(double a, double b, double c) {
  return std::fma(a, b, -c);
}
HWY_INLINE double magnitude(double a) {
  return std::fabs(a);
}
HWY_INLINE double negated(double a) {
  return -a;
}
HWY_INLINE double root_of(double a) {
  return std::sqrt(a);
}

}  // namespace qkcts::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
