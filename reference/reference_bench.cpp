// SPDX-License-Identifier: Apache-2.0
// How long the proof of a case takes beside the arithmetic itself. Times are CPU times of the thread; what is compared
// runs in turns within one benchmark, because machines are noisy.
#include <benchmark/benchmark.h>

#include <ctime>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "reference/attention.hpp"
#include "reference/case_values.hpp"
#include "reference/real.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

// RMSNorm with gain, soft-cap 50, causal; no rotation.
Case soft_capped(std::int64_t length) {
  Contract contract = shipped_contract("qwen3_rmsnorm");
  contract.terms.rope = {};
  contract.terms.score.softcap = 50;
  return sample_case(contract, {Format::binary32, SampleValues::full, 1, {1, 4, 4, length, length, 128, 128}});
}

// Multiply-adds of the dot products that a causal kernel needs: scores and outputs of the visible keys.
double useful_products(std::int64_t length) {
  const std::int64_t pairs = length * (length + 1) / 2;
  return 4.0 * static_cast<double>(pairs) * 2 * 128;
}

// As many fused multiply-adds in AVX2 registers, nothing else: ten independent chains of four lanes.
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) double spend(double products) {
  __m256d a[10];
  for (__m256d& chain : a) chain = _mm256_set1_pd(1);
  const __m256d x = _mm256_set1_pd(1 - 0x1p-40);
  const __m256d y = _mm256_set1_pd(0x1p-60);
  const auto rounds = static_cast<std::int64_t>(products / 40);
  for (std::int64_t i = 0; i < rounds; ++i)
    for (__m256d& chain : a) chain = _mm256_fmadd_pd(chain, x, y);
  __m256d sum = a[0];
  for (int i = 1; i < 10; ++i) sum = _mm256_add_pd(sum, a[i]);
  double lanes[4];
  _mm256_storeu_pd(lanes, sum);
  return lanes[0] + lanes[3];
}
#else
double spend(double products) {
  double a[16];
  std::fill(std::begin(a), std::end(a), 1.0);
  const auto rounds = static_cast<std::int64_t>(products / 16);
  for (std::int64_t i = 0; i < rounds; ++i)
    for (double& chain : a) chain = std::fma(chain, 1 - 0x1p-40, 0x1p-60);
  return a[0] + a[15];
}
#endif

// The same pipeline in MPFR at 128 bits, one rounding per operation, nothing proven: what a careful person writes.
double plain_mpfr(const Case& c) {
  const CaseValues values(c);
  const auto number = [](double x) { return Real(128, x); };
  const auto normed = [&](const SideValues& side) {
    std::vector<Real> result;
    for (std::int64_t row = 0; row < side.batch * side.heads * side.length; ++row) {
      Real sum = number(0), term = number(0);
      for (const double x : side.row(row)) {
        mpfr_set_d(term.get(), x, MPFR_RNDN);
        mpfr_sqr(term.get(), term.get(), MPFR_RNDN);
        mpfr_add(sum.get(), sum.get(), term.get(), MPFR_RNDN);
      }
      mpfr_div_si(sum.get(), sum.get(), static_cast<long>(side.head_dim), MPFR_RNDN);
      mpfr_add_d(sum.get(), sum.get(), side.norm.eps, MPFR_RNDN);
      mpfr_sqrt(sum.get(), sum.get(), MPFR_RNDN);
      for (std::int64_t lane = 0; lane < side.head_dim; ++lane) {
        mpfr_set_d(term.get(), side.row(row)[static_cast<std::size_t>(lane)], MPFR_RNDN);
        mpfr_mul_d(term.get(), term.get(), side.gain[static_cast<std::size_t>(lane)], MPFR_RNDN);
        mpfr_div(term.get(), term.get(), sum.get(), MPFR_RNDN);
        result.push_back(term);
      }
    }
    return result;
  };
  const std::vector<Real> q = normed(values.q), k = normed(values.k);
  const auto width = static_cast<std::size_t>(c.shape.head_dim);
  const auto length = static_cast<std::size_t>(c.shape.k_len);
  Real tau = number(static_cast<double>(width)), product = number(0), total = number(0);
  mpfr_rec_sqrt(tau.get(), tau.get(), MPFR_RNDN);
  double check = 0;
  for (std::size_t h = 0; h < static_cast<std::size_t>(c.shape.q_heads); ++h) {
    for (std::size_t i = 0; i < length; ++i) {
      std::vector<Real> weights;
      mpfr_set_ui(total.get(), 0, MPFR_RNDN);
      for (std::size_t j = 0; j <= i; ++j) {
        Real s = number(0);
        for (std::size_t d = 0; d < width; ++d) {
          mpfr_mul(product.get(), q[(h * length + i) * width + d].get(), k[(h * length + j) * width + d].get(),
                   MPFR_RNDN);
          mpfr_add(s.get(), s.get(), product.get(), MPFR_RNDN);
        }
        mpfr_mul(s.get(), s.get(), tau.get(), MPFR_RNDN);
        mpfr_div_ui(s.get(), s.get(), 50, MPFR_RNDN);
        mpfr_tanh(s.get(), s.get(), MPFR_RNDN);
        mpfr_mul_ui(s.get(), s.get(), 50, MPFR_RNDN);
        mpfr_exp(s.get(), s.get(), MPFR_RNDN);
        mpfr_add(total.get(), total.get(), s.get(), MPFR_RNDN);
        weights.push_back(s);
      }
      for (std::size_t d = 0; d < width; ++d) {
        Real o = number(0);
        for (std::size_t j = 0; j <= i; ++j) {
          mpfr_mul_d(product.get(), weights[j].get(), values.v.x[(h * length + j) * width + d], MPFR_RNDN);
          mpfr_add(o.get(), o.get(), product.get(), MPFR_RNDN);
        }
        mpfr_div(o.get(), o.get(), total.get(), MPFR_RNDN);
        check += mpfr_get_d(o.get(), MPFR_RNDN);
      }
    }
  }
  return check;
}

void proven_beside_peak(benchmark::State& state) {
  const Case c = soft_capped(state.range(0));
  const StageRows rows = every_row(c);
  const double products = useful_products(state.range(0));
  std::vector<double> proof, peak, ratio;
  std::uint64_t open = 0;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): how the library counts
    const double start = now();
    benchmark::DoNotOptimize(spend(products));
    const double middle = now();
    const ReferenceResult result = evaluate(c, rows);
    const double end = now();
    open = result.left_open;
    peak.push_back(middle - start);
    proof.push_back(end - middle);
    ratio.push_back((end - middle) / (middle - start));
  }
  state.counters["peak_ms"] = 1e3 * median(peak);
  state.counters["proof_ms"] = 1e3 * median(proof);
  state.counters["proof_over_peak"] = median(ratio);
  state.counters["left_to_mpfr"] = static_cast<double>(open);
}
BENCHMARK(proven_beside_peak)->Arg(128)->Arg(512)->Unit(benchmark::kMillisecond);

void slow_tier_beside_fast(benchmark::State& state) {
  const Case c = soft_capped(128);
  const StageRows rows = every_row(c);
  std::vector<double> fast, slow, plain;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): how the library counts
    for (int i = 0; i < 5; ++i) {
      const double start = now();
      benchmark::DoNotOptimize(evaluate(c, rows));
      fast.push_back(now() - start);
    }
    double start = now();
    benchmark::DoNotOptimize(evaluate(c, rows, Tier::mpfr));
    slow.push_back(now() - start);
    start = now();
    benchmark::DoNotOptimize(plain_mpfr(c));
    plain.push_back(now() - start);
  }
  state.counters["fast_ms"] = 1e3 * median(fast);
  state.counters["tier_mpfr_ms"] = 1e3 * median(slow);
  state.counters["plain_mpfr_ms"] = 1e3 * median(plain);
  state.counters["tier_mpfr_over_fast"] = median(slow) / median(fast);
  state.counters["plain_mpfr_over_fast"] = median(plain) / median(fast);
}
BENCHMARK(slow_tier_beside_fast)->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace qkcts

BENCHMARK_MAIN();
