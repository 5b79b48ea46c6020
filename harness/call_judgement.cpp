// SPDX-License-Identifier: Apache-2.0
#include "harness/call_judgement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <list>

#include "conformance/digest.hpp"
#include "harness/batch_arrangement.hpp"
#include "harness/utf8_text.hpp"

namespace qkcts {
namespace {

using Bytes = std::vector<std::byte>;

// What a call, or the calls that make up a batch together, returned, in the order of the case's own batch.
struct Returned {
  Variant variant = Variant::plain;
  bool same_as_first = false;
  const StageBytes* outputs = nullptr;
  std::string implementation;
};

class ReturnedResults {
 public:
  ReturnedResults(const RunOrder& order, const RunAnswer& answer) : order_(order), answer_(answer) {
    for (std::size_t call = 0; call < answer.executions.size(); ++call) {
      const Execution& execution = answer.executions[call];
      if (!order.calls[call].entries.empty()) {
        add_entries(call);
      } else {
        results_.push_back({order.calls[call].variant, answer.same_as_first[call], &execution.outputs,
                            utf8_line(execution.implementation)});
      }
    }
  }

  const std::vector<Returned>& results() const { return results_; }

 private:
  void add_entries(std::size_t call) {
    const Call& made = order_.calls[call];
    const Execution& execution = answer_.executions[call];
    const auto batch = static_cast<std::size_t>(order_.request.shape.batch);
    const bool same = answer_.same_as_first[call];
    const std::size_t rounds = same ? 1 : (made.entries.size() + batch - 1) / batch;
    const bool goes_on = made.variant == Variant::entries_alone && made.entries.front() != 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      if (!goes_on) results_.push_back({made.variant, true, nullptr, utf8_line(execution.implementation)});
      if (same) continue;
      Returned& returned = results_.back();
      if (returned.same_as_first) {  // so far: entries before this one were those of the first call
        returned.same_as_first = false;
        assembled_.push_back(answer_.executions.front().outputs);
        returned.outputs = &assembled_.back();
      }
      put_back(assembled_.back(), execution.outputs, made.entries, round, order_.request.shape.batch);
    }
  }

  const RunOrder& order_;
  const RunAnswer& answer_;
  std::list<StageBytes> assembled_;
  std::vector<Returned> results_;
};

struct BitComparison {
  bool same = true;
  double spread_ulp = 0;
};

double distance_in_ulps(Format format, std::uint64_t first, std::uint64_t other) {
  const double a = decode(format, first), b = decode(format, other);
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (a == b) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::fabs(a - b) / ulp(format, std::max(std::fabs(a), std::fabs(b)));
}

bool same_bytes(const Bytes& a, const Bytes& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// May the contract leave elements of the stage free (hidden positions and keys)? Then only what is stored with its rule
// is compared.
bool may_be_free(qkcts_stage stage) {
  switch (stage) {
    case QKCTS_STAGE_Q_PROJ:
    case QKCTS_STAGE_Q_NORM:
    case QKCTS_STAGE_Q_ROPE:
    case QKCTS_STAGE_PROBS:
    case QKCTS_STAGE_LSE:
    case QKCTS_STAGE_OUTPUT:
      return false;
    default:
      return true;
  }
}

BitComparison compare(const GoldenCase& golden, qkcts_stage stage, const Bytes& first, const Bytes& other) {
  BitComparison result;
  const Format format = stage_format(stage, golden.input.inputs.format);
  const auto size = static_cast<std::size_t>(parameters(format).bits / 8);
  const auto look_at = [&](std::size_t element) {
    std::uint64_t a = 0, b = 0;
    std::memcpy(&a, first.data() + element * size, size);
    std::memcpy(&b, other.data() + element * size, size);
    if (a == b) return;
    result.same = false;
    result.spread_ulp = std::max(result.spread_ulp, distance_in_ulps(format, a, b));
  };
  if (!may_be_free(stage)) {
    for (std::size_t element = 0; element * size < first.size(); ++element) look_at(element);
    return result;
  }
  const ProvenStage& values = golden.stages[stage].values;
  const auto width = static_cast<std::size_t>(row_length(stage, golden.input.shape));
  for (std::size_t stored = 0; stored < values.rule.size(); ++stored) {
    if (values.rule[stored] == ElementRule::hidden || values.rule[stored] == ElementRule::free) continue;
    look_at(values.rows[stored / width] * width + stored % width);
  }
  return result;
}

// Keeps the judgement that says most: the gravest, and among equals the one nearest to or farthest beyond Delta; and of
// the user's own limits the one that was broken most, whichever call that was. Says whether the judgement is the new
// one.
bool merge(StageResult& stage, StageJudgement judgement) {
  const bool first = !stage.judgement.has_value();
  const bool graver_one = !first && judgement.verdict > stage.judgement->verdict;
  const bool worse =
      !first && judgement.verdict == stage.judgement->verdict && judgement.max_ratio > stage.judgement->max_ratio;
  stage.verdict = first ? judgement.verdict : graver(stage.verdict, judgement.verdict);
  auto limit = judgement.limit;
  if (!first && stage.judgement->limit && (!limit || stage.judgement->limit->violations > limit->violations))
    limit = stage.judgement->limit;
  const bool taken = first || graver_one || worse;
  if (taken) stage.judgement = std::move(judgement);
  stage.judgement->limit = std::move(limit);
  return taken;
}

std::string bits_digest(const Bytes& bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.finish();
}

void add_detail(StageResult& stage, const std::string& text) {
  stage.detail += (stage.detail.empty() ? "" : "; ") + text;
}

VariantFinding& finding_of(StageResult& stage, Variant variant) {
  for (VariantFinding& known : stage.variants)
    if (known.variant == variant) return known;
  VariantFinding& fresh = stage.variants.emplace_back();
  fresh.variant = variant;
  return fresh;
}

}  // namespace

void judge_calls(CaseResult& result, const RunOrder& order, const RunAnswer& answer, const GoldenCase& golden,
                 std::optional<std::size_t> profile, StageSet asked, const LimitTable& limits) {
  const ReturnedResults returned(order, answer);
  const Returned& first = returned.results().front();
  for (StageResult& stage : result.stages) {
    if ((asked & bit(stage.stage)) == 0) continue;
    const std::optional<Limit> limit = limits.find(stage.stage, result.format);
    const Bytes& bits = (*first.outputs)[stage.stage];
    Variant shown = Variant::plain;
    if (profile) {
      stage.output_sha256 = bits_digest(bits);
      merge(stage, judge_stage(golden, stage.stage, *profile, bits, limit));
    }
    for (std::size_t i = 1; i < returned.results().size(); ++i) {
      const Returned& later = returned.results()[i];
      const Bytes& others = later.same_as_first ? bits : (*later.outputs)[stage.stage];
      if (others.empty() && !bits.empty()) continue;  // this call was not asked for the stage
      VariantFinding* const finding = later.variant == Variant::plain ? nullptr : &finding_of(stage, later.variant);
      if (finding != nullptr && later.implementation != first.implementation)
        finding->implementation = later.implementation;
      if (later.same_as_first || same_bytes(others, bits)) continue;
      const BitComparison comparison = compare(golden, stage.stage, bits, others);
      if (!comparison.same) stage.spread_ulp = std::max(stage.spread_ulp.value_or(0), comparison.spread_ulp);
      if (finding == nullptr) {
        ++stage.differing_calls;
      } else {
        finding->same_bits = finding->same_bits && comparison.same;
      }
      if (!profile) continue;
      StageJudgement judgement = judge_stage(golden, stage.stage, *profile, others, limit);
      if (finding != nullptr) finding->max_ratio = std::max(finding->max_ratio.value_or(0), judgement.max_ratio);
      if (merge(stage, std::move(judgement))) shown = later.variant;
    }
    if (shown != Variant::plain && violates(stage.verdict))
      add_detail(stage, fmt::format("so in the call `{}`", variant_name(shown)));
  }
}

void hold_to_claims(CaseResult& result, const RunOrder& order, const AdapterDescription& description) {
  const auto plain = std::count_if(order.calls.begin(), order.calls.end(),
                                   [](const Call& call) { return call.variant == Variant::plain; });
  const auto break_claim = [](StageResult& stage, Verdict verdict, const std::string& text) {
    stage.verdict = graver(stage.verdict, verdict);
    add_detail(stage, text);
  };
  for (StageResult& stage : result.stages) {
    if (description.bitwise_repeatable == Claim::made && stage.differing_calls > 0)
      break_claim(stage, Verdict::not_repeatable,
                  fmt::format("{} of {} further calls returned other bits, against the claim bitwise_repeatable",
                              stage.differing_calls, plain - 1));
    for (const VariantFinding& finding : stage.variants) {
      // Other strides may take another way through the kernel; the claim is silent on them.
      if (finding.same_bits || changes_strides(finding.variant)) continue;
      const bool batch = changes_batch(finding.variant);
      if ((batch ? description.batch_invariant : description.bitwise_repeatable) != Claim::made) continue;
      break_claim(stage, batch ? Verdict::batch_variant : Verdict::not_repeatable,
                  fmt::format("other bits in the call `{}`, against the claim {}", variant_name(finding.variant),
                              batch ? "batch_invariant" : "bitwise_repeatable"));
    }
  }
}

}  // namespace qkcts
