// SPDX-License-Identifier: Apache-2.0
#include "adapters/scalar/rope.hpp"

namespace qkcts::scalar {

std::int64_t rotated_lanes(const qkcts_rope& rope, std::int64_t head_dim) {
  return rope.rotated == 0 ? head_dim : static_cast<std::int64_t>(rope.rotated);
}

template <class Real>
void rotate(const qkcts_rope& rope, std::span<const Real> cosine, std::span<const Real> sine, std::span<Real> head) {
  const std::size_t pairs = cosine.size();
  const std::size_t first = rope.span == QKCTS_SPAN_LAST ? head.size() - 2 * pairs : 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    const bool interleaved = rope.pairing == QKCTS_INTERLEAVED;
    Real& a = head[first + (interleaved ? 2 * i : i)];
    Real& b = head[first + (interleaved ? 2 * i + 1 : i + pairs)];
    const Real turned_a = a * cosine[i] - b * sine[i];
    const Real turned_b = b * cosine[i] + a * sine[i];
    a = turned_a;
    b = turned_b;
  }
}

template void rotate(const qkcts_rope&, std::span<const float>, std::span<const float>, std::span<float>);
template void rotate(const qkcts_rope&, std::span<const double>, std::span<const double>, std::span<double>);

}  // namespace qkcts::scalar
