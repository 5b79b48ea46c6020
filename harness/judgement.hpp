// SPDX-License-Identifier: Apache-2.0
// What an adapter wrote against the sealed evidence: element by element, class first, then exact clauses, then Delta.
// docs/arithmetic.md is the theory. Nothing here computes a reference value or a tolerance.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "harness/coordinates.hpp"
#include "harness/exact_distance.hpp"
#include "harness/heat_map.hpp"
#include "harness/verdict.hpp"
#include "vectors/golden_case.hpp"

namespace qkcts {

// Why an element fails.
enum class Breach : std::uint8_t {
  none,
  unwritten,     // the poison pattern is still there
  value_class,   // NaN, infinity or finite where another class is due
  exact_clause,  // the contract fixes the value
  sentinel,      // a value at a hidden position that softmax would see
  budget,        // farther off than Delta
};
std::string_view breach_name(Breach breach);
std::optional<Breach> breach_named(std::string_view name);

struct JudgedElement {
  ElementCoordinates place;
  std::uint64_t got = 0;       // bits in the stage's format
  std::uint64_t expected = 0;  // bits of the correctly rounded value
  double got_value = 0;
  StoredValue exact;
  float delta = 0;
  ElementRule rule = ElementRule::budget;
  Trust trust = Trust::judged;
  Breach breach = Breach::none;
  std::string_view clause;  // id or group that the element stands for
  double ulps = 0;          // |got - z| / ulp(z) of the stage's format; infinite where classes differ
  double ratio = 0;         // |got - z| / Delta; infinite where classes differ, or Delta is 0 and the error is not
};

struct ElementCounts {
  std::uint64_t judged = 0;      // by Delta, trusted
  std::uint64_t exact = 0;       // by an exact clause, or by class alone
  std::uint64_t mistrusted = 0;  // by Delta, but no pass
  std::uint64_t domain = 0;      // not judged
  std::uint64_t hidden = 0;      // not judged, or only as an admissible sentinel
  std::uint64_t failed = 0;      // of all these
};

// A user's own tolerance, beside Delta and never instead of it. Every figure that is given must hold.
struct Limit {
  std::optional<double> max_ulp;
  std::optional<double> max_ratio;  // error/Delta
  std::optional<double> atol;       // |got - z| <= atol + rtol |z|
  std::optional<double> rtol;
};

struct LimitResult {
  Limit limit;
  std::uint64_t violations = 0;  // elements over the limit
  std::optional<JudgedElement> worst;
};

// Upper edges of the histogram of ulps; the last class is open.
inline constexpr std::array<double, 15> histogram_edges = {0,  0.125, 0.25, 0.5, 1,    2,     4,       8,
                                                           16, 32,    64,   256, 1024, 65536, 16777216};

struct StageJudgement {
  Verdict verdict = Verdict::skipped;
  ElementCounts counts;
  std::uint64_t unwritten = 0;  // in the whole stage, stored rows or not
  std::optional<ElementCoordinates> first_unwritten;
  double max_ulp = 0, p99_ulp = 0, mean_ulp = 0;
  double signed_mean_ulp = 0;
  double outward_mean_ulp = 0;  // mean of the errors away from 0 less those towards it: truncation shows here
  double max_ratio = 0;
  std::optional<JudgedElement> worst;   // by ratio, among all judged by Delta and all failing
  std::vector<JudgedElement> failures;  // the first few
  std::array<std::uint64_t, histogram_edges.size() + 1> histogram{};
  std::optional<LimitResult> limit;
  HeatMap heat;
};

inline constexpr std::size_t failures_kept = 4;

// The clause or group of that name, if elements are judged by it.
std::optional<std::string_view> judging_clause_named(std::string_view name);
std::string_view rule_name(ElementRule rule);
std::optional<ElementRule> rule_named(std::string_view name);

// The signalling NaN that outputs are filled with. No arithmetic yields it: results are quiet.
std::uint64_t poison_pattern(Format format);

// What judging one element of a row needs to know of the others.
struct RowContext {
  bool has_visible = false;  // some element is judged by Delta
  double maximum = 0;        // the largest exact value among those
  qkcts_softmax softmax{};   // the base of the weights, and whether a sink makes every row a row
};
RowContext row_context(const ProvenStage& values, std::size_t first, std::size_t length, const qkcts_softmax& softmax);

// The one element, outside of any statistics; `index` counts the stored elements.
JudgedElement judge_element(qkcts_stage stage, Format storage, std::uint64_t got, const GoldenStage& golden,
                            std::size_t index, const StageBudget& budget, const RowContext& context);

// `got`: the whole stage tensor, bits in stage_format(). `profile`: index into golden.profiles.
StageJudgement judge_stage(const GoldenCase& golden, qkcts_stage stage, std::size_t profile,
                           std::span<const std::byte> got, const std::optional<Limit>& limit = std::nullopt);

}  // namespace qkcts
