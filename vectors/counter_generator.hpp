// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every machine: a counter-based integer generator, and conversions that use
// integers and correctly rounded operations only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace qkcts {

// Philox4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3. SC 2011).
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// Element i of stream s under a seed is a pure function of (seed, s, i): no order, no state.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint32_t stream) : seed_(seed), stream_(stream) {}

  std::uint64_t bits(std::uint64_t index) const;                        // 64 random bits
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;  // 0 .. bound-1; bound >= 1
  double uniform(std::uint64_t index) const;                            // multiple of 2^-53 in [0, 1)
  double uniform(std::uint64_t index, double low, double high) const;   // low + (high - low) * uniform
  double sign(std::uint64_t index) const;                               // -1 or 1
  // Sum of 12 uniform numbers less 6: mean 0, variance 1 - 2^-64, kurtosis 2.9, |x| <= 6, a multiple of 2^-32.
  double gaussian(std::uint64_t index) const;
  // A uniformly drawn order of 0 .. count-1.
  std::vector<std::uint32_t> permutation(std::uint32_t count) const;

 private:
  std::array<std::uint32_t, 4> words(std::uint64_t index, std::uint32_t lane) const;

  std::uint64_t seed_;
  std::uint32_t stream_;
};

}  // namespace qkcts
