// SPDX-License-Identifier: Apache-2.0
// How long the proof of a case takes beside the arithmetic itself. Times are CPU times of the thread; what is compared
// runs in turns within one benchmark, because machines are noisy.
#include <benchmark/benchmark.h>

#include <ctime>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "conformance/neighbour.hpp"
#include "reference/evaluation.hpp"
#include "reference/plain_pipeline.hpp"
#include "reference/sample_case.hpp"
#include "reference/separation.hpp"

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

void proven_beside_peak(benchmark::State& state) {
  const Case c = soft_capped(state.range(0));
  const StageRows rows = every_row(c);
  const Profile profile = shipped_profile("f32");
  const double products = useful_products(state.range(0));
  std::vector<double> proof, peak, ratio, budget_ratio;
  std::uint64_t open = 0;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): how the library counts
    const double start = now();
    benchmark::DoNotOptimize(spend(products));
    const double middle = now();
    const ReferenceResult result = evaluate(c, rows);
    const double end = now();
    benchmark::DoNotOptimize(stage_budgets(c, result.exact, rows, profile));
    const double end_of_budgets = now();
    open = result.left_open;
    peak.push_back(middle - start);
    proof.push_back(end - middle);
    ratio.push_back((end - middle) / (middle - start));
    budget_ratio.push_back((end_of_budgets - end) / (middle - start));
  }
  state.counters["peak_ms"] = 1e3 * median(peak);
  state.counters["proof_ms"] = 1e3 * median(proof);
  state.counters["proof_over_peak"] = median(ratio);
  state.counters["budgets_over_peak"] = median(budget_ratio);
  state.counters["left_to_mpfr"] = static_cast<double>(open);
}
BENCHMARK(proven_beside_peak)->Arg(128)->Arg(512)->Unit(benchmark::kMillisecond);

// Elapsed time of two cases, proofs and budgets: one after the other, then at once. Both orders in turn, so that what
// else the machine does falls on both.
void two_threads_beside_one(benchmark::State& state) {
  const Case c = soft_capped(128);
  const StageRows rows = every_row(c);
  const std::vector<Profile> profiles = {shipped_profile("f32")};
  const auto seal = [&] { benchmark::DoNotOptimize(evaluate_with_budgets(c, rows, profiles)); };
  const auto elapsed = [](const auto& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto one_thread = [&] {
    for (int i = 0; i < 8; ++i) seal();
  };
  const auto two_threads = [&] {
    std::thread other([&] {
      for (int i = 0; i < 4; ++i) seal();
    });
    for (int i = 0; i < 4; ++i) seal();
    other.join();
  };
  std::vector<double> ratio;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): how the library counts
    const double one = elapsed(one_thread);
    ratio.push_back(one / elapsed(two_threads));
  }
  state.counters["two_threads_over_one"] = median(ratio);
}
BENCHMARK(two_threads_beside_one)->Iterations(9)->Unit(benchmark::kMillisecond);

void slow_tier_beside_fast(benchmark::State& state) {
  const Case c = soft_capped(128);
  const StageRows rows = every_row(c);
  std::vector<double> fast, slow, mpfr, mpfi;
  const auto timed = [](std::vector<double>& times, const auto& work) {
    const double start = now();
    benchmark::DoNotOptimize(work());
    times.push_back(now() - start);
  };
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): how the library counts
    for (int i = 0; i < 5; ++i) timed(fast, [&] { return evaluate(c, rows); });
    timed(slow, [&] { return evaluate(c, rows, Tier::mpfr); });
    timed(mpfr, [&] { return plain_attention<PlainMpfr>(c, 50); });
    timed(mpfi, [&] { return plain_attention<PlainMpfi>(c, 50); });
  }
  state.counters["fast_ms"] = 1e3 * median(fast);
  state.counters["tier_mpfr_over_fast"] = median(slow) / median(fast);
  state.counters["plain_mpfr_over_fast"] = median(mpfr) / median(fast);
  state.counters["plain_mpfi_over_fast"] = median(mpfi) / median(fast);
}
BENCHMARK(slow_tier_beside_fast)->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace qkcts

BENCHMARK_MAIN();
