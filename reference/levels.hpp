// SPDX-License-Identifier: Apache-2.0
// A case at every precision of the refinement loop; a level is made when it is first asked for. What belongs to q, k
// and v is apart from it: contracts may share that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "reference/level.hpp"

namespace qkcts {

template <template <unsigned> class T, class Sequence>
struct PerLevelOf;
template <template <unsigned> class T, std::size_t... L>
struct PerLevelOf<T, std::index_sequence<L...>> {
  using Pointers = std::tuple<std::unique_ptr<T<level_digits[L]>>...>;
};
// A pointer to T<Digits> for every level.
template <template <unsigned> class T>
using PerLevel = typename PerLevelOf<T, std::make_index_sequence<level_count>>::Pointers;

class VectorLevels {
 public:
  explicit VectorLevels(const CaseValues& values) : values_(values) {}

  template <std::size_t L>
  LevelVectors<level_digits[L]>& at() {
    auto& slot = std::get<L>(levels_);
    if (!slot) slot = std::make_unique<LevelVectors<level_digits[L]>>(values_);
    return *slot;
  }

  void forget() { levels_ = {}; }

 private:
  const CaseValues& values_;
  PerLevel<LevelVectors> levels_;
};

class Levels {
 public:
  // `count` of level_digits may be used. `values` say what is made of `vectors`, and both mean the same vectors.
  Levels(const CaseValues& values, RowPlaces& rows, VectorLevels& vectors, std::size_t count)
      : values_(values), rows_(rows), vectors_(vectors), count_(count) {}

  std::size_t count() const { return count_; }
  int highest_bits() const { return highest_bits_; }  // of all that were asked for

  template <std::size_t L>
  Level<level_digits[L]>& at() {
    auto& slot = std::get<L>(levels_);
    if (!slot) slot = std::make_unique<Level<level_digits[L]>>(values_, rows_, vectors_.at<L>());
    highest_bits_ = std::max(highest_bits_, static_cast<int>(precision_bits<level_digits[L]>()));
    return *slot;
  }

  // Drops what was made of values that have changed.
  void forget() {
    levels_ = {};
    vectors_.forget();
  }

  // Calls step.operator()<L>() for L = 0, 1, ... until it returns true; false if no level does.
  template <std::size_t L = 0, class Step>
  bool until(const Step& step) {
    if (step.template operator()<L>()) return true;
    if constexpr (L + 1 < level_count) return L + 1 < count_ && until<L + 1>(step);
    return false;
  }

 private:
  const CaseValues& values_;
  RowPlaces& rows_;
  VectorLevels& vectors_;
  std::size_t count_;
  int highest_bits_ = static_cast<int>(precision_bits<level_digits[0]>());
  PerLevel<Level> levels_;
};

}  // namespace qkcts
