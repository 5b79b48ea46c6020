// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"
#include "vectors/row_rms.hpp"

namespace qkcts {
namespace {

// ---- input_eps_edge -----------------------------------------------------------------------------------------------

std::string input_eps_edge_fault(const Draft& draft) {
  bool any = false;
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const qkcts_norm& norm = input_norm_of(draft.contract.terms, side);
    if (!draft.projects() || norm.applied == 0) continue;
    any = true;
    if (norm.eps == 0) return "needs an epsilon above 0 before the projection";
    if (draft.norm(side).applied != 0 && draft.norm(side).eps == 0)
      return "needs an epsilon above 0 after the projection, too: a row of zeros may arrive there";
    const double rms = balanced_rms(norm, draft.shape.head_dim);
    if (std::string fault = rms_fault(rms, 1000, draft.format); !fault.empty()) return fault;
  }
  return any ? std::string() : "needs a norm before a projection";
}

void draw_input_eps_edge(Draft& draft) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const qkcts_norm& norm = input_norm_of(draft.contract.terms, side);
    if (norm.applied == 0) continue;
    DraftProjection& p = draft.projection(side);
    const double rms = balanced_rms(norm, p.width);
    for (std::size_t i = 0; i < p.x.size(); ++i) {
      const auto token = i / static_cast<std::size_t>(p.width) % static_cast<std::size_t>(draft.tokens(side));
      p.x[i] *= edge_levels[token % std::size(edge_levels)] * rms;
    }
  }
}

std::string input_eps_edge_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const qkcts_norm& norm = input_norm_of(c.contract.terms, side);
    if (norm.applied == 0) continue;
    const Tensor& x = c.inputs.at(side == DraftSide::query ? Input::q_x : Input::k_x);
    const std::int64_t batch = x.shape[0], tokens = x.shape[1], width = x.shape[2];
    for (std::int64_t t = 0; t < std::min<std::int64_t>(tokens, std::size(edge_levels)); ++t) {
      double squares = 0;
      for (std::int64_t b = 0; b < batch; ++b) squares += sum_of_squares(row_of(x, b * tokens + t));
      const double level = edge_levels[static_cast<std::size_t>(t)] * balanced_rms(norm, width);
      if (std::string broken = rms_broken(t, squares, batch * width, level, c.inputs.format); !broken.empty())
        return broken;
    }
  }
  return {};
}

// ---- cancelling_bias ----------------------------------------------------------------------------------------------

constexpr double bias_rest = 0x1p-6;  // what the bias leaves of a product, about

std::string cancelling_bias_fault(const Draft& draft) {
  if (!draft.projects() || draft.contract.terms.projection.bias == 0) return "needs a projection with a bias";
  if (std::string fault = rows_fault(draft.contract.terms); !fault.empty()) return "needs rows that no norm changes";
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    if (draft.norm(side).applied != 0 && draft.norm(side).eps == 0) return "needs an epsilon above 0";
  return {};
}

// All rows nearly alike, and a bias that takes away what they have in common: a product is known to the last place of
// its largest term, and the entry of q is much smaller.
void draw_cancelling_bias(Draft& draft) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    DraftProjection& p = draft.projection(side);
    const auto width = static_cast<std::size_t>(p.width), columns = p.bias.size();
    // As it will be stored: it is the stored matrix whose product the bias takes away.
    const auto stored = [&](double value) { return decode(draft.format, encode(draft.format, value)); };
    const RandomStream noise = draft.stream(side == DraftSide::query ? Draw::noise : Draw::order);
    const std::vector<double> common(p.x.begin(), p.x.begin() + p.width);
    for (std::size_t i = 0; i < p.x.size(); ++i) p.x[i] = common[i % width] + bias_rest * noise.gaussian(i);
    for (std::size_t column = 0; column < columns; ++column) {
      double product = 0;
      for (std::size_t e = 0; e < width; ++e) product += common[e] * stored(p.weight[e * columns + column]);
      p.bias[column] = -product;
    }
  }
}

std::string cancelling_bias_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const bool query = side == DraftSide::query;
    const Tensor rows = rows_of(c, side);
    const std::vector<double> bias = c.inputs.at(query ? Input::q_weight_bias : Input::k_weight_bias).values();
    double entries = 0, biases = 0;
    for (std::size_t i = 0; i < rows.count(); ++i) entries += std::abs(rows.value(i));
    for (const double b : bias) biases += std::abs(b);
    const double ratio = biases / static_cast<double>(bias.size()) / (entries / static_cast<double>(rows.count()));
    if (ratio < 16) return fmt::format("the bias of {} cancels a factor of {:.1f} only", query ? "q" : "k", ratio);
  }
  return {};
}

constexpr InputFamily list[] = {
    {"input_eps_edge",
     "rows at 100 to 0.01 times the rms where the epsilon before the projection decides, and zero rows", "QK-PROJ",
     "tokens have the rms that their level says; every sixth is zero", input_eps_edge_fault, draw_input_eps_edge,
     input_eps_edge_broken},
    {"cancelling_bias", "the bias of a projection cancels its products: errors stand out against what is left",
     "QK-PROJ", "entries of the bias are 16 times as large as those of q and k, on the average", cancelling_bias_fault,
     draw_cancelling_bias, cancelling_bias_broken},
};

}  // namespace

std::span<const InputFamily> projection_families() {
  return list;
}

}  // namespace qkcts
