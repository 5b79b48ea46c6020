// SPDX-License-Identifier: Apache-2.0
// Rows of attention in double words: scores of every key, weights, sums and outputs, with their errors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/fast_tier_operand.hpp"
#include "reference/row_places.hpp"

namespace qkcts {

// What the softmax says of one row of at least two visible keys.
struct RowSoftmax {
  RowExtremes scores;    // places among the visible keys
  WordArray probs;       // one per visible key
  LineNumbers exponent;  // s - s_largest
  WordArray output;
  Word lse, entropy, p_max;
  double lse_error = 0, entropy_error = 0, p_max_error = 0;
};

class FastAttention {
 public:
  // `v` null: v is an input.
  FastAttention(const CaseValues& values, RowPlaces& rows, const FastOperands& q, const FastOperands& k,
                const FastOperands* v, const Kernels& kernels);

  // After `rows` hold others, and their vectors have been made.
  void begin_block() { block_begin_ = block_end_ = 0; }

  // Of all keys, and a padding beyond them, of a row that is held. Rows are best asked for in order.
  void set_scores(std::size_t row, WordArray& scores);
  // `biases` has one finite entry per key; it stands where the contract says.
  void set_capped(const WordArray& scores, const std::vector<double>& biases, WordArray& capped) const;
  // `seen` are the scores of the visible keys.
  void set_softmax(const RowPlace& place, WordView seen, RowSoftmax& result);

 private:
  struct Panel {  // 32 keys of one key head: entry of lane d of key i at d * 32 + i
    LineNumbers high, low;
  };
  void use_keys(std::int64_t b, std::int64_t kv_head);
  void use_values(std::int64_t b, std::int64_t kv_head);
  void use_block(std::size_t row);

  const CaseValues& values_;
  RowPlaces& rows_;
  const FastOperands &q_, &k_;
  const FastOperands* normed_v_;
  const Kernels& kernels_;
  std::size_t keys_, columns_;  // Lk; Dv as padded
  std::vector<Word> tau_;       // of every head, or one for all
  std::vector<double> tau_error_;
  CapOperands cap_;

  std::int64_t keys_of_ = -1;  // b * Hkv + kv_head
  std::vector<Panel> panels_;
  bool keys_have_low_ = false;
  WordArray key_scales_;  // with their relative errors
  LineNumbers key_norms_, key_deltas_;
  // Over the keys that some row sees: 32 columns after another, [columns_/32, Lk, 32], so that those of a run of keys
  // are neighbours; v_low_ empty: 0. Of every column the largest.
  LineNumbers v_, v_low_, v_largest_;
  double v_error_ = 0;  // of every entry of v_

  std::size_t block_begin_ = 0, block_end_ = 0;  // of the rows held: whose dot products are at hand
  std::vector<WordArray> dots_;
  std::vector<LineNumbers> anchors_;

  WordArray weights_, sums_, rest_, log_sum_;
  LineNumbers column_anchors_, guess_;
};

}  // namespace qkcts
