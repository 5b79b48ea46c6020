// SPDX-License-Identifier: Apache-2.0
#include "reference/fast_tier_vectors.hpp"

#include <algorithm>

namespace qkcts {
namespace {

bool covers(const qkcts_norm_range& range) {
  return range.clip_before == 0 && range.clip_after == 0 && (range.multiplier == 0 || range.multiplier == 1);
}

bool covers(const CaseValues& values) {
  const qkcts_contract& terms = values.terms;
  const bool clauses = covers(terms.q_range) && covers(terms.k_range) && covers(terms.v_range) && !values.frequencies &&
                       terms.softmax.hidden_values != QKCTS_HIDDEN_EXCLUDED && !has_rounding_points(terms.rounding);
  if (!clauses) return false;
  if (values.input.inputs.format != Format::binary64) return true;  // all their numbers are moderate
  std::vector<const std::vector<double>*> tensors = {&values.cos, &values.sin};
  const auto add = [&tensors](const SideValues& side) {
    tensors.insert(tensors.end(), {&side.x, &side.gain, &side.bias});
  };
  for (const Side which : all_sides) {
    add(values.side(which));
    const Projection* projection = values.projection(which);
    if (projection == nullptr) continue;
    add(projection->source);
    tensors.insert(tensors.end(), {&projection->weight, &projection->bias});
  }
  return std::all_of(tensors.begin(), tensors.end(), [](const auto* tensor) { return is_moderate(*tensor); });
}

}  // namespace

std::unique_ptr<FastVectors> FastVectors::create(const CaseValues& values, ReferenceResult& result,
                                                 std::span<const Kernels> kernels) {
  if (kernels.empty() || !covers(values)) return nullptr;
  return std::make_unique<FastVectors>(values, result, kernels.front());
}

FastVectors::FastVectors(const CaseValues& values, ReferenceResult& result, const Kernels& kernels)
    : values_(values),
      kernels_(kernels),
      recorder_(values, result, kernels),
      q_(values, Side::query, kernels),
      k_(values, Side::key, kernels),
      v_(values.v.transforms() ? std::make_unique<FastOperands>(values, Side::value, kernels) : nullptr) {}

std::optional<std::vector<ElementPlace>> FastVectors::settle_group(Side which, std::int64_t group) {
  std::vector<ElementPlace> open;
  if (which == Side::value && !v_) return open;
  const SideValues& side = values_.side(which);
  FastOperands& operands = which == Side::query ? q_ : which == Side::key ? k_ : *v_;
  if (!operands.make(group, stages_)) return std::nullopt;
  record(proj_stage(which), side, group, stages_.projected, open);
  record(norm_stage(which), side, group, stages_.normed, open);
  record(rope_stage(which), side, group, stages_.roped, open);
  return open;
}

void FastVectors::record(qkcts_stage stage, const SideValues& side, std::int64_t group, const WordArray& words,
                         std::vector<ElementPlace>& open) {
  if (stage == QKCTS_STAGE_COUNT || !values_.exists(stage)) return;
  const auto width = static_cast<std::size_t>(side.head_dim);
  for (std::int64_t member = 0; member < side.heads_in_group(); ++member) {
    const std::size_t from = static_cast<std::size_t>(member) * width;
    if (width % padding != 0) {  // whole vectors are read: the last of a head would reach beyond the array
      head_.clear(width);
      std::copy_n(words.h.begin() + static_cast<std::ptrdiff_t>(from), width, head_.h.begin());
      std::copy_n(words.l.begin() + static_cast<std::ptrdiff_t>(from), width, head_.l.begin());
      std::copy_n(words.error.begin() + static_cast<std::ptrdiff_t>(from), width, head_.error.begin());
      recorder_.record(stage, side.row_of(group, member), 0, head_.words(), head_.error.data(), width, open);
    } else {
      recorder_.record(stage, side.row_of(group, member), 0, words.words(from), words.error.data() + from, width, open);
    }
  }
}

}  // namespace qkcts
