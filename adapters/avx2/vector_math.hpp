// SPDX-License-Identifier: Apache-2.0
// exp and tanh of eight binary32 values. Only for translation units built with AVX2 and FMA.
//
// Bounds against the exact value, tested in vector_math_test.cpp, for every input:
//   exp   at most 1.1 ulp for normal results, at most 1 quantum (2^-149) for subnormal ones; +inf from the overflow
//         threshold on, 0 below the underflow threshold; exp(-inf) = 0, exp(NaN) = NaN.
//   tanh  at most 1.5 ulp (a subnormal argument is returned unchanged); tanh(+-inf) = +-1, tanh(NaN) = NaN.
#pragma once

#include <immintrin.h>

namespace qkcts::avx2 {

inline __m256 splat(float value) {
  return _mm256_set1_ps(value);
}

// 2^n for integers -126 <= n <= 127.
inline __m256 power_of_two(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

// exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln2/2 + one rounding. ln 2 is split into a head of 10 bits, so
// that n * head is exact, and a tail; exp(r) = 1 + (r + r^2 P(r)) with a minimax P of degree 5 (Cephes expf).
inline __m256 exp(__m256 x) {
  // Beyond these bounds the result is 0 or infinity anyway; the operand order lets a NaN through.
  x = _mm256_min_ps(splat(89.0f), _mm256_max_ps(splat(-110.0f), x));
  const __m256 n =
      _mm256_round_ps(_mm256_mul_ps(x, splat(0x1.715476p+0f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, splat(0x1.63p-1f), x);
  r = _mm256_fnmadd_ps(n, splat(-0x1.bd0106p-13f), r);
  __m256 p = splat(1.9875691500e-4f);
  p = _mm256_fmadd_ps(p, r, splat(1.3981999507e-3f));
  p = _mm256_fmadd_ps(p, r, splat(8.3334519073e-3f));
  p = _mm256_fmadd_ps(p, r, splat(4.1665795894e-2f));
  p = _mm256_fmadd_ps(p, r, splat(1.6666665459e-1f));
  p = _mm256_fmadd_ps(p, r, splat(5.0000001201e-1f));
  p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
  p = _mm256_add_ps(p, splat(1.0f));
  // n may be -159 .. 128: two steps. The first product is a normal number and exact, so only the second one rounds, and
  // a subnormal result is rounded once.
  const __m256i whole = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  p = _mm256_mul_ps(p, power_of_two(half));
  return _mm256_mul_ps(p, power_of_two(_mm256_sub_epi32(whole, half)));
}

// |x| < 0.625: x + x^3 P(x^2), P minimax (Cephes tanhf). Else 1 - 2/(exp(2|x|) + 1): the quotient is at most 0.8 of the
// result, so that an error of exp of k ulp reaches it damped.
inline __m256 tanh(__m256 x) {
  const __m256 sign_bit = splat(-0.0f);
  const __m256 magnitude = _mm256_andnot_ps(sign_bit, x);
  const __m256 z = _mm256_mul_ps(x, x);
  __m256 p = splat(-5.70498872745e-3f);
  p = _mm256_fmadd_ps(p, z, splat(2.06390887954e-2f));
  p = _mm256_fmadd_ps(p, z, splat(-5.37397155531e-2f));
  p = _mm256_fmadd_ps(p, z, splat(1.33314422036e-1f));
  p = _mm256_fmadd_ps(p, z, splat(-3.33332819422e-1f));
  const __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(p, z), x, x);
  // From 9.02 on the result rounds to 1.
  const __m256 doubled = _mm256_mul_ps(splat(2.0f), _mm256_min_ps(splat(10.0f), magnitude));
  const __m256 quotient = _mm256_div_ps(splat(2.0f), _mm256_add_ps(exp(doubled), splat(1.0f)));
  const __m256 large = _mm256_or_ps(_mm256_sub_ps(splat(1.0f), quotient), _mm256_and_ps(sign_bit, x));
  return _mm256_blendv_ps(large, small, _mm256_cmp_ps(magnitude, splat(0.625f), _CMP_LT_OQ));
}

inline float horizontal_sum(__m256 x) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_shuffle_ps(sum, sum, 1)));
}

inline float horizontal_max(__m256 x) {
  __m128 largest = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  largest = _mm_max_ps(largest, _mm_movehl_ps(largest, largest));
  return _mm_cvtss_f32(_mm_max_ss(largest, _mm_shuffle_ps(largest, largest, 1)));
}

}  // namespace qkcts::avx2
