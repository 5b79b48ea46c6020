// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

std::string always(const Draft&) {
  return {};
}

// ---- gaussian -----------------------------------------------------------------------------------------------------

void keep_ordinary(Draft&) {}

// Mean of x^2 is 1 within 5 standard errors; Var x^2 = 1.9 for a kurtosis of 2.9.
std::string gaussian_broken(const GoldenCase& golden) {
  for (const Input input : {Input::q, Input::k, Input::v, Input::q_x, Input::k_x}) {
    if (!golden.input.inputs.has(input)) continue;
    const std::vector<double> values = golden.input.inputs.at(input).values();
    const auto count = static_cast<double>(values.size());
    const double excess = sum_of_squares(values) / count - 1;
    if (std::abs(excess) > 5 * std::sqrt(1.9 / count) + 0x1p-8)
      return fmt::format("mean square of {} is 1 {:+.3f}", input_name(input), excess);
    for (const double x : values)
      if (std::abs(x) > 6) return fmt::format("{} holds {}", input_name(input), x);
  }
  return {};
}

// ---- correlated ---------------------------------------------------------------------------------------------------

constexpr double correlation = 0.8, residue = 0.6;  // squares add up to 1

void draw_correlated(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.q_heads; ++h)
      for (std::int64_t t = 0; t < s.q_len; ++t) {
        double* q = draft.row(DraftSide::query, b, h, t);
        const double* k = draft.row(DraftSide::key, b, draft.kv_head(h), t % s.k_len);
        for (std::int64_t d = 0; d < s.head_dim; ++d) q[d] = correlation * k[d] + residue * q[d];
      }
}

std::string correlated_broken(const GoldenCase& golden) {
  const qkcts_shape& s = golden.input.shape;
  const Tensor q = rows_of(golden.input, DraftSide::query), k = rows_of(golden.input, DraftSide::key);
  double sum = 0;
  double count = 0;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.q_heads; ++h)
      for (std::int64_t t = 0; t < s.q_len; ++t, ++count) {
        const std::vector<double> left = row_of(q, (b * s.q_heads + h) * s.q_len + t);
        const std::int64_t kv_head = kv_head_of(golden.input.contract.terms, s, h);
        const std::vector<double> right = row_of(k, (b * s.kv_heads + kv_head) * s.k_len + t % s.k_len);
        sum += dot(left, right) / std::sqrt(sum_of_squares(left) * sum_of_squares(right));
      }
  const double mean = sum / count;
  return mean > 0.6 ? std::string() : fmt::format("mean cosine of q and its key is {:.3f}", mean);
}

std::string needs_lanes(const Draft& draft) {
  return draft.shape.head_dim < 8 ? "needs a head size of at least 8" : std::string();
}

// ---- norm40 -------------------------------------------------------------------------------------------------------

constexpr double norm40 = 40;

// 1600 = count * value^2 with the most entries that fit.
struct Spread {
  std::int64_t count;
  double value;
};
Spread spread_of(std::int64_t lanes) {
  for (const Spread spread : {Spread{100, 4}, Spread{64, 5}, Spread{25, 8}, Spread{16, 10}, Spread{4, 20}})
    if (lanes >= spread.count) return spread;
  return {1, norm40};
}

std::string norm40_fault(const Draft& draft) {
  return draft.shape.q_len > draft.shape.k_len ? "needs Lq <= Lk, since each query is one of the keys" : std::string();
}

void draw_norm40(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  const Spread spread = spread_of(s.head_dim);
  const RandomStream signs = draft.stream(Draw::direction);
  std::fill(draft.k.begin(), draft.k.end(), 0.0);
  for (std::int64_t row = 0; row < s.batch * s.kv_heads * s.k_len; ++row) {
    const RandomStream order(draft.seed + static_cast<std::uint64_t>(row), static_cast<std::uint32_t>(Draw::order));
    const std::vector<std::uint32_t> lanes = order.permutation(static_cast<std::uint32_t>(s.head_dim));
    for (std::int64_t i = 0; i < spread.count; ++i)
      draft.k[static_cast<std::size_t>(row * s.head_dim + lanes[static_cast<std::size_t>(i)])] =
          spread.value * signs.sign(static_cast<std::uint64_t>(row * s.head_dim + i));
  }
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.q_heads; ++h)
      for (std::int64_t t = 0; t < s.q_len; ++t)
        std::copy_n(draft.row(DraftSide::key, b, draft.kv_head(h), t), s.head_dim,
                    draft.row(DraftSide::query, b, h, t));
  // Nothing but norm, scale and cap acts on the 1600.
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) draft.set_gain(side, 1);
  draft.set_scale(16);
  // Equal vectors at equal positions: their dot stays 1600 under any rotation.
  if (!draft.q_position_ids.empty())
    for (std::int64_t b = 0; b < s.batch; ++b)
      std::copy_n(draft.k_position_ids.begin() + b * s.k_len, s.q_len, draft.q_position_ids.begin() + b * s.q_len);
}

std::string norm40_broken(const GoldenCase& golden) {
  const qkcts_shape& s = golden.input.shape;
  const Tensor q = rows_of(golden.input, DraftSide::query), k = rows_of(golden.input, DraftSide::key);
  for (std::int64_t row = 0; row < s.batch * s.q_heads * s.q_len; ++row) {
    const std::int64_t b = row / s.q_len / s.q_heads;
    const std::int64_t kv_head = kv_head_of(golden.input.contract.terms, s, row / s.q_len % s.q_heads);
    const std::int64_t kv_row = (b * s.kv_heads + kv_head) * s.k_len + row % s.q_len;
    const std::vector<double> left = row_of(q, row);
    if (left != row_of(k, kv_row) || sum_of_squares(left) != norm40 * norm40)
      return fmt::format("row {} of q is not its key, or its norm is not 40", row);
  }
  return {};
}

// ---- magnitude_sweep ----------------------------------------------------------------------------------------------

constexpr int sweep_steps = 15;  // norms times 2^0 .. 2^14

void draw_magnitude_sweep(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  const RandomStream direction = draft.stream(Draw::direction);
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.q_heads; ++h)
      for (std::int64_t t = 0; t < s.q_len; ++t)
        for (std::int64_t d = 0; d < s.head_dim; ++d)
          draft.row(DraftSide::query, b, h, t)[d] =
              std::ldexp(direction.uniform(static_cast<std::uint64_t>(h * s.head_dim + d), -1, 1),
                         static_cast<int>(t % sweep_steps));
}

std::string magnitude_sweep_broken(const GoldenCase& golden) {
  const qkcts_shape& s = golden.input.shape;
  const Tensor q = rows_of(golden.input, DraftSide::query);
  const double first = sum_of_squares(row_of(q, 0));
  const std::int64_t last = std::min<std::int64_t>(s.q_len, sweep_steps) - 1;
  const double ratio = std::sqrt(sum_of_squares(row_of(q, last)) / first);
  const double promised = std::ldexp(1.0, static_cast<int>(last));
  return std::abs(ratio / promised - 1) < 0x1p-10 ? std::string()
                                                  : fmt::format("norms differ by {}, not {}", ratio, promised);
}

// ---- long_rows ----------------------------------------------------------------------------------------------------

std::string long_rows_fault(const Draft& draft) {
  if (draft.shape.k_len < 100) return "needs at least 100 keys";
  return needs_lanes(draft);
}

// Keys turn slowly towards the queries, so that the running maximum of an online softmax rises again and again.
void draw_long_rows(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  const RandomStream direction = draft.stream(Draw::direction);
  draft.freeze_positions();
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < draft.heads(side); ++h)
        for (std::int64_t t = 0; t < draft.tokens(side); ++t) {
          const double share = side == DraftSide::query ? 0.9 : static_cast<double>(t) / static_cast<double>(s.k_len);
          double* row = draft.row(side, b, h, t);
          for (std::int64_t d = 0; d < s.head_dim; ++d)
            row[d] = share * direction.sign(static_cast<std::uint64_t>(d)) + (1.25 - share) * 0.5 * row[d];
        }
  if (draft.norm(DraftSide::query).applied != 0) draft.set_gain(DraftSide::query, 1.25);
  if (draft.norm(DraftSide::key).applied != 0) draft.set_gain(DraftSide::key, 0.75);
}

// In most rows the largest score lies in the last third of the visible keys.
std::string long_rows_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  const qkcts_shape& s = c.shape;
  const ProvenStage& scores = golden.stages[QKCTS_STAGE_SCORES].values;
  const Visibility mask(c);
  double late = 0, rows = 0;
  for (std::size_t i = 0; i < scores.rows.size(); ++i) {
    const std::int64_t row = scores.rows[i];
    std::vector<std::pair<double, double>> visible;  // score, order
    for (std::int64_t j = 0; j < s.k_len; ++j)
      if (mask.visible(row / s.q_len / s.q_heads, row / s.q_len % s.q_heads, row % s.q_len, j))
        visible.emplace_back(scores.hi[i * static_cast<std::size_t>(s.k_len) + static_cast<std::size_t>(j)],
                             static_cast<double>(visible.size()));
    if (visible.size() < 30) continue;
    ++rows;
    if (std::max_element(visible.begin(), visible.end())->second * 3 > 2 * static_cast<double>(visible.size())) ++late;
  }
  return 2 * late >= rows ? std::string() : fmt::format("the maximum is late in {} of {} rows only", late, rows);
}

// ---- offset_positions ---------------------------------------------------------------------------------------------

constexpr std::int64_t far_away = 100000;

std::string offset_positions_fault(const Draft& draft) {
  return draft.contract.terms.rope.order == QKCTS_ROPE_NONE ? "needs a rotary embedding" : std::string();
}

void draw_offset_positions(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  draft.first_position = far_away;
  const auto rows = static_cast<std::uint32_t>(std::max(s.q_len, s.k_len) + 5);
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    std::vector<std::int32_t>& ids = side == DraftSide::query ? draft.q_position_ids : draft.k_position_ids;
    const std::int64_t tokens = draft.tokens(side);
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const RandomStream order(draft.seed + static_cast<std::uint64_t>(2 * b) + (side == DraftSide::key ? 1 : 0),
                               static_cast<std::uint32_t>(Draw::order));
      const std::vector<std::uint32_t> drawn = order.permutation(rows);
      for (std::int64_t t = 0; t < tokens; ++t)
        ids[static_cast<std::size_t>(b * tokens + t)] = static_cast<std::int32_t>(drawn[static_cast<std::size_t>(t)]);
    }
  }
}

std::string offset_positions_broken(const GoldenCase& golden) {
  const std::vector<double> ids = golden.input.inputs.at(Input::k_position_ids).values();
  const std::int64_t origin =
      golden.first_position + static_cast<std::int64_t>(*std::min_element(ids.begin(), ids.end()));
  if (origin < far_away) return fmt::format("a key stands at position {}", origin);
  const auto keys = static_cast<std::ptrdiff_t>(golden.input.shape.k_len);
  std::vector<double> first(ids.begin(), ids.begin() + keys);
  if (keys > 3 && std::is_sorted(first.begin(), first.end())) return "positions are in order";
  std::sort(first.begin(), first.end());
  return std::adjacent_find(first.begin(), first.end()) == first.end() ? std::string() : "a position occurs twice";
}

constexpr InputFamily list[] = {
    {"gaussian", "rows as a model makes them; every clause acts a little", "QK-NORM",
     "mean square of q, k and v (of q_x and k_x under a projection) is 1 within 5 standard errors, no entry beyond 6",
     always, keep_ordinary, gaussian_broken},
    {"correlated", "each query resembles one key, as trained heads make it: uneven weights", "QK-SOFTMAX",
     "mean cosine between a query and its key above 0.6", needs_lanes, draw_correlated, correlated_broken, true},
    {"norm40", "q = k with norm exactly 40, so q.k = 1600: what each norm and cap makes of it", "QK-NORM",
     "each query equals a key, norm exactly 40", norm40_fault, draw_norm40, norm40_broken, true},
    {"magnitude_sweep", "the same direction with norms times 2^0 .. 2^14: saturation, unless a norm prevents it",
     "QK-NORM", "row norms grow by powers of two", always, draw_magnitude_sweep, magnitude_sweep_broken, true},
    {"long_rows", "many tiles, scores that rise along the keys: an online softmax rescales again and again",
     "QK-SOFTMAX", "the largest score lies in the last third of the visible keys in most rows", long_rows_fault,
     draw_long_rows, long_rows_broken, true},
    {"offset_positions", "positions from 100,000 on in random order: position is not the index of the row", "QK-ROPE",
     "positions of a batch entry are distinct, unordered and at least 100,000", offset_positions_fault,
     draw_offset_positions, offset_positions_broken},
};

}  // namespace

std::span<const InputFamily> ordinary_families() {
  return list;
}

}  // namespace qkcts
