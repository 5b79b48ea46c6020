// SPDX-License-Identifier: Apache-2.0
// A case at every precision of the refinement loop; a level is made when it is first asked for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "reference/level.hpp"

namespace qkcts {

class Levels {
 public:
  // `count` of level_digits may be used.
  Levels(const CaseValues& values, const std::vector<RowPlace>& rows, std::size_t count)
      : values_(values), rows_(rows), count_(count) {}

  std::size_t count() const { return count_; }
  int highest_bits() const { return highest_bits_; }  // of all that were asked for

  template <std::size_t L>
  Level<level_digits[L]>& at() {
    auto& slot = std::get<L>(levels_);
    if (!slot) slot = std::make_unique<Level<level_digits[L]>>(values_, rows_);
    highest_bits_ = std::max(highest_bits_, static_cast<int>(precision_bits<level_digits[L]>()));
    return *slot;
  }

  // Drops what was made of values that have changed.
  void forget() { levels_ = {}; }

  // Calls step.operator()<L>() for L = 0, 1, ... until it returns true; false if no level does.
  template <std::size_t L = 0, class Step>
  bool until(const Step& step) {
    if (step.template operator()<L>()) return true;
    if constexpr (L + 1 < level_count) return L + 1 < count_ && until<L + 1>(step);
    return false;
  }

 private:
  template <class Sequence>
  struct PerLevel;
  template <std::size_t... L>
  struct PerLevel<std::index_sequence<L...>> {
    using Pointers = std::tuple<std::unique_ptr<Level<level_digits[L]>>...>;
  };

  const CaseValues& values_;
  const std::vector<RowPlace>& rows_;
  std::size_t count_;
  int highest_bits_ = static_cast<int>(precision_bits<level_digits[0]>());
  typename PerLevel<std::make_index_sequence<level_count>>::Pointers levels_;
};

}  // namespace qkcts
