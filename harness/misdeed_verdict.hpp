// SPDX-License-Identifier: Apache-2.0
// What a misdeed of a test adapter earns: the parameter of the tests of libraries and of commands.
#pragma once

#include <ostream>

#include "harness/verdict.hpp"

namespace qkcts {

struct MisdeedVerdict {
  const char* fault;
  Verdict verdict;
  const char* detail;  // part of it
};

inline void PrintTo(const MisdeedVerdict& misdeed, std::ostream* os) {
  *os << misdeed.fault;
}

}  // namespace qkcts
