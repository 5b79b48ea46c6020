// SPDX-License-Identifier: Apache-2.0
// The machine of the tests that compute with the compiler's own binary32: correctly rounded functions, no freedom.
#pragma once

#include "conformance/machine_profile.hpp"

namespace qkcts {

inline Profile plain_profile() {
  Profile p;
  p.k_rsqrt = 1;
  p.k_sqrt = p.k_exp = p.k_tanh = p.k_log = p.k_div = p.k_pow = p.k_cos = 0.5;
  return p;
}

// The same, but subnormal results and operands may be taken for 0.
inline Profile flushing_profile() {
  Profile p = plain_profile();
  p.flush_to_zero = p.denormals_are_zero = true;
  return p;
}

}  // namespace qkcts
