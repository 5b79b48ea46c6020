// SPDX-License-Identifier: Apache-2.0
// Ascending keys as runs of neighbours: most masks show one run of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace qkcts {

// Calls use(first, key, count) for every run: places first ... first + count - 1 of the list hold key, key + 1, ...
template <class Use>
void for_each_run(const std::vector<std::int64_t>& keys, const Use& use) {
  if (!keys.empty() && keys.back() - keys.front() + 1 == static_cast<std::int64_t>(keys.size())) {
    use(std::size_t{0}, keys.front(), keys.size());
    return;
  }
  for (std::size_t first = 0; first < keys.size();) {
    std::size_t end = first + 1;
    while (end < keys.size() && keys[end] == keys[end - 1] + 1) ++end;
    use(first, keys[first], end - first);
    first = end;
  }
}

}  // namespace qkcts
