// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"
#include "vectors/row_rms.hpp"

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

// rms of a row whose statistic is eps, wherever eps stands.
double rms_of_eps(const qkcts_norm& norm, std::int64_t lanes) {
  return rms_with_root(norm, std::sqrt(norm.eps), lanes);
}

std::string eps_ladder_fault(const Draft& draft) {
  bool any = false;
  for (const DraftSide side : sides) {
    const qkcts_norm& norm = draft.norm(side);
    if (norm.applied == 0) continue;
    any = true;
    if (norm.eps == 0) return "needs an epsilon above 0";
    if (norm.axis == QKCTS_AXIS_FULL_WIDTH) return "needs a norm over each head";
    const double rms = rms_of_eps(norm, draft.lanes(side));
    if (std::string fault = rms_fault(rms, 50000, draft.format); !fault.empty()) return fault;
  }
  return any ? std::string() : "needs a norm";
}

void draw_eps_ladder(Draft& draft) {
  for (const DraftSide side : sides) {
    if (draft.norm(side).applied == 0) continue;
    const double rms = rms_of_eps(draft.norm(side), draft.lanes(side));
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
      const double wanted = rung(t) * rms_of_eps(norm, lanes);
      if (std::string broken = rms_broken(t, squares, heads * lanes, wanted, c.inputs.format); !broken.empty())
        return broken;
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
