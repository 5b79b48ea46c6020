// SPDX-License-Identifier: Apache-2.0
#include "vectors/counter_generator.hpp"

#include <utility>

namespace qkcts {
namespace {

constexpr std::uint32_t multiplier_0 = 0xD2511F53U;
constexpr std::uint32_t multiplier_1 = 0xCD9E8D57U;
constexpr std::uint32_t weyl_0 = 0x9E3779B9U;  // golden ratio
constexpr std::uint32_t weyl_1 = 0xBB67AE85U;  // sqrt(3) - 1
constexpr int rounds = 10;

// Which of the independent draws of one index is meant: the fourth word of the counter.
enum Lane : std::uint32_t { integer_lane = 0, gaussian_lane = 1 };  // gaussian uses 1, 2, 3

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t product_0 = std::uint64_t{multiplier_0} * counter[0];
    const std::uint64_t product_1 = std::uint64_t{multiplier_1} * counter[2];
    counter = {
        static_cast<std::uint32_t>(product_1 >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product_1),
        static_cast<std::uint32_t>(product_0 >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product_0)};
    key[0] += weyl_0;
    key[1] += weyl_1;
  }
  return counter;
}

std::array<std::uint32_t, 4> RandomStream::words(std::uint64_t index, std::uint32_t lane) const {
  return philox4x32({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32U), stream_, lane},
                    {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32U)});
}

std::uint64_t RandomStream::bits(std::uint64_t index) const {
  const std::array<std::uint32_t, 4> w = words(index, integer_lane);
  return (std::uint64_t{w[1]} << 32U) | w[0];
}

std::uint64_t RandomStream::below(std::uint64_t index, std::uint64_t bound) const {
  // High 64 bits of a 128-bit product, in halves of 32 bits; the bias of bound/2^64 is of no account.
  const std::uint64_t x = bits(index);
  const std::uint64_t low = (x & 0xFFFFFFFFU) * (bound & 0xFFFFFFFFU);
  const std::uint64_t mid_1 = (x >> 32U) * (bound & 0xFFFFFFFFU) + (low >> 32U);
  const std::uint64_t mid_2 = (x & 0xFFFFFFFFU) * (bound >> 32U) + (mid_1 & 0xFFFFFFFFU);
  return (x >> 32U) * (bound >> 32U) + (mid_1 >> 32U) + (mid_2 >> 32U);
}

double RandomStream::uniform(std::uint64_t index) const {
  return static_cast<double>(bits(index) >> 11U) * 0x1p-53;
}

double RandomStream::uniform(std::uint64_t index, double low, double high) const {
  return low + (high - low) * uniform(index);
}

double RandomStream::sign(std::uint64_t index) const {
  return (bits(index) & 1U) != 0 ? 1.0 : -1.0;
}

double RandomStream::gaussian(std::uint64_t index) const {
  std::int64_t sum = 0;
  for (std::uint32_t lane = gaussian_lane; lane < gaussian_lane + 3; ++lane)
    for (const std::uint32_t word : words(index, lane)) sum += word;
  constexpr std::int64_t mean = 6 * std::int64_t{0xFFFFFFFF};
  return static_cast<double>(sum - mean) * 0x1p-32;  // at most 36 bits: exact
}

std::vector<std::uint32_t> RandomStream::permutation(std::uint32_t count) const {
  std::vector<std::uint32_t> order(count);
  for (std::uint32_t i = 0; i < count; ++i) order[i] = i;
  for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[below(i, i)]);
  return order;
}

}  // namespace qkcts
