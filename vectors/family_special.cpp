// SPDX-License-Identifier: Apache-2.0
// NaN and infinities where somebody looks, and numbers that become infinities on the way.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "conformance/seen_keys.hpp"
#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

// Quiet and signalling, of either sign, with and without a payload.
std::uint64_t nan_pattern(Format format, std::size_t kind) {
  const FormatParameters& p = parameters(format);
  const std::uint64_t sign = std::uint64_t{1} << static_cast<unsigned>(p.bits - 1);
  const std::uint64_t quiet = std::uint64_t{1} << static_cast<unsigned>(p.precision - 2);
  const std::uint64_t infinity = encode(format, HUGE_VAL);
  const std::uint64_t kinds[] = {infinity | quiet, sign | infinity | quiet | 3, infinity | 1};
  return kinds[kind % std::size(kinds)];
}

// The key of an entry that most rows see; where the contract says what a hidden value does, one that some row does not
// see, if there is any.
std::int64_t key_to_spoil(const Draft& draft, std::int64_t b) {
  const Case c = sealed(draft).c;
  const Visibility visibility(c);
  const bool finite = c.contract.terms.softmax.hidden_values == QKCTS_HIDDEN_FINITE;
  const std::int64_t rows = c.shape.q_heads * c.shape.q_len;
  std::int64_t best = 0, most = -1;
  for (std::int64_t key = 0; key < c.shape.k_len; ++key) {
    std::int64_t seen = 0;
    for (std::int64_t h = 0; h < c.shape.q_heads; ++h)
      for (std::int64_t t = 0; t < c.shape.q_len; ++t) seen += visibility.visible(b, h, t, key) ? 1 : 0;
    const std::int64_t worth = finite || seen < rows ? seen : 0;
    if (seen > 0 && worth > most) {
      best = key;
      most = worth;
    }
  }
  return best;
}

void spoil(Draft& draft, DraftSide side, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t lane,
           std::uint64_t pattern) {
  const bool projected = draft.projects() && side != DraftSide::value;
  const Input input = side == DraftSide::value   ? Input::v
                      : side == DraftSide::query ? (projected ? Input::q_x : Input::q)
                                                 : (projected ? Input::k_x : Input::k);
  const std::int64_t lanes = projected ? draft.projection(side).width : draft.lanes(side);
  const std::int64_t heads = projected ? 1 : draft.heads(side);
  const std::int64_t at = ((b * heads + (projected ? 0 : h)) * draft.tokens(side) + t) * lanes + lane % lanes;
  draft.poison.push_back({input, static_cast<std::size_t>(at), pattern});
}

std::string visible_fault(const Draft& draft) {
  const qkcts_contract& terms = draft.contract.terms;
  if (terms.v_range.clip_before != 0 || terms.v_range.clip_after != 0) return "needs values without clamps";
  if (terms.rounding.saturate != 0) return "needs rounding points that do not saturate";
  if (draft.shape.batch < 3) return "needs 3 batch entries: one stays whole";
  if (draft.shape.k_len < 2 || draft.shape.v_head_dim < 2) return "needs 2 keys and 2 lanes of v";
  return {};
}

// What the promises read: how often the output is judged so.
struct OutputCount {
  std::size_t nan = 0, infinite = 0, numbers = 0;
};

OutputCount count_outputs(const GoldenCase& golden) {
  const ProvenStage& output = golden.stages[QKCTS_STAGE_OUTPUT].values;
  OutputCount count;
  for (std::size_t i = 0; i < output.rule.size(); ++i) {
    if (output.rule[i] == ElementRule::special) ++(std::isnan(output.hi[i]) ? count.nan : count.infinite);
    if (output.rule[i] <= ElementRule::budget_exact) ++count.numbers;
  }
  return count;
}

// ---- nan_visible --------------------------------------------------------------------------------------------------

void draw_nan_visible(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  const std::int64_t lane = s.head_dim / 2;
  spoil(draft, DraftSide::query, 0, s.q_heads - 1, s.q_len / 2, lane, nan_pattern(draft.format, 0));
  spoil(draft, DraftSide::key, 1, s.kv_heads - 1, key_to_spoil(draft, 1), lane, nan_pattern(draft.format, 1));
  spoil(draft, DraftSide::value, 0, 0, key_to_spoil(draft, 0), 1, nan_pattern(draft.format, 2));
}

std::string nan_visible_broken(const GoldenCase& golden) {
  const OutputCount count = count_outputs(golden);
  if (count.nan == 0) return "no output is NaN";
  if (count.numbers == 0) return "no output is a number";
  return {};
}

// ---- inf_visible --------------------------------------------------------------------------------------------------

// In lane 0 of v one infinity, in lane 1 both: together they are NaN.
void draw_inf_visible(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  const std::uint64_t up = encode(draft.format, HUGE_VAL), down = encode(draft.format, -HUGE_VAL);
  spoil(draft, DraftSide::query, 0, s.q_heads - 1, s.q_len / 2, s.head_dim / 2, up);
  spoil(draft, DraftSide::key, 1, s.kv_heads - 1, key_to_spoil(draft, 1), s.head_dim / 2, down);
  const std::vector<bool> seen = seen_keys(sealed(draft).c);
  const std::int64_t key = key_to_spoil(draft, 0);
  spoil(draft, DraftSide::value, 0, 0, key, 0, down);
  spoil(draft, DraftSide::value, 0, 0, key, 1, up);
  for (std::int64_t other = 0; other < s.k_len; ++other)
    if (other != key && seen[static_cast<std::size_t>(other)])
      return spoil(draft, DraftSide::value, 0, 0, other, 1, down);
}

std::string inf_visible_fault(const Draft& draft) {
  if (std::string fault = visible_fault(draft); !fault.empty()) return fault;
  return draft.norm(DraftSide::value).applied != 0 ? "needs values without a norm, which makes NaN of infinity" : "";
}

std::string inf_visible_broken(const GoldenCase& golden) {
  const OutputCount count = count_outputs(golden);
  if (count.infinite == 0) return "no output is infinite";
  if (count.numbers == 0) return "no output is a number";
  return {};
}

// ---- nan_hidden ---------------------------------------------------------------------------------------------------

std::string nan_hidden_fault(const Draft& draft) {
  if (draft.contract.terms.softmax.hidden_values == QKCTS_HIDDEN_FINITE)
    return "needs a contract that says what hidden values do";
  if (std::string fault = visible_fault(draft); !fault.empty()) return fault;
  const qkcts_mask& mask = draft.contract.terms.mask;
  const bool by_row = mask.boolean != 0 || mask.causal != 0 || mask.has_window != 0;
  return by_row ? std::string() : "needs a mask that hides a key from some rows and not from others";
}

// A key of every entry but the last: NaN in k and v, infinity in another lane of v.
void draw_nan_hidden(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  for (std::int64_t b = 0; b + 1 < s.batch; ++b) {
    const std::int64_t key = key_to_spoil(draft, b);
    spoil(draft, DraftSide::value, b, 0, key, 0, nan_pattern(draft.format, static_cast<std::size_t>(b)));
    spoil(draft, DraftSide::value, b, 0, key, 1, encode(draft.format, HUGE_VAL));
    if (b == 0) spoil(draft, DraftSide::key, b, s.kv_heads - 1, key, 0, nan_pattern(draft.format, 1));
  }
}

std::string nan_hidden_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  const Visibility visibility(c);
  const ProvenStage& output = golden.stages[QKCTS_STAGE_OUTPUT].values;
  const bool propagated = c.contract.terms.softmax.hidden_values == QKCTS_HIDDEN_PROPAGATED;
  std::size_t hidden = 0;
  for (std::int64_t b = 0; b + 1 < c.shape.batch; ++b)
    for (std::int64_t h = 0; h < c.shape.q_heads; ++h)
      for (std::int64_t t = 0; t < c.shape.q_len; ++t)
        for (std::int64_t key = 0; key < c.shape.k_len; ++key) {
          const std::int64_t kv = kv_head_of(c.contract.terms, c.shape, h);
          const std::vector<double> v =
              row_of(c.inputs.at(Input::v), (b * c.shape.kv_heads + kv) * c.shape.k_len + key);
          if (!std::isnan(v[0]) || visibility.visible(b, h, t, key)) continue;
          const auto row = static_cast<std::size_t>((b * c.shape.q_heads + h) * c.shape.q_len + t);
          const std::size_t at = row * static_cast<std::size_t>(c.shape.v_head_dim);
          if (propagated != std::isnan(output.hi[at])) return fmt::format("row {} is {}", row, output.hi[at]);
          ++hidden;
        }
  return hidden == 0 ? "no row does not see a NaN" : "";
}

// ---- signed_zero --------------------------------------------------------------------------------------------------

std::string always(const Draft&) {
  return {};
}

// Every third entry is 0, of either sign in turn; lane 0 of v is -0 throughout.
void draw_signed_zero(Draft& draft) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key, DraftSide::value}) {
    std::vector<double>& rows = draft.rows(side);
    for (std::size_t i = 0; i < rows.size(); i += 3) rows[i] = i % 2 == 0 ? -0.0 : 0.0;
  }
  const auto lanes = static_cast<std::size_t>(draft.shape.v_head_dim);
  for (std::size_t i = 0; i < draft.v.size(); i += lanes) draft.v[i] = -0.0;
}

std::string signed_zero_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  for (const DraftSide side : {DraftSide::query, DraftSide::key, DraftSide::value}) {
    const std::vector<double> values = rows_of(c, side).values();
    const auto negative =
        std::count_if(values.begin(), values.end(), [](double x) { return x == 0 && std::signbit(x); });
    const auto positive =
        std::count_if(values.begin(), values.end(), [](double x) { return x == 0 && !std::signbit(x); });
    const bool projected = side != DraftSide::value && c.inputs.has(Input::q_x);
    if (!projected && (negative == 0 || positive == 0)) return "a side has zeros of one sign only";
  }
  return {};
}

// ---- overflow_statistic -------------------------------------------------------------------------------------------

std::string overflow_statistic_fault(const Draft& draft) {
  if (std::string narrow = narrow_points_fault(draft); !narrow.empty()) return narrow;
  if (draft.format == Format::binary16) return "squares of binary16 numbers do not overflow";
  if (draft.norm(DraftSide::query).applied == 0) return "needs a norm of q";
  if (draft.range(DraftSide::query).clip_before != 0) return "needs a norm of q without a clamp before it";
  if (draft.shape.q_len < 2) return "needs 2 queries: one stays whole";
  return {};
}

// Rows of the last query of every entry, multiplied so that one square overflows, though the row itself does not.
void draw_overflow_statistic(Draft& draft) {
  const int exponent = draft.format == Format::binary64 ? 600 : 80;
  for (std::int64_t b = 0; b < draft.shape.batch; ++b)
    for (std::int64_t h = 0; h < draft.shape.q_heads; ++h) {
      double* const row = draft.row(DraftSide::query, b, h, draft.shape.q_len - 1);
      for (std::int64_t d = 0; d < draft.shape.head_dim; ++d) row[d] = std::ldexp(row[d], exponent);
    }
}

// Of the whole row, where it is observed: no element of q_norm may be judged, whoever computes in the format.
std::string overflow_statistic_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  const double largest = parameters(accumulator_format(c.inputs.format)).largest;
  const Tensor q = rows_of(c, DraftSide::query);
  std::size_t over = 0, under = 0;
  for (std::int64_t row = 0; row < q.shape[0] * q.shape[1] * q.shape[2]; ++row)
    ++(std::sqrt(sum_of_squares(row_of(q, row))) >= std::sqrt(largest) ? over : under);
  if (over == 0) return "no sum of squares overflows";
  if (under == 0) return "every sum of squares overflows";
  return {};
}

// ---- overflow_score -----------------------------------------------------------------------------------------------

std::string overflow_score_fault(const Draft& draft) {
  if (draft.format == Format::binary16) return "products of binary16 numbers do not overflow";
  if (draft.projects()) return "needs q and k as inputs";
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    if (transforms(draft.norm(side), draft.range(side))) return "needs q and k without norms and clamps";
  if (draft.format == Format::binary64 && draft.contract.terms.score.softcap == 0)
    return "scores of binary64 that overflow have no weights that the reference can prove";
  return draft.shape.q_len < 2 ? "needs 2 queries: one stays whole" : std::string();
}

// Rows of the last query of every entry have the largest exponent, so that their products with k overflow.
void draw_overflow_score(Draft& draft) {
  const int exponent = parameters(draft.format).emax;
  for (std::int64_t b = 0; b < draft.shape.batch; ++b)
    for (std::int64_t h = 0; h < draft.shape.q_heads; ++h) {
      double* const row = draft.row(DraftSide::query, b, h, draft.shape.q_len - 1);
      for (std::int64_t d = 0; d < draft.shape.head_dim; ++d) row[d] = std::ldexp(std::copysign(1.0, row[d]), exponent);
    }
}

std::string overflow_score_broken(const GoldenCase& golden) {
  const GoldenStage& scores = golden.stages[QKCTS_STAGE_SCORES];
  const auto& trust = scores.budgets.front().trust;
  if (std::count(trust.begin(), trust.end(), Trust::domain) == 0) return "no stored score overflows";
  if (std::count(trust.begin(), trust.end(), Trust::judged) == 0) return "every stored score overflows";
  return {};
}

// ---- overflow_storage ---------------------------------------------------------------------------------------------

std::string overflow_storage_fault(const Draft& draft) {
  if (draft.format != Format::binary16) return "needs binary16: other formats have the range of their arithmetic";
  const qkcts_norm& norm = draft.norm(DraftSide::query);
  if (norm.applied == 0 || norm.gain == QKCTS_GAIN_NONE) return "needs a norm of q with a gain";
  if (draft.range(DraftSide::query).clip_after != 0) return "needs a norm of q without a clamp after it";
  return has_rounding_points(draft.contract.terms.rounding) ? "needs a contract without rounding points" : "";
}

// A gain near the largest number: entries above 1 overflow in q_norm where it is stored, and nowhere else.
void draw_overflow_storage(Draft& draft) {
  const double largest = parameters(draft.format).largest;
  draft.set_gain(DraftSide::query, std::ldexp(1.0, static_cast<int>(std::floor(std::log2(largest)))));
  for (double& x : draft.k) x = std::ldexp(x, -12);
}

std::string overflow_storage_broken(const GoldenCase& golden) {
  const ProvenStage& q = golden.stages[QKCTS_STAGE_Q_NORM].values;
  const Format format = golden.input.inputs.format;
  std::size_t over = 0, under = 0;
  for (const std::uint64_t expected : q.expected) ++(std::isinf(decode(format, expected)) ? over : under);
  if (over == 0) return "no entry of q_norm overflows";
  if (under == 0) return "every entry of q_norm overflows";
  return {};
}

constexpr InputFamily list[] = {
    {"nan_visible", "NaN in one row of q, one key and one value: it reaches what sees it, and nothing else",
     "QK-SPECIAL", "some output is NaN, some is a number", visible_fault, draw_nan_visible, nan_visible_broken},
    {"inf_visible", "infinities in one row of q, one key and two values: NaN, an infinity, never a number",
     "QK-SPECIAL", "some output is infinite, some is a number", inf_visible_fault, draw_inf_visible,
     inf_visible_broken},
    {"nan_hidden", "NaN and infinity in values that some rows do not see: weight 0 times them, or nothing", "QK-HIDDEN",
     "under `propagated` every output row that does not see a NaN in v is NaN in that lane, under `excluded` it is a "
     "number",
     nan_hidden_fault, draw_nan_hidden, nan_hidden_broken},
    {"signed_zero", "zeros of either sign in q, k and v, and a lane of v that is -0 throughout", "QK-SPECIAL",
     "zeros of both signs in q, k and v", always, draw_signed_zero, signed_zero_broken},
    {"overflow_statistic", "finite rows whose sum of squares overflows: whatever comes of it, it stays in the row",
     "QK-SPECIAL", "some sum of squares of q is beyond the accumulator's largest number, some is not",
     overflow_statistic_fault, draw_overflow_statistic, overflow_statistic_broken, true},
    {"overflow_score", "finite q and k whose product overflows: whatever comes of it, it stays in the row",
     "QK-SPECIAL", "some stored scores may overflow, some may not", overflow_score_fault, draw_overflow_score,
     overflow_score_broken, true},
    {"overflow_storage", "entries of q_norm that its storage format does not have, and the arithmetic has",
     "QK-SPECIAL", "some entry of q_norm is stored as infinity, some is not", overflow_storage_fault,
     draw_overflow_storage, overflow_storage_broken},
};

}  // namespace

std::span<const InputFamily> special_families() {
  return list;
}

}  // namespace qkcts
