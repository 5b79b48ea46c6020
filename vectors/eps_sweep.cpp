// SPDX-License-Identifier: Apache-2.0
#include "vectors/eps_sweep.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace qkcts {
namespace {

constexpr std::array<std::string_view, 4> placements = {"inside_root", "outside_root", "max_root", "max_inside"};
static_assert(placements[QKCTS_INSIDE_ROOT] == "inside_root" && placements[QKCTS_MAX_ROOT] == "max_root");
static_assert(placements[QKCTS_OUTSIDE_ROOT] == "outside_root" && placements[QKCTS_MAX_INSIDE] == "max_inside");

constexpr std::size_t most_steps = 700;  // from the smallest number of binary64 to the largest

double number(std::string_view text, std::string_view whole) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    throw InputError(fmt::format("epsilon \"{}\": \"{}\" is no finite number", whole, text));
  if (std::signbit(value)) throw InputError(fmt::format("epsilon \"{}\" must not be negative", whole));
  return value;
}

// The decimal number with another exponent, read as a decimal: 1e-7 is that of the contract, not 10 times 1e-8.
double with_exponent(double value, int steps) {
  char text[64] = {};
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific);
  const std::string digits(text, end);
  const std::size_t e = digits.find('e');
  const int exponent = std::atoi(digits.c_str() + e + 1);
  const std::string moved = fmt::format("{}e{}", digits.substr(0, e), exponent + steps);
  double result = 0;
  std::from_chars(moved.data(), moved.data() + moved.size(), result);
  return result;
}

bool has_norm(const Contract& contract) {
  return contract.terms.q_norm.applied != 0 || contract.terms.k_norm.applied != 0;
}

}  // namespace

std::vector<double> eps_values(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return {number(text, text)};
  const double first = number(text.substr(0, dots), text), last = number(text.substr(dots + 2), text);
  if (first == 0) throw InputError(fmt::format("epsilon \"{}\": a range goes by factors of 10, from above 0", text));
  if (last < first) throw InputError(fmt::format("epsilon \"{}\": the range is empty", text));
  std::vector<double> values;
  for (int step = 0; step < static_cast<int>(most_steps); ++step) {
    const double value = with_exponent(first, step);
    if (!(value > 0 && value <= last)) break;
    values.push_back(value);
  }
  return values;
}

std::vector<qkcts_root> eps_placements(std::string_view text) {
  std::vector<qkcts_root> roots;
  std::string names;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    if (text == "all" || text == placements[i]) roots.push_back(static_cast<qkcts_root>(i));
    names += fmt::format("{}, ", placements[i]);
  }
  if (roots.empty()) throw InputError(fmt::format("\"{}\" is no place of an epsilon; there are: {}all", text, names));
  return roots;
}

Contract with_epsilon(const Contract& contract, double eps) {
  Contract changed = contract;
  if (!has_norm(contract))
    throw InputError(fmt::format("contract {} has no norm, so it has no epsilon to change", contract.name));
  changed.name += "_eps_";
  for (const char c : fmt::format("{}", eps)) {  // shortest decimal: 1e-12 becomes 1em12, 0.5 becomes 0p5
    if (c == '-') changed.name += 'm';
    if (c == '.') changed.name += 'p';
    if ((c >= '0' && c <= '9') || c == 'e') changed.name += c;
  }
  changed.title += fmt::format(", epsilon {}", eps);
  for (qkcts_norm* norm : {&changed.terms.q_norm, &changed.terms.k_norm})
    if (norm->applied != 0) norm->eps = eps;
  if (std::string fault = contract_fault(changed.terms); !fault.empty())
    throw InputError(fmt::format("contract {} with epsilon {}: {}", contract.name, eps, fault));
  return changed;
}

Contract with_placement(const Contract& contract, qkcts_root root) {
  if (!has_norm(contract))
    throw InputError(fmt::format("contract {} has no norm, so it has no epsilon to place", contract.name));
  const std::string_view name = placements.at(static_cast<std::size_t>(root));
  Contract changed = contract;
  changed.name += fmt::format("_{}", name);
  changed.title += fmt::format(", epsilon {}", name);
  for (qkcts_norm* norm : {&changed.terms.q_norm, &changed.terms.k_norm})
    if (norm->applied != 0) norm->root = root;
  if (std::string fault = contract_fault(changed.terms); !fault.empty())
    throw InputError(fmt::format("contract {} with its epsilon {}: {}", contract.name, name, fault));
  return changed;
}

}  // namespace qkcts
