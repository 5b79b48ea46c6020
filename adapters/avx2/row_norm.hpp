// SPDX-License-Identifier: Apache-2.0
// The norm of one group of lanes: all heads of a token, one of them, or the row before a projection.
// Only for translation units built with AVX2 and FMA.
#pragma once

#include <cstdint>

#include <qkcts/contract.h>

#include "adapters/avx2/aligned_floats.hpp"
#include "adapters/avx2/strided_tensor.hpp"

namespace qkcts::avx2 {

// [heads, stride] binary32, each head with `dim` lanes and zeros behind them; stride is whole registers.
struct HeadLayout {
  std::int64_t heads, dim, stride;
  std::int64_t size() const { return heads * stride; }
};

// A gain or bias tensor as one value per lane: w, or 1 + w.
AlignedFloats expand(const StridedTensor& tensor, std::uint32_t axes, const HeadLayout& layout, std::uint32_t gain);

// In place, over all heads of the layout as one group. `factor` and `bias` are null or have its size.
void normalise_group(const qkcts_norm& norm, const HeadLayout& layout, const float* factor, const float* bias,
                     float* x);

}  // namespace qkcts::avx2
