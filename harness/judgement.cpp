// SPDX-License-Identifier: Apache-2.0
#include "harness/judgement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr std::array<std::string_view, 6> breach_names = {"none",         "unwritten", "class",
                                                          "exact_clause", "sentinel",  "budget"};
constexpr std::array<std::string_view, 7> rule_names = {"budget",  "budget_exact", "exact_clause", "hidden",
                                                        "special", "not_finite",   "free"};
// What clause_of() may say beside the clause of a stage.
constexpr std::array<std::string_view, 5> clauses_beside_stages = {"QK-SPECIAL", "QK-MASK-06", "QK-HIDDEN-01",
                                                                   "QK-SINK-01", "QK-EMPTY-01"};

template <class Enumeration, std::size_t n>
std::optional<Enumeration> enumerator_named(const std::array<std::string_view, n>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enumeration>(found - names.begin());
}

void fail(JudgedElement& element, Breach breach) {
  element.breach = breach;
  element.ulps = infinity;
  element.ratio = infinity;
}

// Both sides of the overflow threshold can be right: a legal y with |y - z| <= Delta may round to infinity as soon as
// it can reach largest + half an ulp.
bool overflow_is_legal(Format format, double got, StoredValue z, float delta) {
  const FormatParameters& p = parameters(format);
  const double half_ulp = ulp(format, p.largest) / 2;
  return reaches(got > 0 ? 1.0 : -1.0, z, static_cast<double>(delta), p.largest, half_ulp);
}

void judge_by_budget(JudgedElement& element, Format format) {
  if (element.trust == Trust::domain || std::isinf(element.delta)) {
    element.trust = Trust::domain;
    return;
  }
  const double got = element.got_value;
  const StoredValue z = element.exact;
  if (std::isnan(z.hi) || std::isnan(got)) {
    if (std::isnan(z.hi) != std::isnan(got)) fail(element, Breach::value_class);
    return;
  }
  if (std::isinf(z.hi)) {
    if (got != z.hi) fail(element, Breach::value_class);
    return;
  }
  if (std::isinf(got)) {
    if (!overflow_is_legal(format, got, z, element.delta)) fail(element, Breach::value_class);
    return;
  }
  // A finite value where infinity is expected needs no rule of its own: within Delta of z it lies below the threshold.
  const double delta = static_cast<double>(element.delta);
  const Distance d = distance(got, z, delta);
  element.ulps = d.in_units_of(ulp(format, z.hi));
  element.ratio = d.scaled == 0 ? 0 : delta > 0 ? d.in_units_of(delta) : infinity;
  if (!d.within) element.breach = Breach::budget;
}

void judge_exact(JudgedElement& element, Format format) {
  const double due = decode(format, element.expected);
  const bool holds = std::isnan(due) ? std::isnan(element.got_value) : element.got_value == due;
  if (holds) return;
  fail(element, std::isnan(due) || std::isnan(element.got_value) || std::isinf(due) != std::isinf(element.got_value)
                    ? Breach::value_class
                    : Breach::exact_clause);
}

// QK-SPECIAL: after a NaN or an infinity the class is all there is to judge. An infinity may come out as NaN, since
// compensated sums and split operands subtract it from itself.
void judge_special(JudgedElement& element, Format format) {
  const double got = element.got_value;
  const double due = decode(format, element.expected);
  if (std::isnan(got) || (std::isinf(due) && got == due)) return;
  fail(element, Breach::value_class);
}

void judge_not_finite(JudgedElement& element) {
  if (std::isfinite(element.got_value)) fail(element, Breach::value_class);
}

// A finite sentinel conforms where the power of its distance from the row maximum rounds to 0 in the accumulator's
// format: below half of the smallest subnormal, 2^(emin - p).
void judge_sentinel(JudgedElement& element, Format format, const RowContext& context) {
  const double got = element.got_value;
  if (std::isnan(got)) return fail(element, Breach::value_class);
  if (got == -infinity || !context.has_visible) return;
  const double exponent = std::log2(smallest_subnormal(format)) - 1;
  const double vanishes_below = context.softmax.base == QKCTS_BASE_TWO ? exponent : exponent * std::log(2.0);
  if (!(got - context.maximum < vanishes_below)) fail(element, Breach::sentinel);
}

std::string_view clause_of(qkcts_stage stage, ElementRule rule, const RowContext& context) {
  const bool scores = stage == QKCTS_STAGE_SCORES || stage == QKCTS_STAGE_CAPPED || stage == QKCTS_STAGE_MASKED;
  if (is_by_class(rule) || rule == ElementRule::free) return "QK-SPECIAL";
  if (rule == ElementRule::hidden) return scores ? "QK-MASK-06" : "QK-HIDDEN-01";
  if (rule != ElementRule::exact_clause) return stage_clause(stage);
  if (stage == QKCTS_STAGE_PROBS && context.has_visible) return "QK-MASK-06";
  return context.softmax.sink == QKCTS_SINK_COLUMN ? "QK-SINK-01" : "QK-EMPTY-01";
}

}  // namespace

std::string_view breach_name(Breach breach) {
  return breach_names[static_cast<std::size_t>(breach)];
}

std::optional<Breach> breach_named(std::string_view name) {
  return enumerator_named<Breach>(breach_names, name);
}

std::string_view rule_name(ElementRule rule) {
  return rule_names[static_cast<std::size_t>(rule)];
}

std::optional<ElementRule> rule_named(std::string_view name) {
  return enumerator_named<ElementRule>(rule_names, name);
}

std::optional<std::string_view> judging_clause_named(std::string_view name) {
  for (const std::string_view clause : clauses_beside_stages)
    if (clause == name) return clause;
  for (const qkcts_stage stage : all_stages)
    if (stage_clause(stage) == name) return stage_clause(stage);
  return std::nullopt;
}

std::uint64_t poison_pattern(Format format) {
  switch (format) {
    case Format::binary64:
      return 0x7FF4C3D1A5B6E7F9u;
    case Format::binary32:
      return 0x7FA5C3D1u;
    case Format::binary16:
      return 0x7D2Bu;
    case Format::bfloat16:
      return 0x7FA5u;
    case Format::e4m3fn:
      return 0x7Fu;
    case Format::e5m2:
      return 0x7Du;
  }
  return 0;
}

RowContext row_context(const ProvenStage& values, std::size_t first, std::size_t length, const qkcts_softmax& softmax) {
  RowContext context;
  context.softmax = softmax;
  for (std::size_t i = first; i < first + length; ++i) {
    if (values.rule[i] != ElementRule::budget && values.rule[i] != ElementRule::budget_exact) continue;
    context.maximum = context.has_visible ? std::fmax(context.maximum, values.hi[i]) : values.hi[i];
    context.has_visible = true;
  }
  return context;
}

JudgedElement judge_element(qkcts_stage stage, Format storage, std::uint64_t got, const GoldenStage& golden,
                            std::size_t index, const StageBudget& budget, const RowContext& context) {
  const Format format = stage_format(stage, storage);
  JudgedElement element;
  element.got = got;
  element.expected = golden.values.expected[index];
  element.got_value = decode(format, got);
  element.exact = {golden.values.hi[index], golden.values.lo[index]};
  element.delta = budget.delta[index];
  element.rule = golden.values.rule[index];
  element.trust = budget.trust[index];
  element.clause = clause_of(stage, element.rule, context);
  if (got == poison_pattern(format)) {
    fail(element, Breach::unwritten);
  } else if (element.rule == ElementRule::exact_clause) {
    judge_exact(element, format);
  } else if (element.rule == ElementRule::special) {
    judge_special(element, format);
  } else if (element.rule == ElementRule::not_finite) {
    judge_not_finite(element);
  } else if (element.rule == ElementRule::free) {
    element.trust = Trust::domain;
  } else if (element.rule == ElementRule::hidden) {
    if (stage == QKCTS_STAGE_MASKED) judge_sentinel(element, format, context);
  } else {
    judge_by_budget(element, format);
  }
  return element;
}

}  // namespace qkcts
