// SPDX-License-Identifier: Apache-2.0
#include "harness/coordinates.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "conformance/tensor.hpp"
#include "harness/usage_error.hpp"

namespace qkcts {
namespace {

// One letter per axis of the stage.
std::string_view axis_letters(qkcts_stage stage) {
  switch (stage) {
    case QKCTS_STAGE_SCORES:
    case QKCTS_STAGE_CAPPED:
    case QKCTS_STAGE_MASKED:
    case QKCTS_STAGE_PROBS:
      return "bhtk";
    case QKCTS_STAGE_LSE:
      return "bht";
    default:
      return "bhtc";
  }
}

}  // namespace

std::vector<std::int64_t> index_of(qkcts_stage stage, const qkcts_shape& shape, ElementCoordinates place) {
  const std::vector<std::int64_t> extents = stage_shape(stage, shape);
  std::vector<std::int64_t> index(extents.size());
  std::int64_t rest = std::int64_t{place.row} * row_length(stage, shape) + place.column;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    index[axis] = rest % extents[axis];
    rest /= extents[axis];
  }
  return index;
}

std::string coordinate_text(qkcts_stage stage, const qkcts_shape& shape, ElementCoordinates place) {
  const std::vector<std::int64_t> index = index_of(stage, shape, place);
  const std::string_view letters = axis_letters(stage);
  std::string text;
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    text += fmt::format("{}{}{}", axis == 0 ? "" : " ", letters[axis], index[axis]);
  }
  return text;
}

std::string index_text(qkcts_stage stage, const qkcts_shape& shape, ElementCoordinates place) {
  return fmt::format("{}", fmt::join(index_of(stage, shape, place), ","));
}

ElementCoordinates place_from_text(qkcts_stage stage, const qkcts_shape& shape, std::string_view text) {
  const std::vector<std::int64_t> extents = stage_shape(stage, shape);
  const std::string wanted = fmt::format("'{}' is no element of {} {}: give {} comma-separated indices", text,
                                         stage_name(stage), shape_text(extents), extents.size());
  std::int64_t flat = 0;
  std::string outside;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    std::int64_t index = -1;
    const auto [next, error] = std::from_chars(at, end, index);
    if (error != std::errc{} || index < 0) throw UsageError(wanted);
    if (outside.empty() && index >= extents[axis])
      outside = fmt::format("'{}' lies outside of {} {}: index {} must lie in 0..{}", text, stage_name(stage),
                            shape_text(extents), axis + 1, extents[axis] - 1);
    if (outside.empty()) flat = flat * extents[axis] + index;
    at = next;
    const bool last = axis + 1 == extents.size();
    if (last != (at == end) || (!last && *at++ != ',')) throw UsageError(wanted);
  }
  if (!outside.empty()) throw UsageError(outside);
  const std::int64_t length = row_length(stage, shape);
  return {static_cast<std::uint32_t>(flat / length), static_cast<std::uint32_t>(flat % length)};
}

}  // namespace qkcts
