// SPDX-License-Identifier: Apache-2.0
// The entry that libFuzzer calls; QKCTS_FUZZ_TARGET is the name of one target.
#include <cstddef>
#include <cstdint>

#include "vectors/fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const qkcts::fuzz::Target& target = qkcts::fuzz::target(QKCTS_FUZZ_TARGET);
  target.refusal({reinterpret_cast<const char*>(data), size});
  return 0;
}
