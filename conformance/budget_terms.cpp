// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_terms.hpp"

#include <array>

namespace qkcts {
namespace {

struct TermText {
  std::string_view id;
  std::string_view title;
};

constexpr auto term_count = static_cast<std::size_t>(BudgetTerm::count_);

constexpr std::array<TermText, term_count> term_texts = {{
    {"I1", "inputs read as zero when subnormal, or converted to the accumulator format"},
    {"W1", "growth of the product with the matrix of a projection"},
    {"W2", "addition of the projection's bias"},
    {"W3", "underflow in the projection"},
    {"N1", "sum of squares of the norm, and its division by n"},
    {"N2", "mean and centring"},
    {"N3", "epsilon: its conversion and its addition"},
    {"N4", "root and quotient of the norm"},
    {"N5", "product with the gain"},
    {"N6", "addition of the norm's bias"},
    {"N7", "underflow in the norm"},
    {"N8", "product with a constant factor after the norm"},
    {"N9", "constants of the clamps"},
    {"R1", "products and sum of the rotation"},
    {"R2", "underflow in the rotation"},
    {"R3", "computed angles: frequency, and its product with the position"},
    {"R4", "sine and cosine of computed angles, and their factor"},
    {"M1", "operands q, k and v as a matrix unit reads them"},
    {"M2", "products of subnormal factors, which a matrix unit aligns as if they were larger"},
    {"S1", "growth of the dot product of q and k"},
    {"S2", "the scale: its constant, its product, wherever it is applied"},
    {"S3", "underflow in the dot product and the scale"},
    {"S4", "exponential of a learned logarithm of the scale"},
    {"S5", "temperature by the position of the query"},
    {"C1", "quotient by the soft cap"},
    {"C2", "tanh of the soft cap"},
    {"C3", "product with the soft cap"},
    {"C4", "addition of the bias to the score"},
    {"C5", "underflow in soft cap and bias"},
    {"C6", "linear bias: product of slope and distance"},
    {"P1", "formation of the exponents of the softmax"},
    {"P2", "exponentials and their rescaling"},
    {"P3", "growth of the row sum"},
    {"P4", "quotient that makes a probability"},
    {"P5", "storage of weights before the product with v"},
    {"P6", "underflow of weights"},
    {"P7", "merge of parts of a row through their log-sum-exp"},
    {"P8", "a sink's logit beside scores that are scaled for base 2"},
    {"L1", "logarithm of the row sum and its addition to the shift"},
    {"L2", "conversion of the log-sum-exp to another base"},
    {"O1", "growth of the product with v"},
    {"O2", "quotient that normalises the output"},
    {"O3", "underflow in the product with v"},
    {"O7", "weights of the product with v that are formed once more after the row sum"},
    {"O5", "errors of values that a norm has made"},
    {"O4", "factor of a sink that scales the output"},
    {"Q1", "declared rounding: numbers that may go to another neighbour"},
    {"Q2", "declared rounding of the root of a norm and of its reciprocal"},
    {"Q3", "declared rounding of probabilities, in the output"},
    {"Q4", "declared rounding: numbers that are flushed, or read back by a narrower accumulator"},
    {"F1", "storage rounding of the observed stage"},
    {"F2", "resolution to which the exact value is recorded"},
}};

}  // namespace

std::vector<BudgetTerm> budget_terms() {
  std::vector<BudgetTerm> terms;
  terms.reserve(term_count);
  for (std::size_t i = 0; i < term_count; ++i) {
    terms.push_back(static_cast<BudgetTerm>(i));
  }
  return terms;
}

std::string_view budget_term_id(BudgetTerm term) {
  return term_texts.at(static_cast<std::size_t>(term)).id;
}

std::string_view budget_term_title(BudgetTerm term) {
  return term_texts.at(static_cast<std::size_t>(term)).title;
}

}  // namespace qkcts
