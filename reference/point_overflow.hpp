// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/contract.hpp"

namespace qkcts {

// The values of a case leave the format of a rounding point: the case has no exact value (QK-ROUND-02). Other cases of
// the same contract may have one.
class PointOverflow : public InputError {
 public:
  using InputError::InputError;
};

}  // namespace qkcts
