// SPDX-License-Identifier: Apache-2.0
#include "reference/refusal.hpp"

#include <fmt/format.h>

namespace qkcts {

std::string place_text(const CaseValues& values, const ElementPlace& place) {
  const bool statistics = place.stage == statistics_stage;
  const qkcts_stage stage = statistics ? QKCTS_STAGE_LSE : place.stage;
  const std::vector<std::int64_t> extents = stage_shape(stage, values.shape);
  std::string where = fmt::format("b{} h{} t{}", place.row / (extents[1] * extents[2]),
                                  place.row / extents[2] % extents[1], place.row % extents[2]);
  if (extents.size() == 4) where += fmt::format(" c{}", place.column);
  return fmt::format("{}[{}]", statistics ? "row statistics" : stage_name(stage), where);
}

void refuse(const CaseValues& values, const ElementPlace& place, long bits, const std::string& bounds) {
  throw UndecidedError(fmt::format("case {}: {}: rounding not proven with {} bits{}; use another seed or value",
                                   values.input.slug, place_text(values, place), bits, bounds));
}

}  // namespace qkcts
