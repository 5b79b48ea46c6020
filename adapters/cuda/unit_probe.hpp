// SPDX-License-Identifier: Apache-2.0
// What the matrix unit of a device really does, found from its sums alone: K and F of the published models, how it
// rounds, by what zero products and subnormal factors are aligned, and whether it has the bits of the model everywhere
// else.
// The host executor is a device too, on which a test sees that every answer can come out.
#pragma once

#include <cstdint>
#include <string>

#include "adapters/cuda/device.hpp"
#include "adapters/cuda/executor/matrix_unit.hpp"

namespace qkcts::cuda {

struct UnitFindings {
  int products = 0;  // K: how many are added at once
  int fraction = 0;  // F: how many bits after the point of the largest addend are kept
  bool toward_zero = false;
  bool zeros_align = false;
  bool subnormals_as_stored = false;
  std::int64_t elements = 0, different = 0;  // sums compared with the model of this K and F; those with other bits
};

UnitFindings probe_unit(Device& device, NarrowFormat format);

// One JSON object on a line.
std::string unit_line(const Device& device, NarrowFormat format, const UnitFindings& findings);

}  // namespace qkcts::cuda
