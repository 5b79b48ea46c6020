// SPDX-License-Identifier: Apache-2.0
#include "vectors/row_rms.hpp"

#include <cmath>

#include <fmt/format.h>

namespace qkcts {

double rms_with_root(const qkcts_norm& norm, double root, std::int64_t width) {
  return norm.statistic == QKCTS_MEAN_SQUARE ? root : root / std::sqrt(static_cast<double>(width));
}

double balanced_rms(const qkcts_norm& norm, std::int64_t width) {
  const bool under_root = norm.root == QKCTS_INSIDE_ROOT || norm.root == QKCTS_MAX_INSIDE;
  return rms_with_root(norm, under_root ? std::sqrt(norm.eps) : norm.eps, width);
}

std::int64_t norm_width(const qkcts_norm& norm, std::int64_t lanes, std::int64_t heads) {
  return norm.axis == QKCTS_AXIS_FULL_WIDTH ? lanes * heads : lanes;
}

std::string rms_fault(double rms, double most, Format format) {
  if (rms >= 256 * smallest_subnormal(format) && rms * most <= parameters(format).largest) return {};
  return fmt::format("an rms of {:.3g}, where epsilon decides, does not fit the format", rms);
}

std::string rms_broken(std::int64_t token, double squares, std::int64_t count, double wanted, Format format) {
  const double got = std::sqrt(squares / static_cast<double>(count));
  const double slack = 5 * std::sqrt(1.9 / static_cast<double>(count));
  if (got <= wanted * (1 + slack) && got >= wanted * (1 - slack) - 8 * smallest_subnormal(format)) return {};
  return fmt::format("token {} has rms {:.3g} instead of {:.3g}", token, got, wanted);
}

}  // namespace qkcts
