// SPDX-License-Identifier: Apache-2.0
// A profile as the numbers that the budget formulas use. docs/budgets.md, section "Arithmetic".
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "conformance/budget_terms.hpp"
#include "conformance/machine_profile.hpp"
#include "conformance/sound_math.hpp"

namespace qkcts {

// Products that a matrix unit adds at once, at least; profiles give the growth of one product of a full block.
constexpr int matrix_block = 4;

// The four operands of the two products of attention.
enum class MatrixOperand : std::uint8_t { q, k, p, v };

// Storage of an observed stage: roundoff * (|z| + D) + underflow, 0 while the term is switched off.
struct StorageRounding {
  double counts = 0, roundoff = 0, underflow = 0;

  double error(double magnitude, double moved) const { return counts * (roundoff * (magnitude + moved) + underflow); }
};

// Each roundoff is asked for together with the term that it belongs to, and is 0 while that term is switched off.
class BudgetArithmetic {
 public:
  BudgetArithmetic(const Profile& profile, TermSet terms);

  // One rounding of the accumulator format, 2u for a truncating unit.
  double u(BudgetTerm term) const { return on(term) * roundoff_; }
  // Absolute error of one operation that underflows.
  double lambda(BudgetTerm term) const { return on(term) * underflow_; }
  // Additional error of a subtraction or addition of either sign: only flushing makes one.
  double sum_lambda(BudgetTerm term) const { return on(term) * sum_underflow_; }
  // Relative growth of a sum of n products in any order, or in the chain or the lanes that the profile declares.
  double growth(BudgetTerm term, double n) const;
  // The same of terms that are not neighbours: `in_lane` of them at most meet in one lane.
  double growth(BudgetTerm term, double n, double in_lane) const;
  // Relative growth of a sum of products that may be formed by a matrix unit. `slots` counts the products in units of
  // whole blocks of matrix_block products, for a partly filled block rounds as often as a full one.
  double product_growth(BudgetTerm term, double n, double slots) const;
  double product_growth(BudgetTerm term, double n, double slots, double in_lane) const;
  int lanes() const { return profile_.lanes; }
  // Are both products always formed by a matrix unit, which rounds less often than once per product?
  bool units_only() const { return profile_.product_growth < 1; }

  double rsqrt(BudgetTerm term) const { return on(term) * function_error(profile_.k_rsqrt); }
  double sqrt(BudgetTerm term) const { return on(term) * function_error(profile_.k_sqrt); }
  double tanh(BudgetTerm term) const { return on(term) * std::max(function_error(profile_.k_tanh), profile_.a_tanh); }
  double tanh_absolute(BudgetTerm term) const { return on(term) * profile_.b_tanh; }
  double log(BudgetTerm term) const { return on(term) * function_error(profile_.k_log); }
  // Of the logarithm of a row sum, beside its relative error.
  double log_absolute(BudgetTerm term) const { return on(term) * profile_.b_log; }
  double pow(BudgetTerm term) const { return on(term) * function_error(profile_.k_pow); }
  double wave(BudgetTerm term) const { return on(term) * function_error(profile_.k_cos); }
  // Sine and cosine beside their relative error: what the profile grants, and K quanta where they are subnormal.
  double wave_absolute(BudgetTerm term) const {
    return on(term) * profile_.b_cos + (2 * profile_.k_cos + 1) * lambda(term);
  }
  // -ln(1 - a) >= ln(1 + a): how far one exponential moves the exponent of a weight.
  double exp_exponent(BudgetTerm term) const { return on(term) * exp_exponent_; }
  double division(BudgetTerm term) const { return on(term) * function_error(profile_.k_div); }
  // A quotient, as a division or as a reciprocal and a product.
  double quotient(BudgetTerm term) const { return on(term) * joined(function_error(profile_.k_div), roundoff_); }
  // 1/sqrt(a) by a reciprocal root, or by a root and a division.
  double inverse_root(BudgetTerm term) const;
  // Absolute error of a function of relative accuracy K ulp where its result is subnormal: K quanta, or flushed.
  double exp_quanta(BudgetTerm term) const { return (2 * profile_.k_exp + 1) * lambda(term); }
  double pow_quanta(BudgetTerm term) const { return (2 * std::max(profile_.k_pow, profile_.k_exp) + 1) * lambda(term); }
  double tanh_quanta(BudgetTerm term) const { return (2 * profile_.k_tanh + 1) * lambda(term); }

  // Weights stored before the product with v: 0 if they stay in the accumulator format.
  double weight_roundoff(BudgetTerm term) const { return on(term) * weight_roundoff_; }
  double weight_lambda(BudgetTerm term) const { return on(term) * weight_lambda_; }

  // An operand of a product as the matrix unit reads it (M1): relative error, and absolute one where it is subnormal.
  double operand_roundoff(MatrixOperand operand) const { return on(BudgetTerm::matrix_operands) * read_off(operand); }
  double operand_lambda() const { return on(BudgetTerm::matrix_operands) * profile_.operand_underflow; }
  // As how large a subnormal operand counts where a matrix unit aligns products (M2): the smallest normal number of
  // their format. 0: no unit.
  double smallest_aligned() const { return on(BudgetTerm::matrix_alignment) * smallest_aligned_; }
  // Less than the smallest number of that format but 0, by a factor that covers log2 e and the roundings before it.
  double least_operand() const { return least_operand_; }
  // Do products of operands end where the accumulator does?
  bool unit_meets_underflow() const { return smallest_aligned_ == smallest_normal(profile_.accumulator); }
  // A unit cuts products off there at a quantum, where lambda may be half of one: what it loses, in lambda.
  double unit_underflow() const {
    const bool is_half = profile_.accumulator == Format::binary32 && underflow_ < smallest_subnormal(Format::binary32);
    return unit_meets_underflow() && is_half ? 2 : 1;
  }

  // Storage rounding of an observed stage.
  StorageRounding storage(Format format) const;

  // 2^-9 ulp of binary64: how far the recorded pair may lie from the exact value z.
  double resolution(double z) const {
    const double counts = on(BudgetTerm::evidence_resolution);
    // 2^(exponent - 52 - 9) from the field itself, where that is a normal number.
    constexpr std::uint64_t field = std::uint64_t{0x7ff} << 52, lower = std::uint64_t{52 + 9} << 52;
    const std::uint64_t exponent = std::bit_cast<std::uint64_t>(z) & field;
    return exponent > lower && exponent != field ? counts * std::bit_cast<double>(exponent - lower)
                                                 : counts * 0x1p-9 * ulp(Format::binary64, z);
  }

  // How far an input of the given format may be off when an operation reads it.
  double operand_error(double value, Format source) const;
  // Is every input of the format read as it is?
  bool reads_exactly(Format source) const {
    return parameters(source).precision <= parameters(profile_.accumulator).precision && !profile_.denormals_are_zero;
  }
  // How far weights formed once more may be from the row sum, where the output counts it (O7).
  double formed_afresh(double ratio) const { return on(BudgetTerm::fresh_weights) * ratio; }
  // Error of a value that a norm has made, where the output counts it (O5).
  double norm_made(double error) const { return on(BudgetTerm::value_norm) * error; }
  // Error of a value of v, off by `error`, as the product with the weights reads it: a matrix unit may drop bits of it.
  double value_error(double value, double error) const;
  bool reads_values_whole() const { return !(operand_roundoff(MatrixOperand::v) > 0); }
  // Is x y a number of the accumulator, so that no rounding and no flushing changes it? Both are exact.
  bool multiplies_exactly(double x, double y) const;
  // Relative error of a constant given in binary64: 0 if the accumulator format holds it.
  double constant_error(BudgetTerm term, double value) const;
  // Its absolute error, underflow included.
  double constant_distance(BudgetTerm term, double value) const;
  // Does a constant of this size lie in the range of the accumulator?
  bool holds(double value) const { return std::fabs(value) * (1 + roundoff_) < largest_; }
  // Do operands or sums lose so much by design that exponents of weights are off by more than a few per cent?
  bool coarse() const {
    return roundoff_ > 0x1p-20 || operand_roundoff(MatrixOperand::q) + operand_roundoff(MatrixOperand::k) > 0;
  }
  // Is every integer up to this size a number of the accumulator format?
  bool holds_integer(double value) const;

  Format accumulator() const { return profile_.accumulator; }
  double largest() const { return largest_; }  // finite numbers of the accumulator format end here
  double largest_weight() const { return largest_weight_; }
  double flush_threshold() const { return profile_.denormals_are_zero ? smallest_normal(profile_.accumulator) : 0; }
  double shift_slack() const { return profile_.shift_slack; }
  int online_block() const { return profile_.online_block; }
  // The plain roundoff, for questions of range that no term switches.
  double range_roundoff() const { return roundoff_; }
  double range_exp_exponent() const { return exp_exponent_; }
  // By how much a number may exceed the exact one after k roundings, in questions of range. 1.0001 is more than enough
  // for every accumulator but binary16.
  double range_room(double k) const { return std::max(1.0001, 1 + growth_upper(k, roundoff_)); }
  // More than log2 e, by which kernels in base 2 multiply scores, with the roundings of constant and product.
  double base_two_room() const { return std::max(1.5, 1.4426950408889636 * (1 + growth_upper(4, roundoff_))); }
  // Formulas of first order, k u in place of (1+u)^k - 1 with k <= 8, and products of two such parts, are made whole by
  // this factor: docs/budgets.md, "Arithmetic". 1 where u^2 is nothing beside u.
  double second_order() const { return roundoff_ > 0x1p-20 ? 1 + growth_upper(16, roundoff_) : 1; }

 private:
  double on(BudgetTerm term) const { return (terms_ >> static_cast<unsigned>(term) & 1u) != 0 ? 1.0 : 0.0; }
  double function_error(double ulps) const { return 2 * ulps * roundoff_; }
  double read_off(MatrixOperand operand) const;
  double constant_off(double value) const;

  Profile profile_;
  TermSet terms_;
  double roundoff_;
  double underflow_;
  double sum_underflow_;
  double largest_;
  double exp_exponent_;
  double weight_roundoff_ = 0;
  double weight_lambda_ = 0;
  double largest_weight_;
  double smallest_aligned_ = 0;
  double least_operand_ = 0;
};

}  // namespace qkcts
