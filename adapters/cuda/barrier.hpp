// SPDX-License-Identifier: Apache-2.0
// Every barrier of the kernels has a name, so that the executor can leave one out: a test shows that ThreadSanitizer
// notices it, and so that each is needed.
#pragma once

namespace qkcts::cuda {

enum class Barrier {
  none,
  sum_is_read,       // block_sum: the partial sums of the call before may be overwritten
  sum_is_written,    // block_sum: the partial sums of all warps are there
  row_is_written,    // projection: the normalised row is whole
  turn_begins,       // prologue: both lanes of a pair are written
  turn_ends,         // prologue: they may be read by others
  rows_are_set,      // attention: what is known of the rows of the tile
  tile_is_read,      // plain attention: the chunk before is no longer read
  tile_is_written,   // plain attention: a chunk of q and k is there
  weights_are_set,   // plain attention: weights and values of a block are there
  copies_are_there,  // tensor attention: the copies of all threads have arrived
  copies_are_read,   // tensor attention: the buffer may be overwritten
  count
};

constexpr const char* barrier_name(Barrier barrier) {
  constexpr const char* names[] = {
      "none",         "sum_is_read",  "sum_is_written",  "row_is_written",  "turn_begins",      "turn_ends",
      "rows_are_set", "tile_is_read", "tile_is_written", "weights_are_set", "copies_are_there", "copies_are_read"};
  return names[static_cast<int>(barrier)];
}

}  // namespace qkcts::cuda
