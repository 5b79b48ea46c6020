// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_frequency.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace qkcts {
namespace {

using enum BudgetTerm;

constexpr double infinity = std::numeric_limits<double>::infinity();
// How far the logarithms and exponentials of this file may be from what they stand for. They enter as magnitudes only,
// or where it is asked on which side of a whole number something lies.
constexpr double own_accuracy = 0x1p-40;

// A number that is computed: its size, and the relative error that it may have.
struct Computed {
  double value = 0;
  double relative = 0;
};

// ln x for any x > 0, to within own_accuracy.
double log_of(double x) {
  return x > 1 ? log_upper(x) : -log_upper(1 / x);
}

// Sizes and roundings that all scalings share.
class Formation {
 public:
  Formation(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t rotated,
            const BudgetArithmetic& arithmetic)
      : arithmetic_(arithmetic),
        u_(arithmetic.u(angle_frequency)),
        quotient_(arithmetic.quotient(angle_frequency)),
        log_(arithmetic.log(angle_frequency)),
        power_(std::max(minus_log1m_upper(arithmetic.pow(angle_frequency)), arithmetic.exp_exponent(angle_frequency))),
        lanes_(static_cast<double>(rotated)),
        rotation_(rotation),
        base_(constant(rope.theta)) {
    if (rotation.scaling == QKCTS_SCALING_NTK) {
      base_ = joined_product(base_, power(constant(rotation.factor), lanes_ / (lanes_ - 2)));
    }
  }

  Frequency frequency(std::int64_t pair) const {
    const double i = static_cast<double>(pair);
    const Computed plain = inverse(power(base_, 2 * i / lanes_));
    switch (rotation_.scaling) {
      case QKCTS_SCALING_LINEAR:
        return finished(over_factor(plain), Divided::by_factor);
      case QKCTS_SCALING_YARN:
        return blended(plain, yarn_share(i));
      case QKCTS_SCALING_LLAMA3:
        return blended(plain, llama3_share(plain));
      case QKCTS_SCALING_PROPORTIONAL:
        return proportional(plain, i);
      default:
        return finished(plain);
    }
  }

  // Some number on the way does not fit into the accumulator.
  bool overflows() const {
    const double room = 1 + 64 * arithmetic_.range_roundoff();
    double reach = base_.value;
    if (rotation_.scaling != QKCTS_SCALING_NONE) {
      reach = std::max({reach, rotation_.factor, 1 / rotation_.factor});
    }
    if (rotation_.scaling == QKCTS_SCALING_YARN || rotation_.scaling == QKCTS_SCALING_LLAMA3) {
      reach = std::max({reach, 7 * rotation_.original_length, 7 * rotation_.high, 7 * base_.value});
    }
    return !(reach * room < arithmetic_.largest());
  }

 private:
  // A share of the unscaled frequency, between 0 and 1, and how far a computed one may be off.
  struct Share {
    double value = 0;
    double error = 0;
  };

  Computed constant(double value) const { return {value, arithmetic_.constant_error(angle_frequency, value)}; }

  Computed joined_product(const Computed& a, const Computed& b) const {
    return {a.value * b.value, joined(a.relative, b.relative, u_)};
  }

  // base^exponent as a power, or as the exponential of a product with the logarithm of the base. The exponent is a
  // quotient; what is relative in it counts |ln result| times.
  Computed power(const Computed& base, double exponent) const {
    const double log = exponent * log_of(base.value);
    const double moved =
        std::fabs(log) * joined(quotient_, log_, u_) + exponent * minus_log1m_upper(base.relative) + power_;
    return {log < 0 ? 1 / exp_lower(-log) : exp_upper(log), expm1_upper(moved)};
  }

  Computed inverse(const Computed& x) const {
    // The power of a negative exponent needs no quotient; the other way it is one.
    return {1 / x.value * (1 + own_accuracy), joined(x.relative, quotient_)};
  }

  Computed over_factor(const Computed& x) const {
    const Computed factor = constant(rotation_.factor);
    return {x.value / factor.value, joined(x.relative, quotient_, factor.relative / (1 - factor.relative))};
  }

  enum class Divided : std::uint8_t { not_at_all, by_factor };

  Frequency finished(const Computed& x, Divided divided = Divided::not_at_all) const {
    // Subnormal results of the power and of the quotient; a division by s makes them 1/s times as large.
    const double lost = (arithmetic_.pow_quanta(angle_frequency) + 4 * arithmetic_.lambda(angle_frequency)) *
                        (divided == Divided::by_factor ? 1 + 1 / rotation_.factor : 1);
    return {x.value, sum_upper(x.value * x.relative + lost, 32)};
  }

  // (1 - e) f / s + e f.
  Frequency blended(const Computed& plain, const Share& share) const {
    const Computed scaled = over_factor(plain);
    const double gap = std::fabs(plain.value - scaled.value);
    Computed sum;
    sum.value = (1 - share.value) * scaled.value + share.value * plain.value + gap * own_accuracy;
    sum.relative = joined(scaled.relative, u_, u_);
    Frequency result = finished(sum, Divided::by_factor);
    // Both weights are off by the same amount, and 1 - e is rounded once more.
    result.error += gap * share.error * (1 + sum.relative) + (share.error > 0 ? u_ * scaled.value : 0);
    result.error = sum_upper(result.error, 16);
    return result;
  }

  // clamp(x, 0, 1) of a number that is off by at most `error`: beyond the ends nothing is off.
  static Share clamped(double x, double error) {
    const double reach = error + own_accuracy * (1 + std::fabs(x));
    if (x + reach <= 0) {
      return {0, 0};
    }
    if (x - reach >= 1) {
      return {1, 0};
    }
    return {std::clamp(x, 0.0, 1.0), std::min(1.0, error)};
  }

  // clamp((L f / 2 pi - low) / (high - low), 0, 1): where the wavelength is compared instead, it is at an end.
  Share llama3_share(const Computed& plain) const {
    const double turns = rotation_.original_length * plain.value / 6.283185307179586;
    const double length = constant(rotation_.original_length).relative;
    const double relative = joined(plain.relative, length, joined(u_, u_), joined(quotient_, quotient_));
    const double low_error = constant(rotation_.low).relative * rotation_.low;
    const double high_error = constant(rotation_.high).relative * rotation_.high;
    const double width = rotation_.high - rotation_.low;
    const double width_error = (low_error + high_error) * (1 + u_) + u_ * width;
    if (!(width_error < width)) {
      return {0, 1};
    }
    const double share = (turns - rotation_.low) / width;
    const double above = (turns * relative + low_error) * (1 + u_) + u_ * std::fabs(turns - rotation_.low);
    const double error = (above + std::fabs(share) * width_error) / (width - width_error);
    return clamped(share, error * (1 + quotient_) + quotient_ * std::fabs(share));
  }

  // An end of yarn's ramp, R ln(L / (2 pi turns)) / (2 ln theta).
  Share ramp_end(double turns) const {
    const double ratio = rotation_.original_length / (6.283185307179586 * turns);
    const double ratio_error =
        joined(constant(rotation_.original_length).relative, constant(turns).relative, joined(u_, u_), quotient_);
    const double ratio_log = log_of(ratio);
    const double log_error = minus_log1m_upper(ratio_error) * (1 + log_) + log_ * std::fabs(ratio_log);
    const double theta_log = log_of(base_.value);
    const double theta_error = joined(minus_log1m_upper(base_.relative) / theta_log, log_);
    if (!(theta_error < 0.5)) {
      return {0, infinity};
    }
    const double relative = joined(u_, quotient_, theta_error / (1 - theta_error));
    const double scale = lanes_ / (2 * theta_log);
    return {scale * ratio_log, scale * (log_error * (1 + relative) + relative * std::fabs(ratio_log))};
  }

  // Rounded to a whole number: off by whole steps where it is not decided on which side of one it lies.
  static Share whole(const Share& end, double (*round)(double)) {
    const double reach = end.error + own_accuracy * (1 + std::fabs(end.value));
    return {round(end.value), std::isfinite(reach) ? round(end.value + reach) - round(end.value - reach) : infinity};
  }

  // e = 1 - clamp((i - a) / (b - a), 0, 1).
  Share yarn_share(double i) const {
    Share a = ramp_end(rotation_.high);
    Share b = ramp_end(rotation_.low);
    if (rotation_.untruncated == 0) {
      a = whole(a, [](double x) { return std::floor(x); });
      b = whole(b, [](double x) { return std::ceil(x); });
    }
    a.value = std::max(a.value, 0.0);
    b.value = std::min(b.value, lanes_ - 1);
    const double width = b.value - a.value;
    const double moved = a.error + b.error;
    if (width == 0 && moved == 0) {
      return {i > a.value ? 0.0 : 1.0, 0};  // whole ends: the 0.001 that is added to one of them decides nothing
    }
    if (!(std::fabs(width) > moved + own_accuracy * lanes_)) {
      return {1, 1};
    }
    const double ramp = (i - a.value) / width;
    const double ends = (a.error * std::fabs(1 - ramp) + b.error * std::fabs(ramp)) / (std::fabs(width) - moved);
    const double rounded = joined(u_, u_, quotient_);
    const Share share = clamped(ramp, ends + rounded * (std::fabs(ramp) + ends));
    return {1 - share.value, share.error > 0 ? share.error + u_ : 0};
  }

  // f for i < floor(s R / 2), else 0.
  Frequency proportional(const Computed& plain, double i) const {
    const Computed share = constant(rotation_.factor);
    const double turning = share.value * (lanes_ / 2);
    // A product that the format holds is not rounded.
    const bool exact = share.relative == 0 && std::fma(share.value, lanes_ / 2, -turning) == 0 &&
                       arithmetic_.constant_error(angle_frequency, turning) == 0;
    const double reach = exact ? 0 : turning * (joined(share.relative, u_) + 0x1p-51);
    if (i >= std::floor(turning + reach)) {
      return {0, 0};
    }
    Frequency result = finished(plain);
    if (i >= std::floor(turning - reach)) {
      result.error += result.value;  // it may turn or not
    }
    return result;
  }

  const BudgetArithmetic& arithmetic_;
  double u_, quotient_, log_, power_;
  double lanes_;
  const qkcts_rotation& rotation_;
  Computed base_;
};

}  // namespace

std::vector<Frequency> frequency_errors(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t rotated,
                                        const BudgetArithmetic& arithmetic) {
  const Formation formation(rope, rotation, rotated, arithmetic);
  std::vector<Frequency> frequencies;
  for (std::int64_t pair = 0; pair < rotated / 2; ++pair) {
    Frequency frequency = formation.frequency(pair);
    if (formation.overflows() || !std::isfinite(frequency.error)) {
      frequency.error = infinity;
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

}  // namespace qkcts
