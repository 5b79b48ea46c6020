// SPDX-License-Identifier: Apache-2.0
// Figures, names and places as they stand in run.json, in both directions. Figures that are not finite are null.
#pragma once

#include <cstdint>
#include <optional>

#include "conformance/format.hpp"
#include "harness/coordinates.hpp"
#include "harness/json_at.hpp"
#include "harness/verdict.hpp"

namespace qkcts {

Json figure_json(double value);
Json shape_json(const qkcts_shape& shape);

// Null: infinity; nothing that is measured is NaN.
double figure_from(const JsonAt& at);
qkcts_shape shape_from(const JsonAt& at);
Format format_from(const JsonAt& at);
qkcts_stage stage_from(const JsonAt& at);
Verdict verdict_from(const JsonAt& at);
// "0x3f800000"
std::uint64_t bits_from(const JsonAt& at, Format format);
// Refuses an index that lies outside of the stage.
ElementCoordinates place_from(const JsonAt& at, qkcts_stage stage, const qkcts_shape& shape);

}  // namespace qkcts
