// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_norm_statistics.hpp"

#include <algorithm>
#include <cmath>

namespace qkcts {
namespace {

using enum BudgetTerm;

// Plain sums over the vector that the bounds are made of. All but the mean are of non-negative numbers.
struct Sums {
  double n = 0;
  double mean_high = 0, mean_low = 0;  // exact mean, unevaluated
  double magnitude = 0;                // mean of |x| + Dx
  double input = 0;                    // mean of Dx
  double square = 0;                   // mean of (|x| + Dx)^2
  double statistic = 0;                // t
  double input_norm = 0;               // eta: root of the statistic of Dx
};

// The mean is summed with its rounding errors (TwoSum): c = x - mean must be good to 2^-50 even where |mean| >> |c|.
void exact_mean(std::span<const double> x, Sums& sums) {
  double high = 0;
  double low = 0;
  for (const double value : x) {
    const double sum = high + value;
    const double part = sum - high;
    low += (high - (sum - part)) + (value - part);
    high = sum;
  }
  sums.mean_high = (high + low) / sums.n;
  // The remainder of the division, exact enough: high - n * mean_high is a small difference of products of 53 bits.
  const double split = 0x1p27 + 1;
  const double carry = split * sums.mean_high;
  const double upper = carry - (carry - sums.mean_high);
  const double lower = sums.mean_high - upper;
  sums.mean_low = (((high - sums.n * upper) - sums.n * lower) + low) / sums.n;
}

Sums sums_of(const qkcts_norm& norm, std::span<const double> x, std::span<const double> error) {
  Sums sums;
  sums.n = static_cast<double>(x.size());
  if (norm.center != 0) {
    exact_mean(x, sums);
  }
  double input_square = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double size = std::fabs(x[i]) + error[i];
    const double centred = (x[i] - sums.mean_high) - sums.mean_low;
    sums.magnitude += size;
    sums.input += error[i];
    sums.square += size * size;
    sums.statistic += centred * centred;
    input_square += error[i] * error[i];
  }
  const double weight = norm.statistic == QKCTS_MEAN_SQUARE ? 1 / sums.n : 1.0;
  sums.magnitude = sum_upper(sums.magnitude / sums.n, sums.n);
  sums.input = sum_upper(sums.input / sums.n, sums.n);
  sums.square = sum_upper(sums.square / sums.n, sums.n);
  sums.statistic *= weight;
  sums.input_norm = sum_upper(std::sqrt(input_square * weight), sums.n);
  return sums;
}

// Error of the mean of the inputs as read: summed in any order and divided, or updated along any tree of merges in
// which the smaller part is added to the larger (Welford: parts of one element). `drift` is that of the second kind.
struct MeanError {
  double any = 0;
  double drift = 0;
};

MeanError mean_error(const Sums& sums, const BudgetArithmetic& arithmetic) {
  const double u = arithmetic.u(norm_mean);
  const double lambda = arithmetic.lambda(norm_underflow);
  // A length that the accumulator does not hold (binary16, beyond 2048) is a rounded divisor.
  const double by_length = joined(arithmetic.quotient(norm_mean), arithmetic.constant_error(norm_mean, sums.n));
  const double growth = joined(arithmetic.growth(norm_mean, sums.n), by_length);
  const double summed = growth * sums.magnitude + (arithmetic.sum_lambda(norm_underflow) + lambda) * (1 + growth);
  const double levels = std::ceil(log_upper(sums.n) * 1.4427);
  const double update = joined(u, by_length);
  const double spread = 1 + growth_upper(2 * sums.n, u) + expm1_upper(3 * levels * update);
  const double tree = ((sums.n - 1) * u + update * levels) * sums.magnitude;
  // A running mean that is wrong by e at every stage moves the sum of squared differences: see docs/budgets.md, N2.
  const double lengths = 2.0 / 3.0 * (sums.n + 1) * std::sqrt(sums.n + 1) / sums.n;
  const double magnitude = std::sqrt(sums.square);
  const double drift = spread * (std::sqrt(sums.n) * magnitude * (u * lengths + 0.73 * update) + 3 * sums.n * lambda);
  return {std::max(summed, spread * (tree + 3 * sums.n * lambda)), drift};
}

// Interval of the computed statistic. `fall` is t minus its lower end, summed without cancellation.
struct StatisticRange {
  double fall = 0;
  double rise = 0;
};

StatisticRange statistic_range(const qkcts_norm& norm, const Sums& sums, const MeanError& mean, double blur,
                               const BudgetArithmetic& arithmetic) {
  const bool mean_square = norm.statistic == QKCTS_MEAN_SQUARE;
  const double n = sums.n;
  const double u = arithmetic.u(norm_statistic);
  const double u_mean = arithmetic.u(norm_mean);
  const double quotient =
      mean_square ? joined(arithmetic.quotient(norm_statistic), arithmetic.constant_error(norm_statistic, n)) : 0;
  const double sigma = std::sqrt(sums.statistic);
  const double eta = sums.input_norm + blur;
  const double lower_sigma = std::max(0.0, sigma - eta);
  const double lower_square = lower_sigma * lower_sigma;
  const double input_fall = eta < sigma ? eta * (2 * sigma - eta) : sums.statistic;
  const double input_rise = eta * (2 * sigma + eta);
  const double upper_square = sums.statistic + input_rise;
  const double weight = mean_square ? 1.0 : n;  // mean -> statistic
  // Subnormal results: of the products, of the quotient; and of our own squares, which matters to binary64 alone.
  const double own = (mean_square ? 2 : n + 2) * 0x1p-1074;
  const double count = norm.center != 0 ? (mean_square ? 4 : 2 * n + 3) : (mean_square ? 2 : n);

  double phi = joined(arithmetic.growth(norm_statistic, n), quotient);
  if (norm.center == 0) {
    const double flushed = count * arithmetic.lambda(norm_underflow) * (1 + phi) + own;
    return {input_fall + phi * lower_square + flushed, input_rise + phi * upper_square + flushed};
  }

  // Two passes: a wrong mean can only raise the sum of squares, since the exact differences sum to 0.
  phi = joined(phi, u_mean, u_mean);
  const double flushed = count * arithmetic.lambda(norm_underflow) * (1 + phi) + own;
  const double raised = upper_square + weight * mean.any * mean.any;
  StatisticRange range{input_fall + phi * lower_square + flushed,
                       input_rise + weight * mean.any * mean.any + phi * raised + flushed};

  // Running updates (Welford, Chan): increments w (d + e)(d + e') with |e|, |e'| bounded in the mean by drift.
  const double drift = std::sqrt(weight) * mean.drift;
  const double update_phi = joined(arithmetic.growth(norm_statistic, n + 8), quotient);
  const double cross = 2.83 * drift * (sigma + eta);
  const double updated = upper_square + 2.83 * drift * (sigma + eta) + 2 * drift * drift;
  range.fall = std::max(range.fall, input_fall + update_phi * lower_square + cross + drift * drift + flushed);
  range.rise = std::max(range.rise, (updated - sums.statistic) + update_phi * updated + flushed);

  if (norm.variance == QKCTS_VARIANCE_ONE_PASS_CLIPPED) {
    // mean x^2 - mean^2: both parts are rounded against their own size.
    const double mu = std::fabs(sums.mean_high) + sums.input;
    const double reach = mu + mean.any;
    const double square_phi = joined(arithmetic.growth(norm_statistic, n), arithmetic.quotient(norm_statistic));
    const double parts =
        weight * (square_phi * sums.square + mean.any * (2 * mu + mean.any) + joined(u_mean, u_mean) * reach * reach);
    const double shift = parts * (1 + joined(u, u)) + joined(u, u) * upper_square + flushed;
    range.fall = std::max(range.fall, input_fall + shift);
    range.rise = std::max(range.rise, input_rise + shift);
  }
  return range;
}

struct RootRange {
  double root = 0, fall = 0, rise = 0;
  double lower = 0;
};

RootRange root_range(const qkcts_norm& norm, double t, const StatisticRange& statistic,
                     const BudgetArithmetic& arithmetic) {
  const double u = arithmetic.u(norm_epsilon);
  const double eps = norm.eps;
  double eps_error = arithmetic.constant_error(norm_epsilon, eps) * eps;
  if (eps_error > 0) {
    eps_error += arithmetic.lambda(norm_epsilon);
  }
  if (eps > 0 && eps < arithmetic.flush_threshold()) {
    eps_error = eps;
  }
  const double eps_lower = std::max(0.0, eps - eps_error);
  const double eps_upper = eps + eps_error;
  // The clip at 0 is real: a sum of squares is not negative. 2^-50 t covers the subtraction itself.
  const double t_lower = std::max(0.0, t - statistic.fall - 0x1p-50 * t);
  const double t_upper = t + statistic.rise;
  const double t_fall = std::min(t, statistic.fall);

  const bool inside = norm.root == QKCTS_INSIDE_ROOT || norm.root == QKCTS_MAX_INSIDE;
  RootRange range;
  if (inside) {
    double a = 0, lower = 0, fall = 0, rise = 0;
    if (norm.root == QKCTS_INSIDE_ROOT) {
      a = t + eps;
      lower = (t_lower + eps_lower) * (1 - u);
      fall = t_fall + eps_error + u * (t_lower + eps_lower);
      rise = statistic.rise + eps_error + u * (t_upper + eps_upper);
    } else {
      a = std::max(t, eps);
      lower = std::max(t_lower, eps_lower);
      fall = eps_lower >= t_upper ? eps_error : (t_lower >= eps_upper ? t_fall : std::max(t_fall, eps_error));
      rise = t_upper <= eps_lower ? eps_error : std::max(statistic.rise, eps_error);
    }
    range.root = std::sqrt(a);
    range.lower = std::sqrt(lower);
    range.fall = range.root > 0 ? fall / (range.root + range.lower) : 0;
    range.rise = range.root > 0 ? rise / (range.root + std::sqrt(a + rise)) : std::sqrt(rise);
    return range;
  }

  const double a_sqrt = arithmetic.sqrt(norm_root);
  const double s = std::sqrt(t);
  const double s_lower = std::sqrt(t_lower);
  const double s_upper = std::sqrt(t_upper);
  const double s_fall = (s > 0 ? t_fall / (s + s_lower) : 0) + a_sqrt * s_lower;
  const double s_rise = (s_upper > 0 ? statistic.rise / (s + s_upper) : 0) + a_sqrt * s_upper;
  if (norm.root == QKCTS_OUTSIDE_ROOT) {
    range.root = s + eps;
    range.lower = (s_lower * (1 - a_sqrt) + eps_lower) * (1 - u);
    range.fall = s_fall + eps_error + u * (s_lower + eps_lower);
    range.rise = s_rise + eps_error + u * (s_upper * (1 + a_sqrt) + eps_upper);
  } else {
    range.root = std::max(s, eps);
    range.lower = std::max(s_lower * (1 - a_sqrt), eps_lower);
    const bool always_eps = s_upper * (1 + a_sqrt) <= eps_lower;
    const bool never_eps = s_lower * (1 - a_sqrt) >= eps_upper;
    range.fall = always_eps ? eps_error : (never_eps ? s_fall : std::max(s_fall, eps_error));
    range.rise = always_eps ? eps_error : (never_eps ? s_rise : std::max(s_rise, eps_error));
  }
  return range;
}

}  // namespace

NormStatistics norm_statistics(const qkcts_norm& norm, std::span<const double> x, std::span<const double> error,
                               double inexact, const BudgetArithmetic& arithmetic) {
  const Sums sums = sums_of(norm, x, error);
  MeanError mean;
  if (norm.center != 0) {
    mean = mean_error(sums, arithmetic);
  }
  const double weight = norm.statistic == QKCTS_MEAN_SQUARE ? 1.0 : sums.n;
  const double blur = norm.center != 0 ? 2 * inexact * std::sqrt(sums.square * weight) : 0;
  const StatisticRange statistic = statistic_range(norm, sums, mean, blur, arithmetic);
  const RootRange root = root_range(norm, sums.statistic, statistic, arithmetic);

  NormStatistics result;
  result.mean_high = sums.mean_high;
  result.mean_low = sums.mean_low;
  result.mean_error = sum_upper(mean.any, 32);
  result.mean_input = norm.center != 0 ? sums.input : 0;
  result.root = root.root;
  result.root_lower = root.lower * (1 - 0x1p-48);
  result.root_upper = (root.root + root.rise) * (1 + 0x1p-48);
  // A root of sums of n numbers >= 0; squares below the range of binary64 are lost.
  result.root_blur = root.root * (sums.n + 64) * 0x1p-50 + blur + std::sqrt(sums.n + 2) * 0x1p-537;
  result.mean_blur = norm.center != 0 ? (inexact + 0x1p-70) * sums.magnitude : 0;
  result.inexact = inexact;
  const double room = 1 + growth_upper(sums.n + 8, arithmetic.range_roundoff());
  const bool overflows = !(sums.square * sums.n * room < arithmetic.largest()) ||
                         !(sums.magnitude * sums.n * room < arithmetic.largest()) || !(norm.eps < arithmetic.largest());
  if (overflows || !(result.root_lower > 0)) {
    result.domain = true;
    return result;
  }
  result.common = sum_upper(std::max(root.fall / result.root_lower, root.rise / root.root), sums.n + 64);
  result.domain = !(result.common < 0x1p500);
  return result;
}

}  // namespace qkcts
