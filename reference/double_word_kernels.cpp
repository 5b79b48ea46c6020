// SPDX-License-Identifier: Apache-2.0
#include "reference/double_word_kernels.hpp"

// Sets with a fused multiply-add, and the best that every machine of this build has: a plain one, unless the compiler
// was told of more. (Highway compiles nothing below that one.) AVX3_DL adds no arithmetic of doubles to AVX3, and
// sanitizers, which make each set take a minute to compile, see all of the code in AVX2.
#ifdef QKCTS_FEWER_LANES
#define QKCTS_WIDE_LANES HWY_AVX3
#else
#define QKCTS_WIDE_LANES 0
#endif
#define HWY_DISABLED_TARGETS                                                                                      \
  (HWY_SSE2 | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | QKCTS_WIDE_LANES | HWY_NEON_WITHOUT_AES | HWY_SVE | HWY_SVE2 | \
   HWY_SVE_256 | HWY_SVE2_128)
#include <hwy/detect_targets.h>
#ifndef HWY_SSE2  // an older Highway, which has no such target
#define HWY_SSE2 0
#endif
#ifndef HWY_NEON_WITHOUT_AES
#define HWY_NEON_WITHOUT_AES 0
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/double_word_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include "reference/double_word_dot.hpp"
#include "reference/double_word_function.hpp"
#include "reference/double_word_operand.hpp"
#include "reference/double_word_rounding.hpp"
#include "reference/double_word_row.hpp"

HWY_BEFORE_NAMESPACE();
namespace qkcts::HWY_NAMESPACE {
namespace {

void dot_columns(const DotOperands& o, std::size_t columns, const double* anchors, Words result) {
  constexpr std::size_t step = dot_unroll * lane_count;
  for (std::size_t column = 0; column < columns; column += step) {
    if (o.x_low == nullptr && o.y_low == nullptr) {
      dot_strip<false, false>(o, column, anchors, result);
    } else if (o.y_low == nullptr) {
      dot_strip<true, false>(o, column, anchors, result);
    } else if (o.x_low == nullptr) {
      dot_strip<false, true>(o, column, anchors, result);
    } else {
      dot_strip<true, true>(o, column, anchors, result);
    }
  }
}

std::size_t round_row(ConstWords z, const double* error, std::size_t n, Format format, const RoundedRow& row,
                      std::uint8_t* undecided) {
  return row.expected != nullptr ? round_row_of<true>(z, error, n, format, row, undecided)
                                 : round_row_of<false>(z, error, n, format, row, undecided);
}

void log_one_plus_each(ConstWords w, const double* guess, std::size_t n, Words result, double* error) {
  for (std::size_t i = 0; i < n; i += lane_count) {
    const Bounded value = log_one_plus(load_word(w, i), load(guess + i), exp_constants());
    store_word(result, i, value.value);
    store(error + i, value.error * all(slack));
  }
}

void exponential_each(ConstWords x, std::size_t n, Words result, double* relative_error) {
  for (std::size_t i = 0; i < n; i += lane_count) {
    store_word(result, i, exponential(load_word(x, i), exp_constants()));
    store(relative_error + i, exp_error(magnitude(load(x.h + i))));
  }
}

void tangent_each(ConstWords x, std::size_t n, Words result, double* error) {
  for (std::size_t i = 0; i < n; i += lane_count) {
    const Bounded value = hyperbolic_tangent(load_word(x, i), exp_constants());
    store_word(result, i, value.value);
    store(error + i, value.error * all(slack));
  }
}

}  // namespace

Kernels kernels() {
  Kernels k{};
  k.name = hwy::TargetName(HWY_TARGET);
  k.sum = sum_of;
  k.sum_of_squares = sum_of_squares_of;
  k.norm_bound = norm_bound_of;
  k.subtract = subtract_word;
  k.multiply_each = multiply_words;
  k.add_each = add_numbers;
  k.rotate = rotate_words;
  k.scale = scale_words;
  k.anchors = set_anchors;
  k.dot = dot_columns;
  k.scores = score_row;
  k.cap = cap_row;
  k.extremes = extremes_of;
  k.weights = weigh_row;
  k.probabilities = probability_row;
  k.outputs = output_row;
  k.log_one_plus = log_one_plus_each;
  k.exponentials = exponential_each;
  k.tangents = tangent_each;
  k.round = round_row;
  return k;
}

}  // namespace qkcts::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkcts {
namespace {

std::vector<Kernels> runnable() {
  std::vector<Kernels> list;
  const auto supported = hwy::SupportedTargets();
  // What makes a list of kernels is compiled for their set as well, so it is called after the question.
  [[maybe_unused]] const auto offer = [&](std::int64_t target, Kernels (*kernels)()) {
    if ((supported & target) != 0) list.push_back(kernels());
  };
#if HWY_TARGETS & HWY_AVX3 & ~HWY_STATIC_TARGET
  offer(HWY_AVX3, N_AVX3::kernels);
#endif
#if HWY_TARGETS & HWY_AVX2 & ~HWY_STATIC_TARGET
  offer(HWY_AVX2, N_AVX2::kernels);
#endif
#if HWY_TARGETS & HWY_NEON & ~HWY_STATIC_TARGET
  offer(HWY_NEON, N_NEON::kernels);
#endif
  list.push_back(HWY_STATIC_DISPATCH(kernels)());  // without a question: all of this program needs that set
  return list;
}

}  // namespace

DotSize::DotSize(std::size_t terms, int low_words) {
  constexpr double u = 0x1p-53;
  constexpr double block = 32;
  const auto n = static_cast<double>(terms);
  const double w = low_words;
  const double blocks = std::ceil(n / block);
  const double of_q = blocks * blocks + 4.04 * blocks;  // in u^2 Q, Q = n g/2 + 2 u A
  const double g = u * (n * (block + 1) / 4 + (1 + w) * n / 2) + u * u * of_q * n / 2;
  const double a = u * u * (2 * block + 2 * w + 1) + u * u * of_q * 2 * u;
  grid_error = g * (0x1p-51 / 3) * (1 + 0x1p-20);
  sum_error = a * (1 + 0x1p-20);
}

std::span<const Kernels> all_kernels() {
  static const std::vector<Kernels> kernels = runnable();
  return kernels;
}

}  // namespace qkcts
#endif
