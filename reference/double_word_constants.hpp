// SPDX-License-Identifier: Apache-2.0
// Tables and constants of the double-word exponential, correctly rounded from MPFR when first asked for.
#pragma once

#include <array>
#include <cstddef>

namespace qkcts {

constexpr std::size_t exp_table_size = 256;
constexpr int exp_table_bits = 8;

struct ExpConstants {
  double inverse_step = 0;                           // 256 / ln 2
  std::array<double, 3> step{};                      // ln 2 / 256: pieces of 34, 34 and 53 bits
  std::array<double, 2> sixth{}, twenty_fourth{};    // 1/3! and 1/4! as double words
  std::array<double, 5> tail{};                      // 1/5! ... 1/9!
  std::array<double, exp_table_size> high{}, low{};  // 2^(j/256) as double words
};

const ExpConstants& exp_constants();

}  // namespace qkcts
