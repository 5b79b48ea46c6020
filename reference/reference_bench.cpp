// SPDX-License-Identifier: Apache-2.0
// How long the proof of a case takes beside the arithmetic itself, and what else must hold of speed, in one run. Times
// are CPU times of the thread; what is compared runs in turns within one benchmark, because machines are noisy.
#include <benchmark/benchmark.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <ctime>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <string>
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

// As many fused multiply-adds in AVX2 registers, nothing else: ten independent chains of four lanes, each a variable of
// its own, so that they stay in registers whatever the optimisation.
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) double spend(double products) {
  const __m256d x = _mm256_set1_pd(1 - 0x1p-40);
  const __m256d y = _mm256_set1_pd(0x1p-60);
  __m256d a = x, b = x, c = x, d = x, e = x, f = x, g = x, h = x, i = x, j = x;
  for (auto rounds = static_cast<std::int64_t>(products / 40); rounds > 0; --rounds) {
    a = _mm256_fmadd_pd(a, x, y);
    b = _mm256_fmadd_pd(b, x, y);
    c = _mm256_fmadd_pd(c, x, y);
    d = _mm256_fmadd_pd(d, x, y);
    e = _mm256_fmadd_pd(e, x, y);
    f = _mm256_fmadd_pd(f, x, y);
    g = _mm256_fmadd_pd(g, x, y);
    h = _mm256_fmadd_pd(h, x, y);
    i = _mm256_fmadd_pd(i, x, y);
    j = _mm256_fmadd_pd(j, x, y);
  }
  const __m256d sum = ((a + b) + (c + d)) + ((e + f) + (g + h)) + (i + j);
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

// What must hold stands beside what was found, under the same name with `goal_`.
void put(benchmark::State& state, const std::string& name, double value, double goal) {
  state.counters[name] = value;
  state.counters["goal_" + name] = goal;
}

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
  put(state, "proof_over_peak_at_most", median(ratio), 25);
  put(state, "budgets_over_peak_at_most", median(budget_ratio), 25);
  state.counters["left_to_mpfr"] = static_cast<double>(open);
}
BENCHMARK(proven_beside_peak)->Arg(128)->Arg(512)->Unit(benchmark::kMillisecond);

// Every neighbour of the contract, beside what the case itself costs: its proof and the budgets of one profile.
void separation_beside_case(benchmark::State& state) {
  const Case c = soft_capped(128);
  const StageRows rows = every_row(c);
  const std::vector<Profile> profiles = {shipped_profile("f32")};
  std::vector<Case> others;
  for (const Neighbour& neighbour : neighbours(c.contract.terms))
    if (std::optional<Case> other = case_under(c, neighbour.terms)) others.push_back(std::move(*other));
  const Separator separator(c, rows, profiles);
  std::vector<double> shares;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): how the library counts
    const double start = now();
    benchmark::DoNotOptimize(evaluate_with_budgets(c, rows, profiles));
    const double whole = now() - start;
    for (const Case& other : others) {
      const double before = now();
      try {
        benchmark::DoNotOptimize(separator.quickly_to(other));
      } catch (const InputError&) {
        continue;  // this neighbour has no value on this case
      }
      shares.push_back((now() - before) / whole);
    }
  }
  std::sort(shares.begin(), shares.end());
  state.counters["neighbours"] = static_cast<double>(others.size());
  put(state, "separation_over_case_at_most", median(shares), 0.1);
  state.counters["upper_quartile"] = shares[shares.size() * 3 / 4];
  state.counters["largest"] = shares.back();
  state.counters["mean"] = std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
}
BENCHMARK(separation_beside_case)->Iterations(5)->Unit(benchmark::kMillisecond);

// Elapsed time of eight cases, proofs and budgets: one after the other, then on two threads. Both in turn, so that what
// else the machine does falls on both. `slowdown` is what the processors themselves took longer for a case while two
// worked: shared caches and memory, or other work on this machine; what waits for a lock shows in the first ratio
// alone.
void two_threads_beside_one(benchmark::State& state) {
  const Case c = soft_capped(128);
  const StageRows rows = every_row(c);
  const std::vector<Profile> profiles = {shipped_profile("f32")};
  // CPU time of so many cases.
  const auto seal = [&](int cases) {
    const double start = now();
    for (int i = 0; i < cases; ++i) benchmark::DoNotOptimize(evaluate_with_budgets(c, rows, profiles));
    return now() - start;
  };
  const auto elapsed = [](const auto& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::vector<double> ratio, slowdown, waiting;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): how the library counts
    double alone = 0, first = 0, second = 0;
    const double one = elapsed([&] { alone = seal(8); });
    const double two = elapsed([&] {
      std::thread other([&] { second = seal(4); });
      first = seal(4);
      other.join();
    });
    ratio.push_back(one / two);
    slowdown.push_back((first + second) / alone);
    waiting.push_back(1 - (first + second) / (2 * two));
  }
  put(state, "two_threads_over_one_at_least", median(ratio), 1.8);
  state.counters["slowdown"] = median(slowdown);
  state.counters["not_running"] = median(waiting);
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
  put(state, "plain_mpfr_over_fast_at_least", median(mpfr) / median(fast), 40);
  put(state, "plain_mpfi_over_fast_at_least", median(mpfi) / median(fast), 100);
}
BENCHMARK(slow_tier_beside_fast)->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace qkcts

int main(int argc, char** argv) {
#if defined(__GLIBC__)
  // As `qkcts generate`: what one case frees is there for the next, without a page fault for every 4 KiB.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
