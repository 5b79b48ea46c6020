// SPDX-License-Identifier: Apache-2.0
#include "reference/double_word_constants.hpp"

#include "reference/real.hpp"

namespace qkcts {
namespace {

constexpr long working_bits = 256;

// Takes from x its leading `bits` bits, rounded to nearest.
double take(Real& x, long bits) {
  Real head(bits);
  mpfr_set(head.get(), x.get(), MPFR_RNDN);
  mpfr_sub(x.get(), x.get(), head.get(), MPFR_RNDN);
  return mpfr_get_d(head.get(), MPFR_RNDN);  // exact
}

std::array<double, 2> inverse_factorial(unsigned long n) {
  Real x(working_bits);
  mpfr_fac_ui(x.get(), n, MPFR_RNDN);
  mpfr_ui_div(x.get(), 1, x.get(), MPFR_RNDN);
  const double high = take(x, 53);
  return {high, take(x, 53)};
}

ExpConstants make() {
  ExpConstants c;
  Real step(working_bits);
  mpfr_const_log2(step.get(), MPFR_RNDN);
  mpfr_div_ui(step.get(), step.get(), exp_table_size, MPFR_RNDN);
  Real inverse(working_bits);
  mpfr_ui_div(inverse.get(), 1, step.get(), MPFR_RNDN);
  c.inverse_step = mpfr_get_d(inverse.get(), MPFR_RNDN);
  c.step[0] = take(step, 34);
  c.step[1] = take(step, 34);
  c.step[2] = take(step, 53);
  c.sixth = inverse_factorial(3);
  c.twenty_fourth = inverse_factorial(4);
  for (std::size_t i = 0; i < c.tail.size(); ++i) c.tail[i] = inverse_factorial(5 + i)[0];
  for (std::size_t j = 0; j < exp_table_size; ++j) {
    Real power(working_bits);
    mpfr_set_ui(power.get(), j, MPFR_RNDN);
    mpfr_div_ui(power.get(), power.get(), exp_table_size, MPFR_RNDN);
    mpfr_exp2(power.get(), power.get(), MPFR_RNDN);
    c.high[j] = take(power, 53);
    c.low[j] = take(power, 53);
  }
  return c;
}

}  // namespace

const ExpConstants& exp_constants() {
  static const ExpConstants constants = make();
  return constants;
}

}  // namespace qkcts
