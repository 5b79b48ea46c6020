// SPDX-License-Identifier: Apache-2.0
// Where the element of a gain or bias stands that acts on a lane (QK-GAIN-02).
#pragma once

#include <cstddef>
#include <cstdint>

#include <qkcts/contract.h>

namespace qkcts {

// Of `lanes` in a head. There is such a parameter: axes are not `none`.
constexpr std::size_t parameter_place(std::uint32_t axes, std::int64_t head, std::int64_t lane, std::int64_t lanes) {
  switch (axes) {
    case QKCTS_AXES_SCALAR:
      return 0;
    case QKCTS_AXES_HEAD_DIM:
      return static_cast<std::size_t>(lane);
    case QKCTS_AXES_HEAD:
      return static_cast<std::size_t>(head);
    default:  // [H, D], and the same memory under its other name, full_width
      return static_cast<std::size_t>(head * lanes + lane);
  }
}

}  // namespace qkcts
