// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"
#include "vectors/row_rms.hpp"

namespace qkcts {
namespace {

constexpr DraftSide sides[] = {DraftSide::query, DraftSide::key, DraftSide::value};

std::string needs_norm(const Draft& draft) {
  const bool any = draft.norm(DraftSide::query).applied != 0 || draft.norm(DraftSide::key).applied != 0;
  return any ? std::string() : "needs a norm";
}

// ---- eps_edge -----------------------------------------------------------------------------------------------------

std::string eps_edge_fault(const Draft& draft) {
  bool any = false;
  for (const DraftSide side : sides) {
    const qkcts_norm& norm = draft.norm(side);
    if (norm.applied == 0) continue;
    any = true;
    if (norm.eps == 0) return "needs an epsilon above 0";
    const double rms = balanced_rms(norm, norm_width(norm, draft.lanes(side), draft.heads(side)));
    if (std::string fault = rms_fault(rms, 1000, draft.format); !fault.empty()) return fault;
  }
  return any ? std::string() : "needs a norm";
}

void draw_eps_edge(Draft& draft) {
  for (const DraftSide side : sides) {
    const qkcts_norm& norm = draft.norm(side);
    if (norm.applied == 0) continue;
    const double rms = balanced_rms(norm, norm_width(norm, draft.lanes(side), draft.heads(side)));
    for (std::int64_t b = 0; b < draft.shape.batch; ++b)
      for (std::int64_t h = 0; h < draft.heads(side); ++h)
        for (std::int64_t t = 0; t < draft.tokens(side); ++t) {
          const double level = edge_levels[static_cast<std::size_t>(t) % std::size(edge_levels)] * rms;
          double* row = draft.row(side, b, h, t);
          for (std::int64_t d = 0; d < draft.lanes(side); ++d) row[d] *= level;
        }
  }
}

std::string eps_edge_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  for (const DraftSide side : sides) {
    const qkcts_norm& norm = norm_of(c.contract.terms, side);
    if (norm.applied == 0) continue;
    const Tensor rows = rows_of(c, side);
    const std::int64_t heads = rows.shape[1], tokens = rows.shape[2], lanes = rows.shape[3];
    const double rms = balanced_rms(norm, norm_width(norm, lanes, heads));
    for (std::int64_t t = 0; t < std::min<std::int64_t>(tokens, std::size(edge_levels)); ++t) {
      double squares = 0;  // over the heads of one token, since a single short row may lie far from its level
      for (std::int64_t h = 0; h < heads; ++h) squares += sum_of_squares(row_of(rows, h * tokens + t));
      const double level = edge_levels[static_cast<std::size_t>(t)] * rms;
      if (std::string broken = rms_broken(t, squares, heads * lanes, level, c.inputs.format); !broken.empty())
        return broken;
    }
  }
  return {};
}

// ---- absorbed_tail ------------------------------------------------------------------------------------------------

// tail^2 is half a unit in the last place of 1 in the accumulator: added one after another, no square changes the sum.
double absorbed_tail(Format format) {
  return accumulator_format(format) == Format::binary64 ? 0x1.6a09e6p-27 : 0x1p-12;
}

std::string needs_lanes(const Draft& draft) {
  return draft.shape.head_dim < 8 ? "needs a head size of at least 8" : std::string();
}

void draw_absorbed_tail(Draft& draft) {
  const double tail = absorbed_tail(draft.format);
  const RandomStream signs = draft.stream(Draw::direction);
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    for (std::int64_t b = 0; b < draft.shape.batch; ++b)
      for (std::int64_t h = 0; h < draft.heads(side); ++h)
        for (std::int64_t t = 0; t < draft.tokens(side); ++t) {
          double* row = draft.row(side, b, h, t);
          for (std::int64_t d = 1; d < draft.shape.head_dim; ++d) row[d] = tail;
          row[0] = signs.sign(static_cast<std::uint64_t>(t));
        }
  for (std::int64_t b = 0; b < draft.shape.batch; ++b)
    for (std::int64_t h = 0; h < draft.shape.kv_heads; ++h)
      for (std::int64_t t = 0; t < draft.shape.k_len; ++t) {
        double* row = draft.v_row(b, h, t);
        for (std::int64_t d = 0; d < draft.shape.v_head_dim; ++d)
          row[d] = t == 0 ? 1 + static_cast<double>(d % 8) / 8 : tail * tail;
      }
}

std::string absorbed_tail_broken(const GoldenCase& golden) {
  const Tensor q = rows_of(golden.input, DraftSide::query);
  const double half_ulp = unit_roundoff(accumulator_format(golden.input.inputs.format));
  const std::vector<double> row = row_of(q, 0);
  for (std::size_t d = 1; d < row.size(); ++d)
    if (row[d] * row[d] > half_ulp || row[d] * row[d] < 0.99 * half_ulp)
      return fmt::format("the square of lane {} is {} half ulps of 1", d, row[d] * row[d] / half_ulp);
  return std::abs(row[0]) == 1 ? std::string() : "lane 0 is not 1";
}

// ---- cancelling ---------------------------------------------------------------------------------------------------

// Lanes 2i and 2i+1 of q are equal, those of k opposite up to a sixteenth; values of neighbouring keys likewise.
void draw_cancelling(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  const RandomStream noise = draft.stream(Draw::noise);
  draft.freeze_positions();
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    if (draft.norm(side).applied != 0) draft.set_gain(side, side == DraftSide::query ? 1.25 : 0.75);
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    for (std::int64_t row = 0; row < s.batch * draft.heads(side) * draft.tokens(side); ++row) {
      double* x = draft.rows(side).data() + row * s.head_dim;
      for (std::int64_t d = 1; d < s.head_dim; d += 2) {
        const double rest =
            side == DraftSide::query ? 0 : noise.gaussian(static_cast<std::uint64_t>(row * s.head_dim + d));
        x[d] = side == DraftSide::query ? x[d - 1] : -x[d - 1] + 0x1p-4 * rest;
      }
      if (s.head_dim % 2 != 0) x[s.head_dim - 1] *= 0x1p-6;
    }
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.kv_heads; ++h)
      for (std::int64_t t = 1; t < s.k_len; t += 2)
        for (std::int64_t d = 0; d < s.v_head_dim; ++d)
          draft.v_row(b, h, t)[d] = -draft.v_row(b, h, t - 1)[d] + 0x1p-4 * draft.v_row(b, h, t)[d];
}

std::string cancelling_broken(const GoldenCase& golden) {
  const qkcts_shape& s = golden.input.shape;
  const std::vector<double> q = row_of(rows_of(golden.input, DraftSide::query), 0);
  const Tensor keys = rows_of(golden.input, DraftSide::key);
  double total = 0, remains = 0;
  for (std::int64_t j = 0; j < s.k_len; ++j) {
    const std::vector<double> k = row_of(keys, j);
    remains += std::abs(dot(q, k));
    for (std::size_t d = 0; d < q.size(); ++d) total += std::abs(q[d] * k[d]);
  }
  return remains * 16 <= total ? std::string() : fmt::format("only a factor of {:.1f} cancels", total / remains);
}

// ---- constant_rows ------------------------------------------------------------------------------------------------

std::string constant_rows_fault(const Draft& draft) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    if (draft.norm(side).applied != 0 && draft.norm(side).center != 0 && draft.norm(side).eps == 0)
      return "a centred norm with epsilon 0 divides a constant row by zero";
  return needs_norm(draft);
}

void draw_constant_rows(Draft& draft) {
  constexpr double levels[] = {1, -0.5, 2};
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    for (std::int64_t b = 0; b < draft.shape.batch; ++b)
      for (std::int64_t h = 0; h < draft.heads(side); ++h)
        for (std::int64_t t = 0; t < draft.tokens(side); ++t) {
          const double level = levels[t % 3];
          const double spread = t % 4 == 0 ? 0 : 0x1p-4;
          double* row = draft.row(side, b, h, t);
          for (std::int64_t d = 0; d < draft.shape.head_dim; ++d) row[d] = level * (1 + spread * row[d]);
        }
}

std::string constant_rows_broken(const GoldenCase& golden) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const std::vector<double> row = row_of(rows_of(golden.input, side), 0);
    if (std::any_of(row.begin(), row.end(), [](double x) { return x != 1; })) return "row 0 is not constant";
  }
  return {};
}

// ---- shifted_rows -------------------------------------------------------------------------------------------------

constexpr double shift_spread = 0x1p-10;

std::string shifted_rows_fault(const Draft& draft) {
  if (parameters(draft.format).precision < 24) return "needs a format that resolves a thousandth of a thousandth";
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const qkcts_norm& norm = draft.norm(side);
    if (norm.applied != 0 && norm.center != 0 && norm.variance == QKCTS_VARIANCE_ONE_PASS_CLIPPED)
      return "a one-pass variance may lose such a row altogether";
  }
  return needs_lanes(draft).empty() ? needs_norm(draft) : needs_lanes(draft);
}

// The mean is a thousand times the deviation: E[x^2] - E[x]^2 cancels, the mean of (x - mean)^2 does not.
void draw_shifted_rows(Draft& draft) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    for (double& x : draft.rows(side)) x = 1 + shift_spread * x;
}

std::string shifted_rows_broken(const GoldenCase& golden) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const char* const name = side == DraftSide::query ? "q" : "k";
    const std::vector<double> values = rows_of(golden.input, side).values();
    for (const double x : values)
      if (std::abs(x - 1) > 6 * shift_spread) return fmt::format("{} holds {}", name, x);
    if (values.front() == 1 && values.back() == 1) return fmt::format("{} does not vary", name);
  }
  return {};
}

// ---- gain_signs ---------------------------------------------------------------------------------------------------

std::string gain_signs_fault(const Draft& draft) {
  const qkcts_projection& projection = draft.contract.terms.projection;
  for (const qkcts_norm& norm : {draft.norm(DraftSide::query), draft.norm(DraftSide::key), draft.norm(DraftSide::value),
                                 projection.q_input, projection.k_input})
    if (norm.applied != 0 && norm.gain != QKCTS_GAIN_NONE) return {};
  return "needs a gain";
}

void draw_gain_signs(Draft& draft) {
  constexpr double factors[] = {-1, 1, 0, 2, -0.5, 1, 4, -1};
  for (std::vector<double>* gain :
       {&draft.q_gain, &draft.k_gain, &draft.v_gain, &draft.q_projection.gain, &draft.k_projection.gain})
    for (std::size_t i = 0; i < gain->size(); ++i) (*gain)[i] *= factors[(i + i / 8) % std::size(factors)];
}

std::string gain_signs_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  const qkcts_contract& terms = c.contract.terms;
  const struct {
    Input input;
    const qkcts_norm& norm;
  } gains[] = {{Input::q_gain, terms.q_norm},
               {Input::k_gain, terms.k_norm},
               {Input::v_gain, terms.v_norm},
               {Input::q_x_gain, terms.projection.q_input},
               {Input::k_x_gain, terms.projection.k_input}};
  for (const auto& gain : gains) {
    if (!c.inputs.has(gain.input)) continue;
    std::vector<double> factors = c.inputs.at(gain.input).values();
    if (gain.norm.gain == QKCTS_GAIN_ONE_PLUS_W)
      for (double& factor : factors) factor += 1;
    const auto is_negative = [](double x) { return x < 0; };
    if (std::none_of(factors.begin(), factors.end(), is_negative)) return "no gain is negative";
    if (factors.size() > 2 && std::find(factors.begin(), factors.end(), 0.0) == factors.end()) return "no gain is 0";
  }
  return {};
}

constexpr InputFamily list[] = {
    {"eps_edge", "rows at 100 to 0.01 times the rms where epsilon decides, and zero rows", "QK-EPS",
     "tokens have the rms that their level says; every sixth is zero", eps_edge_fault, draw_eps_edge, eps_edge_broken,
     true},
    {"absorbed_tail", "one large entry before many that a sequential sum loses: the worst case of its bound", "QK-NORM",
     "squares of the tail are half an ulp of 1 in the accumulator", needs_lanes, draw_absorbed_tail,
     absorbed_tail_broken, true},
    {"cancelling", "dots and weighted sums that nearly cancel: errors stand out against the result", "QK-SCALE",
     "sum |q k| is at least 16 times |sum q k|", needs_lanes, draw_cancelling, cancelling_broken, true},
    {"constant_rows", "constant and nearly constant rows: centring decides everything", "QK-NORM",
     "every fourth row is constant, the others within a quarter of it", constant_rows_fault, draw_constant_rows,
     constant_rows_broken, true},
    {"shifted_rows", "rows whose mean is a thousand times their deviation: how the variance is formed decides",
     "QK-VAR", "every entry of q and k within 6/1024 of 1", shifted_rows_fault, draw_shifted_rows, shifted_rows_broken,
     true},
    {"gain_signs", "negative, zero and large gains", "QK-GAIN",
     "each gain has a negative entry, and a zero if longer than 2", gain_signs_fault, draw_gain_signs,
     gain_signs_broken},
};

}  // namespace

std::span<const InputFamily> norm_families() {
  return list;
}

}  // namespace qkcts
