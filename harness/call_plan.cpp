// SPDX-License-Identifier: Apache-2.0
#include "harness/call_plan.hpp"

#include <algorithm>
#include <array>

#include "harness/adapter_description.hpp"

namespace qkcts {
namespace {

constexpr std::array<std::string_view, 9> names = {"plain",          "layout bshd",        "layout padded",
                                                   "layout strided", "layout byte_offset", "output alone",
                                                   "entries alone",  "entries reversed",   "batch of 33"};
static_assert(names.size() == static_cast<std::size_t>(last_variant) + 1);

// Beyond 32, where kernels that choose a split by the size of the batch change their mind.
constexpr std::uint32_t large_batch = 33;
// Products that a call with the large batch may cost; larger cases go without. Measured on core with the scalar kernel,
// one core of a Xeon: so many take it 0.4 s at the rate of the median case, 3 s at that of the slowest (subnormal
// numbers). The largest case of core needs 0.78 of them.
constexpr double large_batch_work = 0x1p27;

bool takes_batch(const AdapterDescription& description, std::int64_t batch) {
  const auto limit = description.limits.find("batch");
  if (limit == description.limits.end()) return true;
  const ShapeLimit& l = limit->second;
  return batch >= l.min.value_or(batch) && batch <= l.max.value_or(batch) && batch % l.multiple_of.value_or(1) == 0;
}

// Of one entry.
double work(const qkcts_shape& s) {
  return static_cast<double>(s.q_heads) * static_cast<double>(s.q_len) * static_cast<double>(s.k_len) *
         static_cast<double>(s.head_dim + s.v_head_dim);
}

void plan_batches(std::vector<Call>& calls, const AdapterDescription& description, const qkcts_shape& shape) {
  const auto batch = static_cast<std::uint32_t>(shape.batch);
  if (batch > 1 && takes_batch(description, 1)) {
    for (std::uint32_t entry = 0; entry < batch; ++entry)
      calls.push_back({Variant::entries_alone, Placement::end_aligned, {entry}});
  }
  if (batch > 1) {
    Call reversed{Variant::entries_reversed, Placement::start_aligned};
    for (std::uint32_t entry = batch; entry-- > 0;) reversed.entries.push_back(entry);
    calls.push_back(std::move(reversed));
  }
  if (batch > large_batch / 2 || !takes_batch(description, large_batch)) return;
  if (work(shape) * large_batch > large_batch_work) return;
  Call many{Variant::batch_of_33, Placement::end_aligned};
  for (std::uint32_t place = 0; place < large_batch; ++place) many.entries.push_back(place % batch);
  calls.push_back(std::move(many));
}

}  // namespace

std::string_view variant_name(Variant variant) {
  return names[static_cast<std::size_t>(variant)];
}

std::optional<Variant> variant_named(std::string_view name) {
  const auto* const found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Variant>(found - names.begin());
}

TensorLayout layout_of(Variant variant) {
  switch (variant) {
    case Variant::bshd:
      return TensorLayout::bshd;
    case Variant::padded:
      return TensorLayout::padded;
    case Variant::strided:
      return TensorLayout::strided;
    case Variant::byte_offset:
      return TensorLayout::byte_offset;
    default:
      return TensorLayout::dense;
  }
}

bool changes_batch(Variant variant) {
  return variant >= Variant::entries_alone;
}

bool changes_strides(Variant variant) {
  return variant == Variant::bshd || variant == Variant::padded || variant == Variant::strided;
}

StageSet stages_of_call(const Call& call, StageSet asked) {
  return call.variant == Variant::output_alone ? bit(QKCTS_STAGE_OUTPUT) : asked;
}

std::vector<Call> plan_calls(const AdapterDescription& description, const Case& c, StageSet asked, int repeat,
                             Variants variants) {
  std::vector<Call> calls;
  for (int round = 0; round < repeat; ++round) {
    calls.push_back({Variant::plain, Placement::end_aligned});
    calls.push_back({Variant::plain, Placement::start_aligned});
  }
  if (variants == Variants::none) return calls;
  Placement placement = Placement::end_aligned;
  for (const Variant variant : {Variant::bshd, Variant::padded, Variant::strided, Variant::byte_offset}) {
    const std::vector<TensorLayout>& claimed = description.layouts;
    if (std::find(claimed.begin(), claimed.end(), layout_of(variant)) == claimed.end()) continue;
    calls.push_back({variant, placement});
    placement = placement == Placement::end_aligned ? Placement::start_aligned : Placement::end_aligned;
  }
  if ((asked & bit(QKCTS_STAGE_OUTPUT)) != 0 && asked != bit(QKCTS_STAGE_OUTPUT))
    calls.push_back({Variant::output_alone, Placement::end_aligned});
  plan_batches(calls, description, c.shape);
  return calls;
}

}  // namespace qkcts
