// SPDX-License-Identifier: Apache-2.0
#include "reference/row_places.hpp"

namespace qkcts {

std::vector<RowPlace> all_rows(const Case& c) {
  const Visibility visibility(c);
  std::vector<RowPlace> rows;
  for (std::int64_t b = 0; b < c.shape.batch; ++b)
    for (std::int64_t h = 0; h < c.shape.q_heads; ++h)
      for (std::int64_t qq = 0; qq < c.shape.q_len; ++qq) {
        RowPlace& row = rows.emplace_back(RowPlace{b, h, qq, {}});
        for (std::int64_t key = 0; key < c.shape.k_len; ++key)
          if (visibility.visible(b, h, qq, key)) row.visible.push_back(static_cast<std::uint32_t>(key));
      }
  return rows;
}

}  // namespace qkcts
