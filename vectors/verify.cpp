// SPDX-License-Identifier: Apache-2.0
#include "vectors/verify.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "vectors/case_separation.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/counter_generator.hpp"
#include "vectors/generate.hpp"
#include "vectors/relation_proof.hpp"

namespace qkcts {
namespace {

constexpr std::uint32_t sample_stream = 96;

std::uint64_t bits_of(double x) {
  return std::bit_cast<std::uint64_t>(x);
}
std::uint64_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
template <class T>
std::uint64_t bits_of(T x) {
  return static_cast<std::uint64_t>(x);
}

template <class T>
std::string difference(std::string_view name, const std::vector<T>& stored, const std::vector<T>& computed,
                       std::size_t row_length) {
  if (stored.size() != computed.size())
    return fmt::format("{} has {} elements, recomputed {}", name, stored.size(), computed.size());
  for (std::size_t i = 0; i < stored.size(); ++i)
    if (bits_of(stored[i]) != bits_of(computed[i]))
      return fmt::format("stored row {}, element {}: {} is {:#x}, recomputed {:#x}", i / row_length, i % row_length,
                         name, bits_of(stored[i]), bits_of(computed[i]));
  return {};
}

std::string stage_difference(const GoldenStage& stored, const GoldenStage& computed, std::size_t length,
                             const std::vector<std::string>& profiles) {
  std::string found = difference("rows", stored.values.rows, computed.values.rows, 1);
  if (found.empty()) found = difference("expected", stored.values.expected, computed.values.expected, length);
  if (found.empty()) found = difference("value_hi", stored.values.hi, computed.values.hi, length);
  if (found.empty()) found = difference("value_lo", stored.values.lo, computed.values.lo, length);
  if (found.empty()) found = difference("rule", stored.values.rule, computed.values.rule, length);
  for (std::size_t i = 0; found.empty() && i < profiles.size(); ++i) {
    found = difference("budget of " + profiles[i], stored.budgets[i].delta, computed.budgets[i].delta, length);
    if (found.empty())
      found = difference("trust of " + profiles[i], stored.budgets[i].trust, computed.budgets[i].trust, length);
  }
  return found;
}

bool same(const Range& left, const Range& right) {
  return bits_of(left.min) == bits_of(right.min) && bits_of(left.median) == bits_of(right.median) &&
         bits_of(left.max) == bits_of(right.max);
}

// Of a case whose stages and budgets came out the same: what the separations are made from.
std::string separation_difference(const GoldenCase& golden) {
  const SeparationRecord computed = make_separations(golden);
  if (golden.separation.neighbours != computed.neighbours) return "neighbours of the separations differ";
  const std::size_t each = computed.neighbours.empty() ? 1 : computed.values.size() / computed.neighbours.size();
  std::string found = difference("separation", golden.separation.values, computed.values, each);
  if (found.empty()) found = difference("place of the separation", golden.separation.places, computed.places, 2 * each);
  return found.empty() ? found : "table of separations, " + found;
}

// Empty if stages, budgets, statistics and separations come out the same.
std::string case_difference(const GoldenCase& golden, Tier tier) {
  const Case& c = golden.input;
  StageRows rows;
  for (const qkcts_stage stage : all_stages) rows[stage] = golden.stages[stage].values.rows;
  const Evidence evidence = make_evidence(c, rows, profiles_named(golden.profiles, golden.own_profiles), tier);
  for (const qkcts_stage stage : all_stages) {
    if (!golden.stages[stage].present) continue;
    const std::string found = stage_difference(golden.stages[stage], evidence.stages[stage],
                                               static_cast<std::size_t>(row_length(stage, c.shape)), golden.profiles);
    if (!found.empty()) return fmt::format("stage {}, {}", stage_name(stage), found);
  }
  if (!same(golden.entropy, evidence.entropy) || !same(golden.p_max, evidence.p_max) ||
      !same(golden.score_max, evidence.score_max) || (golden.jacobian && !same(*golden.jacobian, evidence.jacobian)))
    return "row statistics differ";
  if (golden.jacobian) return separation_difference(golden);
  return {};
}

// The stored values of the cases must keep to the relations of the file.
void check_relations_of(const CorpusReader& reader, VerifyReport& report) {
  for (const Relation& relation : reader.relations()) {
    const GoldenCase first = reader.read(relation.cases.front());
    const GoldenCase second = reader.read(relation.cases.back());
    const std::string found = relation_contradiction(relation, first, relation.cases.size() == 2 ? &second : nullptr);
    if (!found.empty()) report.mismatches.push_back({relation.slug, found});
  }
}

// Which cases are recomputed: a fixed draw for a fixed corpus, so that a second run says the same.
std::vector<bool> drawn_cases(const CorpusReader& reader, double sample) {
  const std::size_t count = reader.slugs().size();
  std::uint64_t seed = 0;
  const std::string& digest = reader.info().digest;
  std::from_chars(digest.data(), digest.data() + std::min<std::size_t>(16, digest.size()), seed, 16);
  const std::vector<std::uint32_t> order =
      RandomStream(seed, sample_stream).permutation(static_cast<std::uint32_t>(count));
  const double wanted = std::ceil(static_cast<double>(count) * std::clamp(sample, 0.0, 100.0) / 100);
  std::vector<bool> drawn(count, false);
  for (std::size_t i = 0; i < count && static_cast<double>(i) < std::max(1.0, wanted); ++i) drawn[order[i]] = true;
  return drawn;
}

}  // namespace

VerifyReport verify_corpus(const std::string& path, const VerifyOptions& options) {
  const CorpusReader reader(path);
  const std::vector<std::string>& slugs = reader.slugs();
  const std::vector<bool> drawn = drawn_cases(reader, options.sample);
  VerifyReport report;
  std::vector<std::string> differences(slugs.size());
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    for (std::size_t i = next++; i < slugs.size(); i = next++) {
      try {
        const GoldenCase golden = reader.read(slugs[i]);
        if (drawn[i]) differences[i] = case_difference(golden, options.tier);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = slugs.size();
        return;
      }
      const std::lock_guard lock(mutex);
      ++report.cases;
      if (drawn[i]) ++report.recomputed;
      if (options.progress) options.progress(report.cases, slugs.size(), slugs[i]);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < options.jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  for (std::size_t i = 0; i < slugs.size(); ++i)
    if (!differences[i].empty()) report.mismatches.push_back({slugs[i], differences[i]});
  check_relations_of(reader, report);
  return report;
}

}  // namespace qkcts
