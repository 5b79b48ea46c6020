// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "harness/verdict.hpp"

namespace qkcts {

// An adapter that cannot be run at all: no such file, no symbol, another ABI, a faulty describe(). Exit code 4. If it
// could be run before, and a fresh worker finds that it no longer can, `verdict` is that of the case that needed it.
class AdapterError : public std::runtime_error {
 public:
  explicit AdapterError(const std::string& what, Verdict verdict = Verdict::error_crash)
      : std::runtime_error(what), verdict_(verdict) {}
  Verdict verdict() const { return verdict_; }

 private:
  Verdict verdict_;
};

}  // namespace qkcts
