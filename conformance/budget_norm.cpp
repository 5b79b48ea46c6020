// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_norm.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "conformance/lanes.hpp"

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

bool norm_keeps_factor(const qkcts_norm& norm, const NormStatistics& statistics) {
  return norm.bias_axes == QKCTS_AXES_NONE && statistics.common < 0.5;
}

namespace {

double relative_error(const qkcts_norm& norm, const ConstantFactor& factor, const BudgetArithmetic& arithmetic) {
  double kappa = arithmetic.inverse_root(norm_root);
  if (norm.root == QKCTS_OUTSIDE_ROOT || norm.root == QKCTS_MAX_ROOT) {
    kappa = arithmetic.quotient(norm_root);
  } else {
    kappa = joined(kappa, arithmetic.u(norm_root));
  }
  if (norm.gain != QKCTS_GAIN_NONE) {
    kappa = joined(kappa, arithmetic.u(norm_gain));
  }
  if (norm.gain == QKCTS_GAIN_ONE_PLUS_W) {
    kappa = joined(kappa, arithmetic.u(norm_gain));
  }
  if (factor.exists() && norm.bias_axes == QKCTS_AXES_NONE) {
    kappa = joined(kappa, arithmetic.u(norm_factor), factor.relative);
  }
  return kappa;
}

}  // namespace

NormElements::NormElements(const qkcts_norm& norm, const NormStatistics& statistics, const ConstantFactor& factor,
                           const BudgetArithmetic& arithmetic)
    : statistics_(statistics),
      arithmetic_(arithmetic),
      centred_(norm.center != 0),
      with_bias_(norm.bias_axes != QKCTS_AXES_NONE),
      keeps_factor_(norm_keeps_factor(norm, statistics)),
      kappa_(relative_error(norm, factor, arithmetic)),
      // Beside a bias the constant factor multiplies the sum; else it is one of the factors, in any order.
      factor_(with_bias_ ? 1 : factor.value),
      inverse_(1 / statistics.root_lower),
      lambda_(arithmetic.lambda(norm_underflow)),
      sum_lambda_(arithmetic.sum_lambda(norm_underflow)),
      mean_u_(arithmetic.u(norm_mean)),
      bias_u_(arithmetic.u(norm_bias)),
      room_(1 + 64 * arithmetic.range_roundoff()) {}

double NormElements::error(double x, double x_error, const ElementParameters& parameters, double exact_result) const {
  const double g = std::fabs(parameters.gain);
  const double c = std::fabs((x - statistics_.mean_high) - statistics_.mean_low);
  double moved = x_error;
  if (centred_) {
    moved = (x_error + statistics_.mean_input + statistics_.mean_error) * (1 + mean_u_) + mean_u_ * c + sum_lambda_;
  }
  const double f = factor_;
  const double unit = (moved * (1 + kappa_) + kappa_ * c) / statistics_.root;
  double own = (g * unit + parameters.gain_error * (c + moved) * (1 + kappa_) / statistics_.root) * f;
  // A product of some of the factors c, r, g, f may be flushed before the others come to it, whichever come first.
  const double reach = c + moved;
  const double r = inverse_;
  double left = std::max({g, r, reach});
  if (f != 1) {
    const double pairs = std::max({g * r, g * reach, r * reach, g * f, r * f, reach * f});
    left = pairs + std::max({left, f, pairs});
  }
  const double flush = lambda_ * (1 + left) * (1 + kappa_);
  // The factor (1 + r) does not apply to flushed parts: where it is small they count twice.
  own += 2 * flush;
  if (!keeps_factor_) {
    const double y = g * c / statistics_.root * f;
    own = statistics_.common * y + (1 + statistics_.common) * own;
    if (with_bias_) {
      own += parameters.bias_error;
      own += bias_u_ * (std::fabs(exact_result) + own) + sum_lambda_;
      own = parameters.factor.moved(exact_result, own, arithmetic_);
    }
  }
  return sum_upper(own, 64);
}

bool NormElements::overflows(double x, double x_error, const ElementParameters& parameters) const {
  const double c = std::fabs((x - statistics_.mean_high) - statistics_.mean_low) + x_error + statistics_.mean_input +
                   statistics_.mean_error;
  const double r = inverse_;
  const double g = std::fabs(parameters.gain) + parameters.gain_error;
  double reach = std::max({c, c * g, r, r * g, c * r, c * r * g, c * r * g + std::fabs(parameters.bias)}) * room_;
  if (const double f = parameters.factor.value; f != 1) {
    // The largest product of any of the factors; and the factor times the sum with the bias.
    reach = std::max(std::max(1.0, c) * std::max(1.0, g) * std::max(1.0, r) * std::max(1.0, f),
                     f * (c * r * g + std::fabs(parameters.bias))) *
            room_;
  }
  return !(reach < arithmetic_.largest());
}

namespace {

// What the elements of a vector share.
struct VectorTerms {
  double mean_high, mean_low, mean_input, mean_error, mean_u, sum_lambda;
  double kappa, root, inverse, lambda, common, bias_u, room, largest;
  double centred, keeps_factor, with_bias;  // 1 or 0
};

// As error() and overflows(), with f = 1; how many overflow, modulo 2^64.
[[gnu::always_inline]] inline std::uint64_t vector_errors(
    const VectorTerms& w, std::size_t n, const double* __restrict x, const double* __restrict x_errors,
    const double* __restrict gains, const double* __restrict gain_errors, const double* __restrict biases,
    const double* __restrict bias_errors, const double* __restrict exact, double* __restrict errors) {
  std::uint64_t outside = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double g = std::fabs(gains[i]);
    const double c = std::fabs((x[i] - w.mean_high) - w.mean_low);
    const double by_mean = (x_errors[i] + w.mean_input + w.mean_error) * (1 + w.mean_u) + w.mean_u * c + w.sum_lambda;
    const double moved = w.centred > 0 ? by_mean : x_errors[i];
    const double unit = (moved * (1 + w.kappa) + w.kappa * c) / w.root;
    const double product = g * unit + gain_errors[i] * (c + moved) * (1 + w.kappa) / w.root;
    const double r = w.inverse;
    const double left = std::max(std::max(g, r), c + moved);
    const double own = product + 2 * (w.lambda * (1 + left) * (1 + w.kappa));
    const double whole = w.common * (g * c / w.root) + (1 + w.common) * own;
    const double read = whole + bias_errors[i];
    const double biased = read + (w.bias_u * (std::fabs(exact[i]) + read) + w.sum_lambda);
    const double without_factor = w.with_bias > 0 ? biased : whole;
    errors[i] = sum_upper(w.keeps_factor > 0 ? own : without_factor, 64);

    const double far = c + x_errors[i] + w.mean_input + w.mean_error;
    const double grown = g + gain_errors[i];
    const double all = far * r * grown;
    const double pairs = std::max(std::max(std::max(far, far * grown), std::max(r, r * grown)), far * r);
    const double reach = std::max(std::max(pairs, all), all + std::fabs(biases[i])) * w.room;
    outside += reach < w.largest ? 0 : 1;
  }
  return outside;
}

}  // namespace

bool NormElements::set_errors(std::span<const double> x, std::span<const double> x_errors,
                              const ParameterColumns& parameters, std::span<const double> exact_results,
                              std::span<double> errors) const {
  const auto flag = [](bool value) { return value ? 1.0 : 0.0; };
  const VectorTerms terms{statistics_.mean_high,
                          statistics_.mean_low,
                          statistics_.mean_input,
                          statistics_.mean_error,
                          mean_u_,
                          sum_lambda_,
                          kappa_,
                          statistics_.root,
                          inverse_,
                          lambda_,
                          statistics_.common,
                          bias_u_,
                          room_,
                          arithmetic_.largest(),
                          flag(centred_),
                          flag(keeps_factor_),
                          flag(with_bias_)};
  std::uint64_t outside = 0;
  in_widest_lanes([=, n = x.size(), from = x.data(), moved = x_errors.data(), gain = parameters.gain.data(),
                   gain_error = parameters.gain_error.data(), bias = parameters.bias.data(),
                   bias_error = parameters.bias_error.data(), exact = exact_results.data(), to = errors.data(),
                   overflowing = &outside]() QKCTS_STRAIGHT {
    *overflowing = vector_errors(terms, n, from, moved, gain, gain_error, bias, bias_error, exact, to);
  });
  return outside == 0;
}

double norm_element_error(const qkcts_norm& norm, const NormStatistics& statistics, double x, double x_error,
                          const ElementParameters& parameters, double exact_result,
                          const BudgetArithmetic& arithmetic) {
  return NormElements(norm, statistics, parameters.factor, arithmetic).error(x, x_error, parameters, exact_result);
}

NormFactors norm_factors(const NormStatistics& statistics, double x, double x_error,
                         const ElementParameters& parameters) {
  const double c = std::fabs((x - statistics.mean_high) - statistics.mean_low) + x_error + statistics.mean_input +
                   statistics.mean_error;
  return {c, 1 / statistics.root_lower, std::fabs(parameters.gain) + parameters.gain_error};
}

bool norm_element_overflows(const NormStatistics& statistics, double x, double x_error,
                            const ElementParameters& parameters, const BudgetArithmetic& arithmetic) {
  return NormElements({}, statistics, parameters.factor, arithmetic).overflows(x, x_error, parameters);
}

NormElement norm_element(const NormStatistics& statistics, double x, const ElementParameters& parameters, double n) {
  NormElement element;
  const double c = (x - statistics.mean_high) - statistics.mean_low;
  element.unscaled = c / statistics.root * parameters.gain + parameters.bias;
  element.value = element.unscaled * parameters.factor.value;
  // The root is a sum of n squares; x may itself be a stage known to 2^-50.
  const double parts = (std::fabs(x) + std::fabs(statistics.mean_high)) / statistics.root * std::fabs(parameters.gain) +
                       std::fabs(parameters.bias);
  element.blur = parts * parameters.factor.value * (n + 64) * 0x1p-49;
  return element;
}

}  // namespace qkcts
