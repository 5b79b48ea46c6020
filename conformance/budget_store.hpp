// SPDX-License-Identifier: Apache-2.0
// From errors in the accumulator to stored budgets: storage rounding, resolution of the evidence, rounding to binary32,
// trust. The last step of every element.
#pragma once

#include <cstddef>

#include "conformance/budget.hpp"
#include "conformance/budget_arithmetic.hpp"

namespace qkcts {

struct StoreTerms {
  StorageRounding rounding;
  double resolution = 0;  // 2^-9, in ulp of binary64; 0 while the term is switched off
};

// `error` of `count` numbers z, infinite: domain. A budget that reaches `mistrusted_from` says nothing of the element;
// 0: always judged.
void store_budgets(const StoreTerms& terms, std::size_t count, const double* z, const double* error,
                   const double* mistrusted_from, float* delta, Trust* trust);

}  // namespace qkcts
