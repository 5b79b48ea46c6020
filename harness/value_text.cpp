// SPDX-License-Identifier: Apache-2.0
#include "harness/value_text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace qkcts {

std::string bits_text(Format format, std::uint64_t pattern) {
  return fmt::format("0x{:0{}x}", pattern, parameters(format).bits / 4);
}

std::string decimal_text(Format format, double value) {
  // ceil(1 + p log10(2)) digits.
  switch (format) {
    case Format::binary64:
      return fmt::format("{:.17g}", value);
    case Format::binary32:
      return fmt::format("{:.9g}", value);
    case Format::binary16:
      return fmt::format("{:.5g}", value);
    case Format::bfloat16:
      return fmt::format("{:.4g}", value);
    case Format::e4m3fn:
      return fmt::format("{:.3g}", value);
    case Format::e5m2:
      return fmt::format("{:.2g}", value);
  }
  return {};
}

std::string exact_text(StoredValue value) {
  if (!std::isfinite(value.hi) || value.lo == 0) return fmt::format("{:.19g}", static_cast<long double>(value.hi));
  const long double low = std::ldexp(static_cast<long double>(value.lo) * ulp(Format::binary64, value.hi), -8);
  return fmt::format("{:.19g}", static_cast<long double>(value.hi) + low);
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string short_text(double value) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{}", value);
  const double magnitude = std::fabs(value);
  if (magnitude >= 9999.5 || magnitude < 0.001) return fmt::format("{:.1e}", value);
  if (magnitude >= 99.95) return fmt::format("{:.0f}", value);
  if (magnitude >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.3g}", value);
}

}  // namespace qkcts
