// SPDX-License-Identifier: Apache-2.0
// Shared memory of the kernels, as docs/cuda.md states it. (Registers: resources_test.cmake.)
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "adapters/cuda/plain_attention.hpp"
#include "adapters/cuda/tensor_attention.hpp"

namespace qkcts::cuda {
namespace {

struct Tile {
  std::string kernel;
  std::int64_t bytes;
};

TEST(SharedMemory, IsWhatTheDocumentSays) {
  std::ifstream file(QKCTS_CUDA_DOCUMENT);
  std::stringstream document;
  document << file.rdbuf();
  const Tile tiles[] = {
      {"plain binary32", static_cast<std::int64_t>(sizeof(PlainTile<float>))},
      {"plain binary64", static_cast<std::int64_t>(sizeof(PlainTile<double>))},
      {"tensor, 1 part, D = Dv = 64", tensor_tile_bytes(1, 64, 64)},
      {"tensor, 1 part, D = Dv = 128", tensor_tile_bytes(1, 128, 128)},
      {"tensor, 3 parts, D = Dv = 64", tensor_tile_bytes(3, 64, 64)},
      {"tensor, 3 parts, D = Dv = 128", tensor_tile_bytes(3, 128, 128)},
  };
  for (const Tile& tile : tiles) {
    const std::string row = "| " + tile.kernel + " | " + std::to_string(tile.bytes) + " |";
    EXPECT_NE(document.str().find(row), std::string::npos) << row;
  }
}

TEST(SharedMemory, FitsWhereItHasTo) {
  constexpr std::int64_t without_asking = 48 * 1024, of_sm_80 = 163 * 1024;
  EXPECT_LE(static_cast<std::int64_t>(sizeof(PlainTile<float>)), without_asking);
  EXPECT_LE(static_cast<std::int64_t>(sizeof(PlainTile<double>)), without_asking);
  EXPECT_LE(tensor_tile_bytes(split_parts, widest_operand, widest_operand), of_sm_80);
}

}  // namespace
}  // namespace qkcts::cuda
