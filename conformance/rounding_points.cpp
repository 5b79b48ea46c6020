// SPDX-License-Identifier: Apache-2.0
// Whether, where and how far a contract rounds (QK-ROUND).
#include <cstddef>
#include <cstring>
#include <iterator>

#include "conformance/contract.hpp"
#include "conformance/rounding_range.hpp"

namespace qkcts {

namespace {

template <class Holds>
bool any_point(const qkcts_rounding& rounding, const Holds& holds) {
  std::uint32_t points[sizeof rounding / sizeof(std::uint32_t)];
  std::memcpy(points, &rounding, sizeof rounding);
  const auto saturate = offsetof(qkcts_rounding, saturate) / sizeof(std::uint32_t);
  for (std::size_t i = 0; i < std::size(points); ++i)
    if (i != saturate && points[i] != 0 && holds(static_cast<Format>(points[i]))) return true;
  return false;
}

}  // namespace

bool has_rounding_points(const qkcts_rounding& rounding) {
  return any_point(rounding, [](Format) { return true; });
}

bool rounding_ends_before(const qkcts_rounding& rounding, Format format) {
  const double largest = parameters(format).largest;
  // bfloat16 and binary32 end at the same power of two.
  return rounding.saturate == 0 &&
         any_point(rounding, [&](Format point) { return 2 * parameters(point).largest < largest; });
}

std::uint32_t stage_point(const qkcts_contract& terms, qkcts_stage stage) {
  const qkcts_rounding& rounding = terms.rounding;
  switch (stage) {
    case QKCTS_STAGE_Q_PROJ:
      return rounding.q.projection;
    case QKCTS_STAGE_K_PROJ:
      return rounding.k.projection;
    case QKCTS_STAGE_Q_NORM:
      return rounding.q.norm;
    case QKCTS_STAGE_K_NORM:
      return rounding.k.norm;
    case QKCTS_STAGE_V_NORM:
      return rounding.v.norm;
    case QKCTS_STAGE_Q_ROPE:
      return rounding.q.rope;
    case QKCTS_STAGE_K_ROPE:
      return rounding.k.rope;
    case QKCTS_STAGE_SCORES:
      return rounding.scores;
    case QKCTS_STAGE_CAPPED:
      return rounding.capped;
    case QKCTS_STAGE_PROBS:
      return rounding.probs;
    case QKCTS_STAGE_OUTPUT:
      return rounding.output;
    default:
      return 0;
  }
}

}  // namespace qkcts
