// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

// ---- eps_ladder ---------------------------------------------------------------------------------------------------

constexpr std::int64_t rungs = 34;
constexpr DraftSide sides[] = {DraftSide::query, DraftSide::key, DraftSide::value};

// 1/16, 3/32, 1/8, 3/16 ... 4096, 6144, by token: sqrt(t / eps), t the statistic beside which eps stands.
double rung(std::int64_t token) {
  const std::int64_t step = token % rungs;
  return std::ldexp(step % 2 == 0 ? 1.0 : 1.5, static_cast<int>(step / 2) - 4);
}

// rms of a row whose statistic is eps.
double balanced_rms(const qkcts_norm& norm, std::int64_t lanes) {
  const double root = std::sqrt(norm.eps);
  return norm.statistic == QKCTS_MEAN_SQUARE ? root : root / std::sqrt(static_cast<double>(lanes));
}

std::string eps_ladder_fault(const Draft& draft) {
  bool any = false;
  for (const DraftSide side : sides) {
    const qkcts_norm& norm = draft.norm(side);
    if (norm.applied == 0) continue;
    any = true;
    if (norm.eps == 0) return "needs an epsilon above 0";
    if (norm.axis == QKCTS_AXIS_FULL_WIDTH) return "needs a norm over each head";
    const double rms = balanced_rms(norm, draft.lanes(side));
    if (rms < 256 * smallest_subnormal(draft.format) || rms * 50000 > parameters(draft.format).largest)
      return fmt::format("an rms of {:.3g}, where epsilon decides, does not fit the format", rms);
  }
  return any ? std::string() : "needs a norm";
}

void draw_eps_ladder(Draft& draft) {
  for (const DraftSide side : sides) {
    if (draft.norm(side).applied == 0) continue;
    const double rms = balanced_rms(draft.norm(side), draft.lanes(side));
    for (std::int64_t b = 0; b < draft.shape.batch; ++b)
      for (std::int64_t h = 0; h < draft.heads(side); ++h)
        for (std::int64_t t = 0; t < draft.tokens(side); ++t) {
          double* row = draft.row(side, b, h, t);
          for (std::int64_t d = 0; d < draft.lanes(side); ++d) row[d] *= rung(t) * rms;
        }
  }
}

std::string eps_ladder_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  for (const DraftSide side : sides) {
    const qkcts_norm& norm = norm_of(c.contract.terms, side);
    if (norm.applied == 0) continue;
    const Tensor rows = rows_of(c, side);
    const std::int64_t heads = rows.shape[1], tokens = rows.shape[2], lanes = rows.shape[3];
    for (std::int64_t t = 0; t < tokens; ++t) {
      double squares = 0;  // over the heads of one token, since a single short row may lie far from its rung
      for (std::int64_t h = 0; h < heads; ++h) squares += sum_of_squares(row_of(rows, h * tokens + t));
      const auto count = static_cast<double>(heads * lanes);
      const double got = std::sqrt(squares / count), wanted = rung(t) * balanced_rms(norm, lanes);
      const double slack = 5 * std::sqrt(1.9 / count);
      if (got > wanted * (1 + slack) || got < wanted * (1 - slack) - 8 * smallest_subnormal(c.inputs.format))
        return fmt::format("token {} has rms {:.3g} instead of {:.3g}", t, got, wanted);
    }
  }
  return {};
}

constexpr InputFamily list[] = {
    {"eps_ladder",
     "rows in steps of 3/2 and 4/3 through the sizes where epsilon decides: the curves of docs/epsilon.md", "QK-EPS",
     "tokens have sqrt(mean square or sum of squares / eps) = 1/16, 3/32, 1/8 ... 6144", eps_ladder_fault,
     draw_eps_ladder, eps_ladder_broken, true},
};

}  // namespace

std::span<const InputFamily> ladder_families() {
  return list;
}

}  // namespace qkcts
