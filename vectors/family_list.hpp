// SPDX-License-Identifier: Apache-2.0
// The families, by the file that holds them. input_family.cpp joins the lists.
#pragma once

#include <span>

#include "vectors/input_family.hpp"

namespace qkcts {

std::span<const InputFamily> ordinary_families();    // rows as models make them, and their order in position and length
std::span<const InputFamily> ladder_families();      // sizes through which epsilon becomes invisible
std::span<const InputFamily> norm_families();        // what the norm and its epsilon decide
std::span<const InputFamily> range_families();       // ends of the exponent range
std::span<const InputFamily> score_families();       // what cap and softmax decide
std::span<const InputFamily> mask_families();        // what hidden keys decide
std::span<const InputFamily> logit_families();       // what is added to the scores: sinks, slopes
std::span<const InputFamily> position_families();    // what positions decide without tables
std::span<const InputFamily> clamp_families();       // what clamps decide
std::span<const InputFamily> hidden_families();      // what stands where nobody looks
std::span<const InputFamily> special_families();     // NaN and infinities, given or made
std::span<const InputFamily> projection_families();  // what a projection decides
std::span<const InputFamily> point_families();       // what declared rounding decides
std::span<const InputFamily> size_families();        // scores of extreme size
std::span<const InputFamily> channel_families();     // lanes and gains of extreme size
std::span<const InputFamily> weight_families();      // how weights are spread over the keys

}  // namespace qkcts
