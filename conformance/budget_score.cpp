// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_score.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "conformance/budget_alignment.hpp"
#include "conformance/budget_sums.hpp"
#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

using enum BudgetTerm;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t block = 64;  // keys that are accumulated together
static_assert(block % KeyPanel::group == 0);

// What the scores of a row share.
struct ScoreRow {
  double tau, partial, n, growth, lambda, range, element_factor, read_lambda, read_factor, base_two;
  double q_sum, q_max, q_common;
  double largest;
};

[[gnu::always_inline]] inline void score_errors_of(const ScoreRow& row, std::size_t count,
                                                   const double* __restrict sizes, const double* __restrict moves,
                                                   const double* __restrict exact, const double* __restrict commons,
                                                   const double* __restrict sums, const double* __restrict largest,
                                                   const double* __restrict domain, double* __restrict errors) {
  for (std::size_t i = 0; i < count; ++i) {
    const double common = joined(row.q_common, commons[i]);
    const double a = sizes[i];
    const double b = moves[i];
    const double score = std::fabs(exact[i]);
    // Products, sums, the scaled score; elements of q and k where the scale is folded into them.
    const double flush =
        row.lambda *
        ((2 * row.n * (1 + row.tau) + 1) * row.partial + row.element_factor * (row.q_sum + sums[i]) * (1 + common)) *
        (1 + row.growth);
    const double read = row.read_lambda * row.read_factor * (row.q_sum + sums[i] + row.n * row.read_lambda) *
                        (1 + common) * (1 + row.growth);
    const double own = row.tau * (b + row.growth * a);
    const double error = sum_upper(common * score + (1 + common) * own + flush + read, 3 * row.n);
    const double most = largest[i];
    const double scaled = std::max(std::max(a, a * row.tau * row.base_two), row.q_max * row.tau * row.base_two);
    const double reach = std::max(std::max(std::max(scaled, most * row.tau * row.base_two), row.q_max), most) *
                         (1 + common) * row.range * row.partial;
    const double judged = reach < row.largest ? error : infinity;
    errors[i] = domain[i] > 0 ? infinity : judged;
  }
}

// What M2 needs of a row. A constant that is folded into q or k moves where they become subnormal: in units of q and k
// they count as `smallest` there, and below `least` they are 0. `growth`: of a sum of operands as they are read.
struct AlignedRow {
  double smallest, least, read_lambda, growth, q_max;
};

AlignedRow aligned_row(const ScoreScale& scale, double growth, double q_max, const BudgetArithmetic& arithmetic) {
  // Constants that come after the sum are together at most `outside`, those before it at least tau / outside.
  const double outside = std::max({1.0, scale.tau, scale.partial});
  const double s = scale.tau > 0 ? arithmetic.smallest_aligned() : 0;
  return {s > 0 ? s * std::max(1.0, outside / scale.tau) : 0, arithmetic.least_operand() / outside,
          arithmetic.operand_lambda(), growth, q_max};
}

// Where S of M2 exceeds A, the growth of what it is more. A bound without a look at single elements says that for
// nearly all keys it does not.
void add_alignment(const AlignedRow& row, const VectorError& q, const KeyPanel& keys, std::size_t first,
                   std::span<const double> sizes, std::span<double> moves) {
  const auto factor = [&row](double magnitude, double error) {
    return unit_factor(magnitude + error, row.read_lambda, row.smallest, row.least);
  };
  const auto largest = [&row](double size) { return std::max(size + row.read_lambda, row.smallest); };
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t key = first + i;
    const double bound = row.smallest * std::max(largest(row.q_max), largest(keys.size_max()[key]));
    if (bound <= sizes[i] || keys.domain()[key] > 0) {
      continue;
    }
    double stored = 0;
    for (std::size_t d = 0; d < q.magnitude.size(); ++d) {
      stored = std::max(
          stored, stored_size(factor(q.magnitude[d], q.error[d]), factor(keys.magnitude(d, key), keys.error(d, key))));
    }
    moves[i] += row.growth * std::max(0.0, stored - sizes[i]);
  }
}

}  // namespace

KeyPanel::KeyPanel(std::int64_t head_dim, std::int64_t k_len) : head_dim_(head_dim), k_len_(k_len) {
  const auto keys = static_cast<std::size_t>(k_len);
  error_.resize((keys + group - 1) / group * group * static_cast<std::size_t>(head_dim));
  magnitude_.resize(error_.size());
  common_.resize(keys);
  size_sum_.resize(keys);
  size_max_.resize(keys);
  domain_.resize(keys);
}

// Neighbouring keys together, for what they write of an element are neighbours, too.
void KeyPanel::set(std::int64_t first, std::span<const VectorError> vectors) {
  for (std::size_t done = 0; done < vectors.size();) {
    const std::size_t key = static_cast<std::size_t>(first) + done;
    const std::size_t count = std::min(group - key % group, vectors.size() - done);
    set_group(key, vectors.subspan(done, count));
    done += count;
  }
}

void KeyPanel::set_group(std::size_t first, std::span<const VectorError> vectors) {
  const auto head_dim = static_cast<std::size_t>(head_dim_);
  const std::vector<double> nothing(head_dim);
  std::array<const double*, group> magnitudes{}, errors{};
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const VectorError& vector = vectors[i];
    magnitudes[i] = vector.domain ? nothing.data() : vector.magnitude.data();
    errors[i] = vector.domain ? nothing.data() : vector.error.data();
    domain_[first + i] = vector.domain ? 1 : 0;
    common_[first + i] = vector.domain ? 0 : vector.common;
  }
  std::array<double, group> sum{}, most{};
  for (std::size_t d = 0; d < head_dim; ++d) {
    double* const magnitude = magnitude_.data() + place(d, first);
    double* const error = error_.data() + place(d, first);
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      magnitude[i] = magnitudes[i][d];
      error[i] = errors[i][d];
      const double size = magnitude[i] + error[i];
      sum[i] += size;
      most[i] = std::max(most[i], size);
    }
  }
  std::copy_n(sum.begin(), vectors.size(), size_sum_.begin() + static_cast<std::ptrdiff_t>(first));
  std::copy_n(most.begin(), vectors.size(), size_max_.begin() + static_cast<std::ptrdiff_t>(first));
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
  const double sum_growth = arithmetic.product_growth(score_dot, n, slots);
  const double growth = joined(sum_growth, scale.relative, q_read, k_read);
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

  const ScoreRow row{scale.tau,   scale.partial, n,        growth, lambda, range,    element_factor,
                     read_lambda, read_factor,   base_two, q_sum,  q_max,  q.common, arithmetic.largest()};
  const AlignedRow aligned =
      aligned_row(scale, sum_growth * (1 + scale.relative) * (1 + q_read) * (1 + k_read), q_max, arithmetic);
  constexpr auto group = static_cast<std::int64_t>(KeyPanel::group);
  for (std::int64_t start = first, end = 0; start < last; start = end) {
    const std::int64_t of_group = start / group;
    end = std::min(of_group * group + block, last);
    const auto count = static_cast<std::size_t>(end - start);
    std::array<double, block> group_sizes;  // A of every key of the groups
    std::array<double, block> group_moves;  // B
    sum_product_terms({q_size.data(), q.error.data(), q_size.size(), keys.errors(static_cast<std::size_t>(of_group)),
                       keys.magnitudes(static_cast<std::size_t>(of_group)),
                       static_cast<std::size_t>((end + group - 1) / group - of_group)},
                      {group_sizes.data(), group_moves.data()});
    const auto before = static_cast<std::size_t>(start - of_group * group);
    const std::span<double> sizes = std::span(group_sizes).subspan(before, count);
    const std::span<double> moves = std::span(group_moves).subspan(before, count);
    if (aligned.smallest > 0) {
      add_alignment(aligned, q, keys, static_cast<std::size_t>(start), sizes, moves);
    }
    in_widest_lanes([=, a = sizes.data(), b = moves.data(), z = exact.data() + start, common = keys.common() + start,
                     sum = keys.size_sum() + start, most = keys.size_max() + start, domain = keys.domain() + start,
                     to = errors.data() + start]()
                        QKCTS_STRAIGHT { score_errors_of(row, count, a, b, z, common, sum, most, domain, to); });
  }
}

}  // namespace qkcts
