// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

// ---- uniform_rows -------------------------------------------------------------------------------------------------

std::string uniform_rows_fault(const Draft& draft) {
  return draft.contract.terms.logits.alibi != QKCTS_ALIBI_NONE ? "needs scores without a linear bias" : std::string();
}

// All keys of a head are one key at one position: no score differs from another.
void make_uniform(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  std::fill(draft.k_position_ids.begin(), draft.k_position_ids.end(), 4);
  std::fill(draft.bias.begin(), draft.bias.end(), 0.0);
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.kv_heads; ++h)
      for (std::int64_t t = 1; t < s.k_len; ++t)
        std::copy_n(draft.row(DraftSide::key, b, h, 0), s.head_dim, draft.row(DraftSide::key, b, h, t));
}

std::string uniform_rows_broken(const GoldenCase& golden) {
  const auto keys = static_cast<std::size_t>(golden.input.shape.k_len);
  const ProvenStage& scores = golden.stages[QKCTS_STAGE_SCORES].values;
  for (std::size_t i = 0; i < scores.hi.size(); ++i)
    if (scores.hi[i] != scores.hi[i - i % keys])
      return fmt::format("row {}: scores 0 and {} differ", scores.rows[i / keys], i % keys);
  return {};
}

// ---- truncation ---------------------------------------------------------------------------------------------------

std::string truncation_fault(const Draft& draft) {
  const qkcts_contract& terms = draft.contract.terms;
  if (terms.softmax.sink != QKCTS_SINK_NONE) return "needs weights that add up to 1, so no sink";
  if (accumulator_format(draft.format) == draft.format) return "needs a format narrower than its accumulator";
  const qkcts_norm_range& range = terms.v_range;
  const bool changed =
      (range.multiplier != 0 && range.multiplier != 1) || range.clip_before > 0 || range.clip_after > 0;
  if (terms.v_norm.applied != 0 || changed) return "needs values that arrive as they are";
  if (terms.rounding.probs != 0 || terms.rounding.output != 0) return "needs weights and outputs without points";
  if (draft.shape.k_len < 3 || draft.shape.k_len > 64) return "needs 3 to 64 keys";
  const bool gaps =
      terms.mask.boolean != 0 || terms.mask.has_window != 0 || terms.regions.chunk != 0 || terms.regions.documents != 0;
  if (gaps) return "needs rows that see the first keys, however many";
  return uniform_rows_fault(draft);
}

// How far the value of key t lies from that of its lane, in units of the format at 1. Whatever n the first n keys are,
// their mean lies about three quarters of the way between two such units: the sum of n entries is floor(3n/4) modulo n.
// Entries of both signs and of more than 32 units keep the mean from being what every weight gives.
std::vector<std::int64_t> truncation_steps(std::int64_t keys) {
  constexpr std::int64_t least = 33;
  std::vector<std::int64_t> steps;
  std::int64_t sum = 0;
  for (std::int64_t n = 1; n <= keys; ++n) {
    const std::int64_t wanted = 3 * n / 4;
    std::int64_t step = wanted - sum;  // even n: back to the sum itself
    if (n % 2 != 0) step = least + ((wanted - sum - least) % n + n) % n;
    steps.push_back(step);
    sum += step;
  }
  return steps;
}

// A kernel that cuts off instead of rounding is wrong by most of a unit, always downwards.
void draw_truncation(Draft& draft) {
  make_uniform(draft);
  const qkcts_shape& s = draft.shape;
  const double unit = ulp(draft.format, 1);
  const std::vector<std::int64_t> steps = truncation_steps(s.k_len);
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.kv_heads; ++h)
      for (std::int64_t t = 0; t < s.k_len; ++t)
        for (std::int64_t d = 0; d < s.v_head_dim; ++d)
          draft.v_row(b, h, t)[d] = 1 + unit * static_cast<double>(d % 13 + steps[static_cast<std::size_t>(t)]);
}

std::string truncation_broken(const GoldenCase& golden) {
  const Format format = golden.input.inputs.format;
  const double unit = ulp(format, 1);
  for (const double x : golden.input.inputs.at(Input::v).values())
    if (!(x > 0 && x < 2) || std::floor(x / unit) * unit != x) return fmt::format("v holds {}", x);
  // Without a key a row has no such output, and with one it is exact.
  double upper = 0, all = 0;
  for (const double o : golden.stages[QKCTS_STAGE_OUTPUT].values.hi) {
    const double place = o / unit - std::floor(o / unit);
    if (!(o > 0) || place == 0) continue;
    ++all;
    if (place > 0.5) ++upper;
  }
  return 2 * upper > all ? std::string() : fmt::format("{} of {} outputs lie in the upper half", upper, all);
}

// ---- long_decode --------------------------------------------------------------------------------------------------

constexpr std::int64_t long_cache = 32768;

std::string long_decode_fault(const Draft& draft) {
  if (draft.shape.q_len != 1 || draft.shape.k_len < long_cache) return "needs one query and at least 32,768 keys";
  return draft.shape.head_dim < 32 ? "needs a head size of at least 32" : std::string();
}

// Keys turn slowly towards the query, as in long_rows, but no further than weights stay spread over thousands.
void draw_long_decode(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  draft.freeze_positions();
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.q_heads; ++h) draft.point(DraftSide::query, b, h, 0, 0.75);
    for (std::int64_t h = 0; h < s.kv_heads; ++h)
      for (std::int64_t t = 0; t < s.k_len; ++t)
        draft.point(DraftSide::key, b, h, t, 0.5 * static_cast<double>(t) / static_cast<double>(s.k_len));
  }
}

std::string long_decode_broken(const GoldenCase& golden) {
  if (golden.input.shape.q_len != 1 || golden.input.shape.k_len < long_cache) return "the row is not that long";
  if (golden.entropy.min <= 5) return fmt::format("a row has an entropy of {:.3g}", golden.entropy.min);
  const std::vector<double>& scores = golden.stages[QKCTS_STAGE_SCORES].values.hi;
  const std::ptrdiff_t keys = golden.input.shape.k_len, tenth = keys / 10;
  double first = 0, last = 0;
  for (auto row = scores.begin(); row != scores.end(); row += keys) {
    first += std::accumulate(row, row + tenth, 0.0);
    last += std::accumulate(row + keys - tenth, row + keys, 0.0);
  }
  const double rise =
      (last - first) / static_cast<double>(tenth) * static_cast<double>(keys) / static_cast<double>(scores.size());
  return rise > 0.5 ? std::string() : fmt::format("from the first tenth to the last, scores rise by {:.3g}", rise);
}

// ---- empty_entries ------------------------------------------------------------------------------------------------

bool is_empty_entry(std::int64_t b, std::int64_t batch) {
  return b == 0 || b == batch / 2 || b == batch - 1;
}

std::string empty_entries_fault(const Draft& draft) {
  if (draft.contract.terms.mask.kv_lengths == 0) return "needs key lengths";
  return draft.shape.batch < 4 ? "needs a batch of at least 4" : std::string();
}

void draw_empty_entries(Draft& draft) {
  for (std::int64_t b = 0; b < draft.shape.batch; ++b)
    if (is_empty_entry(b, draft.shape.batch)) draft.kv_len[static_cast<std::size_t>(b)] = 0;
}

std::string empty_entries_broken(const GoldenCase& golden) {
  const std::vector<double> lengths = golden.input.inputs.at(Input::kv_len).values();
  for (std::int64_t b = 0; b < std::ssize(lengths); ++b)
    if (is_empty_entry(b, golden.input.shape.batch) != (lengths[static_cast<std::size_t>(b)] == 0))
      return fmt::format("batch entry {} has {} keys", b, lengths[static_cast<std::size_t>(b)]);
  return {};
}

constexpr InputFamily list[] = {
    {"uniform_rows", "all keys of a row alike: entropy at its largest, the output is the mean of the values",
     "QK-SOFTMAX", "all scores of a row are equal", uniform_rows_fault, make_uniform, uniform_rows_broken, true},
    {"truncation", "outputs three quarters of the way between two numbers: cutting off instead of rounding shows",
     "QK-FMT", "values are positive multiples of the unit at 1; most outputs between two of them lie in the upper half",
     truncation_fault, draw_truncation, truncation_broken, true},
    {"long_decode", "one new token before a long cache: thousands of tiles, splits and rescalings in one row",
     "QK-SOFTMAX", "one query, at least 32,768 keys, entropy above 5; scores rise by more than 0.5 along them",
     long_decode_fault, draw_long_decode, long_decode_broken, true},
    {"empty_entries", "batch entries without any key at the head, in the middle and at the end of the batch",
     "QK-EMPTY", "entries 0, B/2 and B - 1 have no key, all others have some", empty_entries_fault, draw_empty_entries,
     empty_entries_broken},
};

}  // namespace

std::span<const InputFamily> weight_families() {
  return list;
}

}  // namespace qkcts
