// SPDX-License-Identifier: Apache-2.0
#include "harness/peer_rule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double oddly_small = 1e-5;  // oneDNN: relative errors are looked at above it only
constexpr double binary32_eps = 0x1p-23;

PeerFinding inapplicable(std::string why) {
  return {PeerVerdict::not_applicable, 0, std::move(why), {}};
}

PeerFinding judged(double share) {
  return {share <= 1 ? PeerVerdict::accepts : PeerVerdict::rejects, share, {}, {}};
}

double rounded(Format format, double x) {
  return decode(format, encode(format, x));
}

// error / allowed, where 0 of 0 is nothing and a NaN is everything.
double share_of(double error, double allowed) {
  if (std::isnan(error)) return infinity;
  if (error == 0) return 0;
  return allowed > 0 ? error / allowed : infinity;
}

// Points at which a number is no number: 0 where they agree, infinite where not, nothing between two numbers.
std::optional<double> class_share(double got, double wanted, bool nan_equals_nan) {
  if (std::isnan(got) || std::isnan(wanted))
    return std::isnan(got) && std::isnan(wanted) && nan_equals_nan ? 0 : infinity;
  if (std::isinf(got) || std::isinf(wanted)) return got == wanted ? 0 : infinity;
  return std::nullopt;
}

double allowance(const PeerRule& rule, const PeerSubject& subject) {
  return rule.limit + rule.by_key * subject.keys + rule.by_lane * subject.lanes;
}

double largest_difference(std::span<const double> a, std::span<const double> b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // equal infinities too
    const double apart = std::fabs(a[i] - b[i]);
    largest = std::isnan(apart) ? infinity : std::max(largest, apart);
  }
  return largest;
}

double allclose(const PeerRule& rule, const PeerSubject& s, std::span<const double> wanted, double atol, double rtol) {
  double largest = 0;
  for (std::size_t i = 0; i < s.got.size(); ++i) {
    const std::optional<double> by_class = class_share(s.got[i], wanted[i], rule.nan_equals_nan);
    largest = std::max(
        largest, by_class ? *by_class : share_of(std::fabs(s.got[i] - wanted[i]), atol + rtol * std::fabs(wanted[i])));
  }
  return largest;
}

double relative(const PeerRule& rule, const PeerSubject& s, std::span<const double> wanted) {
  const double limit = allowance(rule, s);
  double largest = 0;
  for (std::size_t i = 0; i < s.got.size(); ++i) {
    const double r = rounded(s.format, wanted[i]);
    if (const std::optional<double> by_class = class_share(s.got[i], r, true)) {
      largest = std::max(largest, *by_class);
      continue;
    }
    const double d = std::fabs(s.got[i] - r);
    if (d == 0 || d < rule.escape_abs) continue;
    if (!s.weighted.empty() && d <= rule.escape_weights * s.weighted[i]) continue;
    const bool is_small = std::fabs(r) <= oddly_small;
    if (is_small && d < binary32_eps) continue;
    largest = std::max(largest, share_of(is_small ? d : d / std::fabs(r), limit));
  }
  return largest;
}

// NaN / infinity first; a quotient that is NaN passes, as it does there.
double nmse(const PeerRule& rule, const PeerSubject& s, std::span<const double> wanted) {
  constexpr double largest_float = 0x1.fffffep127;
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < s.got.size(); ++i) {
    const double t = s.got[i], r = wanted[i];
    if (std::isnan(t) || std::isnan(r)) return infinity;
    const bool odd_t = std::fabs(t) >= largest_float, odd_r = std::fabs(r) >= largest_float;
    if ((odd_t || odd_r) && !(odd_t && odd_r && std::signbit(t) == std::signbit(r))) return infinity;
    apart += (t - r) * (t - r);
    size += t * t;
  }
  const double quotient = apart / size;
  return std::isnan(quotient) ? 0 : quotient / allowance(rule, s);
}

double ratio(const PeerRule& rule, const PeerSubject& s) {
  double allowed = rule.factor * largest_difference(s.low, s.exact) + rule.atol;
  if (rule.detour > 0) {
    double largest = 0;
    for (const double exact : s.exact) {
      const double r = rounded(s.format, exact);
      const double there = rounded(s.format, r + 0.3);
      if (std::isfinite(there)) largest = std::max(largest, std::fabs(rounded(s.format, there - 0.3) - r));
    }
    allowed += rule.detour * largest;
  }
  return share_of(largest_difference(s.got, s.exact), allowed);
}

double measured(const PeerRule& rule, const PeerSubject& s) {
  double atol = rule.atol, rtol = rule.rtol;
  for (std::size_t i = 0; i < s.exact.size(); ++i) {
    const double apart = std::fabs(s.low[i] - s.exact[i]);
    if (!std::isfinite(apart)) continue;
    atol = std::max(atol, apart);
    if (s.exact[i] != 0) rtol = std::max(rtol, apart / std::fabs(s.exact[i]));
  }
  return allclose(rule, s, s.exact, atol, rtol);
}

// Place in the order of the numbers of a format; both zeros at 0.
double place(Format format, double x) {
  const int bits = parameters(format).bits;
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  const std::uint64_t pattern = encode(format, x);
  const auto magnitude = static_cast<double>(pattern & (sign - 1));
  return (pattern & sign) != 0 ? -magnitude : magnitude;
}

double ulp_distance(const PeerRule& rule, const PeerSubject& s, std::span<const double> wanted) {
  const double limit = allowance(rule, s);
  double largest = 0;
  for (std::size_t i = 0; i < s.got.size(); ++i) {
    const std::optional<double> by_class = class_share(s.got[i], rounded(s.format, wanted[i]), true);
    largest = std::max(
        largest,
        by_class ? *by_class : share_of(std::fabs(place(s.format, s.got[i]) - place(s.format, wanted[i])), limit));
  }
  return largest;
}

// With an accumulator of the width of the result every product counts: the bound is 6 per key, the mean square 1.6.
double dot_product(const PeerSubject& s) {
  const double precision = parameters(s.format).precision;  // counts the hidden bit
  double largest = 0, squares = 0;
  for (std::size_t i = 0; i < s.got.size(); ++i) {
    if (const std::optional<double> by_class = class_share(s.got[i], s.own[i], true)) {
      largest = std::max(largest, *by_class);
      continue;
    }
    const double unit =
        std::max(std::ldexp(s.own_absolute[i], static_cast<int>(-precision)), smallest_normal(s.format));
    const double error = (s.got[i] - s.own[i]) / unit;
    largest = std::max(largest, std::fabs(error) / (6 * s.keys));
    squares += error * error;
  }
  return std::max(largest, squares / (1.6 * s.keys * static_cast<double>(s.got.size())));
}

}  // namespace

PeerFinding apply_peer_rule(const PeerRule& rule, const PeerSubject& subject) {
  if (rule.kind == PeerRuleKind::none) return inapplicable(rule.why);
  if (subject.got.empty()) return inapplicable("the stage does not exist in this case, or nothing of it is stored");
  const bool is_own = rule.scope == PeerRuleScope::one_operator;
  if (is_own && subject.own.empty())
    return inapplicable("a rule of one operator, whose operands the kernel does not show");
  if ((rule.kind == PeerRuleKind::ratio || rule.kind == PeerRuleKind::measured) && subject.low.empty())
    return inapplicable("no run that rounds every step to the format");
  if (rule.kind == PeerRuleKind::ulp_distance && subject.format != rule.format)
    return inapplicable("the stage is observed in another format");
  const std::span<const double> wanted = is_own ? subject.own : subject.exact;
  switch (rule.kind) {
    case PeerRuleKind::allclose:
      return judged(allclose(rule, subject, wanted, rule.atol, rule.rtol));
    case PeerRuleKind::max_abs:
      return judged(allclose(rule, subject, wanted, rule.atol, 0));
    case PeerRuleKind::relative:
      return judged(relative(rule, subject, wanted));
    case PeerRuleKind::nmse:
      return judged(nmse(rule, subject, wanted));
    case PeerRuleKind::ratio:
      return judged(ratio(rule, subject));
    case PeerRuleKind::measured:
      return judged(measured(rule, subject));
    case PeerRuleKind::ulp_distance:
      return judged(ulp_distance(rule, subject, wanted));
    case PeerRuleKind::dot_product:
      return judged(dot_product(subject));
    case PeerRuleKind::none:
      break;
  }
  return inapplicable(rule.why);
}

}  // namespace qkcts
