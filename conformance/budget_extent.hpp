// SPDX-License-Identifier: Apache-2.0
// What the values of a row of attention are apart from their weights: their sum of sizes, their range.
#pragma once

#include <cstddef>
#include <vector>

namespace qkcts {

// Of every element.
struct ExtentNumbers {
  const double *total, *worst_read, *lowest, *highest;
};

// Per element of the output, over the keys that were added, in the order in which they were. Neighbouring rows under a
// causal mask see the same keys and one more: the sums go on where those of the row before ended, with the same bits as
// if they had begun anew.
class ValueExtent {
 public:
  explicit ValueExtent(std::size_t length);

  std::size_t keys() const { return keys_; }
  void add(const double* v, const double* error);  // `error` of each value when it is read; null: none

  double total(std::size_t d) const { return total_[d]; }            // sum |v| + Dv
  double worst_read(std::size_t d) const { return worst_read_[d]; }  // max Dv
  double lowest(std::size_t d) const { return lowest_[d]; }
  double highest(std::size_t d) const { return highest_[d]; }
  ExtentNumbers numbers() const { return {total_.data(), worst_read_.data(), lowest_.data(), highest_.data()}; }

 private:
  std::size_t keys_ = 0;
  std::vector<double> total_, worst_read_, lowest_, highest_;
};

}  // namespace qkcts
