// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_score.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "conformance/budget_sums.hpp"

namespace qkcts {
namespace {

using enum BudgetTerm;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t block = 64;  // keys that are accumulated together

}  // namespace

KeyPanel::KeyPanel(std::int64_t head_dim, std::int64_t k_len) : head_dim_(head_dim), k_len_(k_len) {
  const auto elements = static_cast<std::size_t>(head_dim * k_len);
  const auto keys = static_cast<std::size_t>(k_len);
  size_.resize(elements);
  error_.resize(elements);
  magnitude_.resize(elements);
  common_.resize(keys);
  size_sum_.resize(keys);
  size_max_.resize(keys);
  domain_.resize(keys);
}

void KeyPanel::set(std::int64_t key, const VectorError& vector) {
  const auto k = static_cast<std::size_t>(key);
  domain_[k] = vector.domain ? 1 : 0;
  common_[k] = vector.domain ? 0 : vector.common;
  size_sum_[k] = 0;
  size_max_[k] = 0;
  for (std::int64_t d = 0; d < head_dim_; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const auto at = static_cast<std::size_t>(d * k_len_ + key);
    magnitude_[at] = vector.domain ? 0 : vector.magnitude[i];
    error_[at] = vector.domain ? 0 : vector.error[i];
    size_[at] = magnitude_[at] + error_[at];
    size_sum_[k] += size_[at];
    size_max_[k] = std::max(size_max_[k], size_[at]);
  }
}

void score_errors(const VectorError& q, const KeyPanel& keys, const ScoreScale& scale, std::span<const double> exact,
                  std::int64_t first, std::int64_t last, const BudgetArithmetic& arithmetic, std::span<double> errors) {
  if (q.domain || scale.domain) {
    std::fill(errors.begin() + first, errors.begin() + last, infinity);
    return;
  }
  const std::int64_t head_dim = keys.head_dim();
  const auto n = static_cast<double>(head_dim);
  const double slots = std::ceil(n / matrix_block) * matrix_block;
  // What a matrix unit drops of an element when it reads it is like a scale that is folded in: it multiplies A.
  const double q_read = arithmetic.operand_roundoff(MatrixOperand::q);
  const double k_read = arithmetic.operand_roundoff(MatrixOperand::k);
  const double growth = joined(arithmetic.product_growth(score_dot, n, slots), scale.relative, q_read, k_read);
  const double lambda = arithmetic.lambda(score_underflow);
  const double range = (1 + growth_upper(4 * n + 32, arithmetic.range_roundoff())) *
                       std::max(arithmetic.range_room(1), 1 + scale.relative) * (1 + q_read) * (1 + k_read);
  // What underflows in an element is multiplied by the constants that are not folded into it.
  const double element_factor = std::max(std::sqrt(scale.tau), scale.partial);
  const double base_two = arithmetic.base_two_room();
  const double read_lambda = arithmetic.operand_lambda();
  const double read_factor = std::max({1.0, scale.tau, scale.partial});
  std::vector<double> q_size(q.magnitude.size());
  double q_sum = 0;
  double q_max = 0;
  for (std::size_t d = 0; d < q.magnitude.size(); ++d) {
    q_size[d] = q.magnitude[d] + q.error[d];
    q_sum += q_size[d];
    q_max = std::max(q_max, q_size[d]);
  }

  for (std::int64_t start = first; start < last; start += block) {
    const std::int64_t count = std::min(block, last - start);
    std::array<double, block> size{};   // A of every key
    std::array<double, block> moved{};  // B
    add_product_terms(
        {q_size.data(), q.error.data(), q_size.size(), static_cast<std::size_t>(count), keys.size(0) + start,
         keys.error(0) + start, keys.magnitude(0) + start, static_cast<std::size_t>(keys.k_len())},
        {size.data(), moved.data()});
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t key = start + i;
      const double common = joined(q.common, keys.common(key));
      const double a = size[static_cast<std::size_t>(i)];
      const double b = moved[static_cast<std::size_t>(i)];
      const double score = std::fabs(exact[static_cast<std::size_t>(key)]);
      // Products, sums, the scaled score; elements of q and k where the scale is folded into them.
      const double flush = lambda *
                           ((2 * n * (1 + scale.tau) + 1) * scale.partial +
                            element_factor * (q_sum + keys.size_sum(key)) * (1 + common)) *
                           (1 + growth);
      const double read =
          read_lambda * read_factor * (q_sum + keys.size_sum(key) + n * read_lambda) * (1 + common) * (1 + growth);
      const double own = scale.tau * (b + growth * a);
      const double error = sum_upper(common * score + (1 + common) * own + flush + read, 3 * n);
      const double reach = std::max({a, a * scale.tau * base_two, q_max * scale.tau * base_two,
                                     keys.size_max(key) * scale.tau * base_two, q_max, keys.size_max(key)}) *
                           (1 + common) * range * scale.partial;
      const bool overflows = keys.domain(key) || !(reach < arithmetic.largest());
      errors[static_cast<std::size_t>(key)] = overflows ? infinity : error;
    }
  }
}

}  // namespace qkcts
