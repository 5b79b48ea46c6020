// SPDX-License-Identifier: Apache-2.0
// The rows of attention of a case, with the keys that each of them sees; of a block of rows at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "conformance/visible_keys.hpp"
#include "reference/case_values.hpp"

namespace qkcts {

class RowPlaces {
 public:
  // `c` must outlive the object.
  explicit RowPlaces(const Case& c);

  std::size_t count() const { return index_.size(); }  // of the rows of [B,Hq,Lq]

  // From here on these rows are held, ascending, and no others.
  void hold(std::span<const std::uint32_t> rows);
  const std::vector<std::uint32_t>& held() const { return held_; }
  std::size_t index(std::size_t row) const { return static_cast<std::size_t>(index_[row]); }  // in held()
  const RowPlace& operator[](std::size_t row) const { return places_[index(row)]; }           // of a row that is held

  RowPlace without_keys(std::size_t row) const;  // of any row

  // Keys that some query which reads this key/value head sees, held or not.
  const std::vector<bool>& seen(std::int64_t b, std::int64_t kv_head);

 private:
  const Case& case_;
  Visibility visibility_;
  std::vector<std::int32_t> index_;  // of every row; -1: not held
  std::vector<std::uint32_t> held_;
  std::vector<RowPlace> places_;
  std::map<std::int64_t, std::vector<bool>> seen_;  // of b * Hkv + kv_head
  VisibleKeys visible_keys_;
};

// 0, 1, ..., all rows of [B,Hq,Lq].
std::vector<std::uint32_t> all_attention_rows(const qkcts_shape& shape);

}  // namespace qkcts
