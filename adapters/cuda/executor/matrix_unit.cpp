// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/executor/matrix_unit.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "adapters/cuda/executor/block_executor.hpp"

namespace qkcts::cuda {

namespace {

// (-1)^negative * significand * 2^exponent; the significand of a number that is not 0 has its leading bit at `top`.
struct Exact {
  bool negative = false;
  std::uint64_t significand = 0;
  int exponent = 0;
  int top = std::numeric_limits<int>::min();  // exponent of the leading bit
  int stored = 0;                             // what the exponent field says, for a zero too
};

struct Layout {
  int fraction_bits, bias, special;  // special: the exponent field of infinity and NaN
};

constexpr Layout layout_of(NarrowFormat format) {
  return format == NarrowFormat::bfloat16 ? Layout{7, 127, 0xff} : Layout{10, 15, 0x1f};
}

Exact decoded(bool negative, std::uint32_t field, std::uint32_t fraction, int fraction_bits, int bias) {
  Exact x;
  x.negative = negative;
  x.significand = field == 0 ? fraction : (std::uint64_t{1} << fraction_bits) | fraction;
  x.stored = static_cast<int>(std::max(field, 1u)) - bias;
  x.exponent = x.stored - fraction_bits;
  if (x.significand != 0) x.top = x.exponent + static_cast<int>(std::bit_width(x.significand)) - 1;
  return x;
}

Exact decoded(NarrowFormat format, std::uint16_t bits) {
  const Layout layout = layout_of(format);
  const std::uint32_t size = bits & 0x7fffu;
  return decoded((bits >> 15) != 0, size >> layout.fraction_bits, size & ((1u << layout.fraction_bits) - 1),
                 layout.fraction_bits, layout.bias);
}

Exact decoded(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return decoded((bits >> 31) != 0, bits >> 23 & 0xffu, bits & 0x7fffffu, 23, 127);
}

bool is_special(NarrowFormat format, std::uint16_t bits) {
  const Layout layout = layout_of(format);
  return static_cast<int>((bits & 0x7fffu) >> layout.fraction_bits) == layout.special;
}

double value_of(NarrowFormat format, std::uint16_t bits) {
  if (is_special(format, bits)) {
    const Layout layout = layout_of(format);
    if ((bits & ((1u << layout.fraction_bits) - 1)) != 0) return std::numeric_limits<double>::quiet_NaN();
    return (bits >> 15) != 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  const Exact x = decoded(format, bits);
  return std::ldexp(x.negative ? -static_cast<double>(x.significand) : static_cast<double>(x.significand), x.exponent);
}

// x in units of 2^last, cut off.
std::int64_t cut(const Exact& x, int last) {
  const int shift = x.exponent - last;
  std::uint64_t size = 0;
  if (shift >= 0) {
    size = x.significand << shift;  // at most F + 2 bits: the leading one is not above that of the largest addend
  } else if (shift > -64) {
    size = x.significand >> -shift;
  }
  return x.negative ? -static_cast<std::int64_t>(size) : static_cast<std::int64_t>(size);
}

// count * 2^last rounded toward zero to binary32.
float toward_zero(std::int64_t count, int last) {
  const double exact = std::ldexp(static_cast<double>(count), last);  // at most 35 bits
  const float nearest = static_cast<float>(exact);
  return std::fabs(static_cast<double>(nearest)) > std::fabs(exact) ? std::nextafter(nearest, 0.0f) : nearest;
}

// Operands of one sum.
constexpr std::size_t most_operands = 16;
struct Operands {
  Operands(NarrowFormat format, const std::uint16_t* bits, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      special = special || is_special(format, bits[i]);
      x[i] = decoded(format, bits[i]);
      zero = zero && x[i].significand == 0;
    }
  }
  std::array<Exact, most_operands> x;
  bool special = false, zero = true;
};

float sum_of_block(const UnitModel& unit, float accumulator, const Exact* a, const Exact* b, std::size_t count) {
  std::array<Exact, most_operands + 1> terms;
  terms[0] = decoded(accumulator);
  // The exponent by which a number that is not 0 is aligned.
  const auto place = [&](const Exact& x) { return unit.subnormals_as_stored ? x.stored : x.top; };
  int top = terms[0].significand == 0 ? std::numeric_limits<int>::min() : place(terms[0]);
  for (std::size_t i = 0; i < count; ++i) {
    Exact& product = terms[i + 1];
    product = {a[i].negative != b[i].negative, a[i].significand * b[i].significand, a[i].exponent + b[i].exponent, 0,
               0};
    // The significand of a product is left in [1, 4): its exponent is the sum of those of the factors.
    if (product.significand != 0) top = std::max(top, place(a[i]) + place(b[i]));
    if (product.significand == 0 && unit.zeros_align) top = std::max(top, a[i].stored + b[i].stored);
  }
  if (top == std::numeric_limits<int>::min()) return 0;
  const int last = top - unit.fraction;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i <= count; ++i)
    if (terms[i].significand != 0) sum += cut(terms[i], last);
  return toward_zero(sum, last);
}

float sum_of_operands(const UnitModel& unit, float accumulator, const Operands& a, const Operands& b,
                      std::size_t count) {
  // Nothing is added: binary32 has not more fraction bits than are kept.
  if ((a.zero || b.zero) && accumulator != 0 && !unit.zeros_align) return accumulator;
  const auto products = static_cast<std::size_t>(unit.products);
  for (std::size_t first = 0; first < count; first += products)
    accumulator =
        sum_of_block(unit, accumulator, a.x.data() + first, b.x.data() + first, std::min(products, count - first));
  return accumulator;
}

// NaN and infinities pass as in any other arithmetic.
float special_sum(NarrowFormat format, float accumulator, const std::uint16_t* a, const std::uint16_t* b,
                  std::size_t count) {
  double sum = static_cast<double>(accumulator);
  for (std::size_t i = 0; i < count; ++i) sum += value_of(format, a[i]) * value_of(format, b[i]);
  return static_cast<float>(sum);
}

}  // namespace

float sum_on_unit(const UnitModel& unit, NarrowFormat format, float accumulator, const std::uint16_t* a,
                  const std::uint16_t* b, std::size_t count) {
  const Operands left(format, a, count), right(format, b, count);
  if (left.special || right.special || !std::isfinite(accumulator))
    return special_sum(format, accumulator, a, b, count);
  return sum_of_operands(unit, accumulator, left, right, count);
}

// Lane l = 4 g + t holds, in pairs of neighbours: of a rows g and g + 8, columns 2t.. and 2t + 8..; of b column g, rows
// 2t.. and 2t + 8..; of c rows g and g + 8, columns 2t and 2t + 1.
void multiply_on_unit(NarrowFormat format, float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  const std::uint64_t words[3] = {std::uint64_t{a[1]} << 32 | a[0], std::uint64_t{a[3]} << 32 | a[2],
                                  std::uint64_t{b[1]} << 32 | b[0]};
  const WarpSlots slots = exchange(words, 3);
  const auto half = [](std::uint64_t word, unsigned number) {
    return static_cast<std::uint16_t>(word >> (16 * number));
  };
  const ExecutorOptions& options = this_thread().block->options;
  const UnitModel unit{options.unit_products, options.unit_fraction, options.unit_zeros_align,
                       options.unit_subnormals_as_stored};
  const unsigned g = lane_index() / 4, t = lane_index() % 4;
  std::uint16_t rows[2][most_operands], columns[2][most_operands];
  for (unsigned i = 0; i < 2; ++i) {
    for (unsigned k = 0; k < most_operands; ++k) {
      const unsigned holder = k % 8 / 2, upper = k / 8;
      rows[i][k] = half(slots.of(4 * g + holder)[upper], 2 * i + k % 2);
      columns[i][k] = half(slots.of(4 * (2 * t + i) + holder)[2], 2 * upper + k % 2);
    }
  }
  const Operands left[2] = {{format, rows[0], most_operands}, {format, rows[1], most_operands}};
  const Operands right[2] = {{format, columns[0], most_operands}, {format, columns[1], most_operands}};
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned r = i / 2, e = i % 2;
    const bool special = left[r].special || right[e].special || !std::isfinite(c[i]);
    c[i] = special ? special_sum(format, c[i], rows[r], columns[e], most_operands)
                   : sum_of_operands(unit, c[i], left[r], right[e], most_operands);
  }
}

}  // namespace qkcts::cuda
