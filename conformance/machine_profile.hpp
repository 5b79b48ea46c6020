// SPDX-License-Identifier: Apache-2.0
// A machine model as data: what a conforming implementation's arithmetic may do. docs/budgets.md, section "Profiles".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/format.hpp"

namespace qkcts {

struct Profile {
  std::string name;
  std::string title;
  std::vector<std::string> sources;       // hardware or library that each value admits
  Format storage = Format::binary32;      // the case format that it judges
  Format accumulator = Format::binary32;  // u = 2^-p and exponent range of the arithmetic
  bool flush_to_zero = false;             // results below 2^emin may become 0: lambda = 2^emin, else 2^(emin - p)
  bool denormals_are_zero = false;        // subnormal operands may be read as 0
  bool truncating = false;                // u := 2u
  double product_growth = 1;  // a dot of n products grows by (1 + product_growth u)^n - 1; 2.5: matrix units too
                              // below 1: matrix units only, by the product of a group of four
  int chain = 0;              // h: longest declared chain of additions; 0: any order
  int lanes = 0;              // L: sums run in L lanes that are joined by a tree; 0: not declared
  int online_block = 1;       // smallest key block after which the running maximum may rise
  double shift_slack = 0;     // T_decl: how far the softmax shift may stay from the row maximum
  double k_rsqrt = 2, k_sqrt = 1, k_exp = 2, k_tanh = 4, k_log = 2, k_div = 1;  // ulp; 0.5: correctly rounded
  double k_pow = 8, k_cos = 2;                // of powers, and of sine and cosine, where angles are computed
  double b_cos = 0;                           // absolute error of sine and cosine, beside k_cos
  double a_tanh = 0, b_tanh = 0;              // relative error of tanh where k_tanh cannot say it, and an absolute one
  double b_log = 0;                           // absolute error of the logarithm of a row sum, beside k_log
  std::optional<Format> probability_storage;  // P before the product with v
  // Roundoffs of the operands of both products as a matrix unit reads them, and what a subnormal one may lose; 0: none.
  double u_q = 0, u_k = 0, u_p = 0, u_v = 0;
  double operand_underflow = 0;
};

// Shipped profiles (conformance/profiles/*.json). All throw InputError.
std::vector<std::string> shipped_profiles();
Profile shipped_profile(std::string_view name);
std::string_view shipped_profile_text(std::string_view name);  // its JSON
Profile profile_from_json(std::string_view text, std::string_view origin);
// One line by which two profiles are compared: names, titles, values and sources.
std::string canonical_profile(std::string_view text, std::string_view origin);

// Shipped profiles that judge cases stored in `storage`, in a fixed order; the first is the default.
std::vector<Profile> profiles_for(Format storage);

}  // namespace qkcts
