// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfenv>

namespace qkcts {

// Rounding mode, FTZ, DAZ and exception masks, at its end again as they were: what a kernel leaves behind must reach
// neither the judge nor the next case.
class FloatingPointEnvironment {
 public:
  FloatingPointEnvironment() { std::fegetenv(&saved_); }
  ~FloatingPointEnvironment() { std::fesetenv(&saved_); }
  FloatingPointEnvironment(const FloatingPointEnvironment&) = delete;
  FloatingPointEnvironment& operator=(const FloatingPointEnvironment&) = delete;

 private:
  std::fenv_t saved_{};
};

}  // namespace qkcts
