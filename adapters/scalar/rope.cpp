// SPDX-License-Identifier: Apache-2.0
#include "adapters/scalar/rope.hpp"

namespace qkcts::scalar {

std::int64_t rotated_lanes(const qkcts_rope& rope, std::int64_t head_dim) {
  return rope.rotated == 0 ? head_dim : static_cast<std::int64_t>(rope.rotated);
}

template <class Real>
void rotate(const qkcts_rope& rope, const qkcts_rotation& rotation, const Turn<Real>& turn,
            const TurnRounding<Real>& rounded, std::span<Real> head) {
  const std::size_t pairs = turn.cosine.size();
  const std::span<Real> lanes = head.subspan(rope.span == QKCTS_SPAN_LAST ? head.size() - 2 * pairs : 0, 2 * pairs);
  const std::vector<Real> before(lanes.begin(), lanes.end());
  const bool interleaved = rope.pairing == QKCTS_INTERLEAVED;
  const bool kept = interleaved && rotation.layout == QKCTS_LAYOUT_KEPT;
  for (std::size_t i = 0; i < pairs; ++i) {
    const Real a = before[interleaved ? 2 * i : i];
    const Real b = before[interleaved ? 2 * i + 1 : i + pairs];
    const Real cosine = turn.cosine[i];
    const Real sine = rotation.sense == QKCTS_SENSE_NEGATIVE ? -turn.sine[i] : turn.sine[i];
    lanes[kept ? 2 * i : i] = rounded.sum(rounded.product(a * cosine) - rounded.product(b * sine));
    lanes[kept ? 2 * i + 1 : i + pairs] = rounded.sum(rounded.product(b * cosine) + rounded.product(a * sine));
  }
}

template void rotate(const qkcts_rope&, const qkcts_rotation&, const Turn<float>&, const TurnRounding<float>&,
                     std::span<float>);
template void rotate(const qkcts_rope&, const qkcts_rotation&, const Turn<double>&, const TurnRounding<double>&,
                     std::span<double>);

}  // namespace qkcts::scalar
