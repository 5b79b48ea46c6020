// SPDX-License-Identifier: Apache-2.0
// All elements of a stage, most of them settled at a glance.
#include <algorithm>
#include <cstring>
#include <limits>

#include "conformance/lanes.hpp"
#include "harness/judgement.hpp"
#include "harness/quick_distance.hpp"
#include "harness/stage_tally.hpp"
#include "harness/unwritten_elements.hpp"

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::uint64_t pattern_at(const std::byte* bytes, std::size_t index, std::size_t size) {
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, bytes + index * size, size);  // little-endian, as everywhere in the suite
  return pattern;
}

Verdict stage_verdict(const StageJudgement& s) {
  if (s.unwritten > 0) return Verdict::error_unwritten;
  if (s.counts.failed > 0) return Verdict::fail;
  if (s.counts.judged + s.counts.exact > 0) return Verdict::pass;
  if (s.counts.mistrusted > 0) return Verdict::mistrusted;
  return s.counts.domain > 0 ? Verdict::domain : Verdict::skipped;
}

// A row of stored elements, in blocks of which most are settled at a glance.
class RowJudge {
 public:
  RowJudge(const GoldenCase& golden, qkcts_stage stage, std::size_t profile, std::span<const std::byte> got,
           const std::optional<Limit>& limit, StageTally& tally)
      : golden_(golden.stages[stage]),
        budget_(golden_.budgets[profile]),
        softmax_(golden.input.contract.terms.softmax),
        stage_(stage),
        storage_(golden.input.inputs.format),
        format_(stage_format(stage, storage_)),
        size_(static_cast<std::size_t>(parameters(format_).bits / 8)),
        length_(static_cast<std::size_t>(row_length(stage, golden.input.shape))),
        got_(got),
        poison_(poison_pattern(format_)),
        minus_infinity_(encode(format_, -infinity)),
        limited_(limit.has_value()),
        tally_(tally) {}

  // The `stored`-th of the rows that are stored. True where that tells that all of it is written.
  bool judge(std::size_t stored) {
    context_.reset();
    if (limited_) {
      for (std::size_t column = 0; column < length_; ++column) tally_.add(judged(stored, column), stored);
      return false;
    }
    const bool by_delta = all_by_delta(stored * length_, length_);
    bool written = true;
    std::size_t most = quick_run;
    for (std::size_t begin = 0; begin < length_;) {
      const QuickElements run = elements(stored, begin, by_delta ? most : quick_elements);
      const std::size_t within =
          by_delta || all_by_delta(stored * length_ + begin, run.count) ? judge_within(stored, begin, run) : 0;
      begin += within;
      most = within == run.count ? quick_run : quick_elements;  // what is beyond Delta is rarely alone
      if (within == run.count) continue;
      const QuickElements block = elements(stored, begin, quick_elements);
      judge_each(stored, begin, block);
      begin += block.count;
      written = false;
    }
    return written;
  }

  JudgedElement judge_alone(std::size_t stored, std::size_t column) {
    context_.reset();
    return judged(stored, column);
  }

 private:
  QuickElements elements(std::size_t stored, std::size_t begin, std::size_t most) const {
    const std::size_t first = stored * length_ + begin;
    const ProvenStage& z = golden_.values;
    return {format_,
            std::min(length_ - begin, most),
            got_.data() + (z.rows[stored] * length_ + begin) * size_,
            z.hi.data() + first,
            z.lo.data() + first,
            budget_.delta.data() + first};
  }

  // How many of them are within Delta for sure, whole blocks before the first one that is not: the poison is a NaN,
  // which is within no Delta.
  std::size_t judge_within(std::size_t stored, std::size_t begin, const QuickElements& run) {
    const std::size_t settled = measure_within(run, within_, tally_.sums());
    if (settled == 0 || !tally_.add_within(stored, begin, within_, settled)) return settled;
    for (std::size_t at = 0; at < settled; at += quick_elements) {
      if (!tally_.may_be_worst(within_.largest_ratio[at / quick_elements])) continue;
      const QuickElements block = elements(stored, begin + at, quick_elements);
      measure_each(block, each_);
      tally_.offer_worst(stored, begin + at, each_, block.count);
    }
    return settled;
  }

  void judge_each(std::size_t stored, std::size_t begin, const QuickElements& elements) {
    const std::size_t first = stored * length_ + begin;
    measure_each(elements, each_);
    for (std::size_t i = 0; i < elements.count; ++i) {
      const auto side = static_cast<Side>(each_.side[i]);
      if (is_by_delta(first + i) && side != Side::open) {
        if (side == Side::beyond) tally_.fail();
        if (side == Side::beyond && tally_.keeps_more_failures()) tally_.keep_failure(judged(stored, begin + i));
        continue;
      }
      put_aside(each_, i);
      if (is_plain(first + i, pattern_at(elements.got, i, size_))) {
        tally_.count(golden_.values.rule[first + i], budget_.trust[first + i]);
      } else {
        tally_.add(judged(stored, begin + i), stored);
      }
    }
    tally_.add_each(stored, begin, each_, elements.count);
  }

  // Only what Delta judges, and trusts, is settled by its distance.
  bool is_by_delta(std::size_t index) const {
    const ElementRule rule = golden_.values.rule[index];
    return ((rule == ElementRule::budget) | (rule == ElementRule::budget_exact)) &
           (budget_.trust[index] == Trust::judged);
  }
  bool all_by_delta(std::size_t first, std::size_t count) const {
    static_assert(static_cast<int>(ElementRule::budget) == 0 && static_cast<int>(ElementRule::budget_exact) == 1 &&
                  static_cast<int>(Trust::judged) == 0);
    std::uint8_t other = 0;
    in_widest_lanes([rules = golden_.values.rule.data() + first, trust = budget_.trust.data() + first, count,
                     other = &other]() QKCTS_STRAIGHT { join_bits(rules, trust, count, other); });
    return other == 0;
  }
  // What tells those bytes from rules and trust that ask for Delta alone.
  [[gnu::always_inline]] static void join_bits(const ElementRule* __restrict rules, const Trust* __restrict trust,
                                               std::size_t count, std::uint8_t* joined) {
    std::uint8_t rule_bits = 0, trust_bits = 0;
    for (std::size_t i = 0; i < count; ++i) {
      rule_bits |= static_cast<std::uint8_t>(rules[i]);
      trust_bits |= static_cast<std::uint8_t>(trust[i]);
    }
    *joined = static_cast<std::uint8_t>((rule_bits & 0xfe) | trust_bits);
  }

  // Does judge_element() pass what Delta does not judge, as the pattern tells?
  bool is_plain(std::size_t index, std::uint64_t pattern) const {
    if (pattern == poison_) return false;
    switch (golden_.values.rule[index]) {
      case ElementRule::budget:
      case ElementRule::budget_exact:
        return budget_.trust[index] == Trust::domain;
      case ElementRule::exact_clause:
        return pattern == golden_.values.expected[index];
      case ElementRule::hidden:
        return stage_ != QKCTS_STAGE_MASKED || pattern == minus_infinity_;
      case ElementRule::free:
        return true;
      default:
        return false;
    }
  }

  JudgedElement judged(std::size_t stored, std::size_t column) {
    const std::uint32_t row = golden_.values.rows[stored];
    if (!context_ && !is_by_delta(stored * length_ + column))
      context_ = row_context(golden_.values, stored * length_, length_, softmax_);
    JudgedElement element =
        judge_element(stage_, storage_, pattern_at(got_.data(), row * length_ + column, size_), golden_,
                      stored * length_ + column, budget_, context_ ? *context_ : RowContext{});
    element.place = {row, static_cast<std::uint32_t>(column)};
    return element;
  }

  const GoldenStage& golden_;
  const StageBudget& budget_;
  const qkcts_softmax& softmax_;
  const qkcts_stage stage_;
  const Format storage_, format_;
  const std::size_t size_, length_;
  const std::span<const std::byte> got_;
  const std::uint64_t poison_, minus_infinity_;
  const bool limited_;
  StageTally& tally_;
  std::optional<RowContext> context_;  // of the row, once it is needed; Delta asks for none
  WithinDelta within_;
  EachDistance each_;
};

}  // namespace

StageJudgement judge_stage(const GoldenCase& golden, qkcts_stage stage, std::size_t profile,
                           std::span<const std::byte> got, const std::optional<Limit>& limit) {
  const ProvenStage& stored = golden.stages[stage].values;
  const Format format = stage_format(stage, golden.input.inputs.format);
  const auto length = static_cast<std::size_t>(row_length(stage, golden.input.shape));
  StageJudgement result;
  UnwrittenElements unwritten(format, got, length);
  StageTally tally(result, limit, stored.rows.size(), length);
  RowJudge rows(golden, stage, profile, got, limit, tally);
  for (std::size_t row = 0; row < stored.rows.size(); ++row) {
    const std::size_t begin = stored.rows[row] * length;
    unwritten.search_to(begin);
    if (rows.judge(row)) {
      unwritten.skip_to(begin + length);
    } else {
      unwritten.search_to(begin + length);  // while its bytes are near anyway
    }
  }
  unwritten.search_to(got.size() / static_cast<std::size_t>(parameters(format).bits / 8));
  result.unwritten = unwritten.count();
  result.first_unwritten = unwritten.first();
  tally.finish();
  if (const auto& worst = tally.worst()) result.worst = rows.judge_alone(worst->row, worst->column);
  result.verdict = stage_verdict(result);
  return result;
}

}  // namespace qkcts
