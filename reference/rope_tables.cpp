// SPDX-License-Identifier: Apache-2.0
// Certified rotary tables. cos and sin of angle = position * theta^(-2i/R).
//
// Termination: position 0 gives 1 and 0 exactly. Otherwise theta^(-2i/R) is a rational power of a rational, so the
// angle is a non-zero algebraic number and its cosine and sine are transcendental (Lindemann): never on a rounding
// boundary.
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reference/attention.hpp"
#include "reference/rounding.hpp"

namespace qkcts {
namespace {

enum class Wave { cosine, sine };

// |cos' |, |sin'| <= 1: the value at the lower end, widened by the width of the angle and one rounding.
template <unsigned Digits>
Enclosure<Digits> wave_of(const Enclosure<Digits>& angle, Wave wave) {
  Enclosure<Digits> result;
  mpfr_ptr left = &raw(result)->left;
  mpfr_ptr right = &raw(result)->right;
  const auto function = wave == Wave::cosine ? mpfr_cos : mpfr_sin;
  const bool inexact = function(left, lower(angle), MPFR_RNDD) != 0;
  mpfr_set(right, left, MPFR_RNDU);
  if (inexact) mpfr_nextabove(right);
  Real width(64);
  mpfr_sub(width.get(), upper(angle), lower(angle), MPFR_RNDU);
  mpfr_sub(left, left, width.get(), MPFR_RNDD);
  mpfr_add(right, right, width.get(), MPFR_RNDU);
  return result;
}

struct TableRequest {
  double theta;
  std::int64_t rotated;
  Format format;
};

// theta^(-2i/R) = exp(-(2i/R) log theta); exactly 1 for i = 0.
template <unsigned Digits>
Enclosure<Digits> frequency(const TableRequest& request, std::int64_t i) {
  Enclosure<Digits> exponent(request.theta);
  mpfi_log(raw(exponent), raw(exponent));
  exponent *= Enclosure<Digits>(static_cast<double>(-2 * i));
  exponent /= Enclosure<Digits>(static_cast<double>(request.rotated));
  Enclosure<Digits> result;
  set_exp(result, exponent);
  return result;
}

// The entry at one (position, i): tried with the frequency of this level, then with the next.
template <std::size_t L>
double entry(const TableRequest& request, std::int64_t position, std::int64_t i, Wave wave,
             const Enclosure<level_digits[L]>& step) {
  const Enclosure<level_digits[L]> angle = step * Enclosure<level_digits[L]>(static_cast<double>(position));
  const Enclosure<level_digits[L]> x = wave_of(angle, wave);
  const double low = round_to_format(lower(x), request.format);
  const double high = round_to_format(upper(x), request.format);
  if (low == high) return low;
  if constexpr (L + 1 < level_count) {
    return entry<L + 1>(request, position, i, wave, frequency<level_digits[L + 1]>(request, i));
  } else {
    throw UndecidedError(fmt::format("rotary table of theta {}: {}[position {}, pair {}]: rounding not proven",
                                     request.theta, wave == Wave::cosine ? "cos" : "sin", position, i));
  }
}

}  // namespace

RopeTables rope_tables(double theta, std::int64_t rotated, std::int64_t first, std::int64_t count, Format format) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (!(theta > 0) || !std::isfinite(theta) || rotated < 2 || rotated % 2 != 0 || first < 0 || count < 1 ||
      first > most || count > most / rotated) {
    throw InputError(
        fmt::format("rotary table: theta {}, {} rotated lanes, {} positions from {}: needs theta > 0, an "
                    "even number of lanes and positions from 0 on",
                    theta, rotated, count, first));
  }
  prepare_thread();
  const TableRequest request{theta, rotated, format};
  const std::int64_t pairs = rotated / 2;
  RopeTables tables{Tensor::zeros(element_type(format), {count, pairs}),
                    Tensor::zeros(element_type(format), {count, pairs})};
  for (std::int64_t i = 0; i < pairs; ++i) {
    const Enclosure<level_digits[0]> step = frequency<level_digits[0]>(request, i);
    for (std::int64_t row = 0; row < count; ++row) {
      const auto at = static_cast<std::size_t>(row * pairs + i);
      tables.cos.set_pattern(at, encode(format, entry<0>(request, first + row, i, Wave::cosine, step)));
      tables.sin.set_pattern(at, encode(format, entry<0>(request, first + row, i, Wave::sine, step)));
    }
  }
  return tables;
}

}  // namespace qkcts
