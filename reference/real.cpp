// SPDX-License-Identifier: Apache-2.0
#include "reference/real.hpp"

#include <vector>

#include "conformance/contract.hpp"

namespace qkcts {
namespace {

struct ThreadCaches {
  ThreadCaches() = default;
  ThreadCaches(const ThreadCaches&) = delete;
  ThreadCaches& operator=(const ThreadCaches&) = delete;
  ~ThreadCaches() { mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE); }
};

}  // namespace

std::optional<std::int64_t> only_integer(RealView lower, RealView upper) {
  if (!mpfr_number_p(lower) || !mpfr_number_p(upper)) return std::nullopt;
  Real first(mpfr_get_prec(lower));
  Real last(mpfr_get_prec(upper));
  mpfr_ceil(first.get(), lower);
  mpfr_floor(last.get(), upper);
  if (!mpfr_equal_p(first.get(), last.get()) || mpfr_cmp_d(first.get(), 0x1p62) >= 0 ||
      mpfr_cmp_d(first.get(), -0x1p62) <= 0)
    return std::nullopt;
  return mpfr_get_si(first.get(), MPFR_RNDN);
}

Rational rational_of(RealView x) {
  Rational result;
  mpfr_get_q(result.backend().data(), x);
  return result;
}

std::string decimal_text(RealView x, int digits) {
  std::vector<char> text(static_cast<std::size_t>(digits) + 40);
  mpfr_snprintf(text.data(), text.size(), "%.*Re", digits - 1, x);
  return text.data();
}

void prepare_thread() {
  static const bool thread_safe = mpfr_buildopt_tls_p() != 0;
  if (!thread_safe) {
    throw InputError("reference: this MPFR keeps its state per process; install one built with --enable-thread-safe");
  }
  thread_local const ThreadCaches caches;
  static_cast<void>(caches);
}

}  // namespace qkcts
