// SPDX-License-Identifier: Apache-2.0
#include "vectors/coincidence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

namespace qkcts {
namespace {

constexpr std::array<std::string_view, 8> names = {"lengths", "heads", "widths", "one_key",
                                                   "eps",     "scale", "gains",  "positions"};

// Of the contract, not of the shape: another contract of the plan makes up for it.
bool of_contract(std::string_view name) {
  return name == "eps" || name == "scale";
}

bool equal_epsilons(const qkcts_contract& terms) {
  return terms.q_norm.applied != 0 && terms.k_norm.applied != 0 && terms.q_norm.eps == terms.k_norm.eps;
}

// A scale that is given as a number and is that of the head size all the same.
bool accidental_scale(const qkcts_contract& terms, const qkcts_shape& shape) {
  const double usual = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  const double given = terms.score.scale_form == QKCTS_SCALE_CONSTANT          ? terms.score.scale_value
                       : terms.score.scale_form == QKCTS_SCALE_INV_SQRT_SCALAR ? 1 / std::sqrt(terms.score.scale_value)
                                                                               : 0;
  return std::abs(given - usual) <= 0x1p-40 * usual;
}

bool one_number(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [&](double x) { return x == values.front(); });
}

// Which heads of a tensor [H, ...] are copies of the first.
bool equal_heads(const std::vector<double>& values, std::int64_t heads) {
  const auto length = static_cast<std::ptrdiff_t>(values.size()) / heads;
  for (std::int64_t h = 1; h < heads; ++h)
    if (!std::equal(values.begin(), values.begin() + length, values.begin() + h * length)) return false;
  return heads > 1;
}

std::string gain_fault(const Case& c, Input input, const qkcts_norm& norm, std::int64_t heads) {
  if (!c.inputs.has(input)) return {};
  const std::vector<double> gain = c.inputs.at(input).values();
  if (gain.size() > 1 && one_number(gain)) return fmt::format("{} is the same in every entry", input_name(input));
  const bool per_head = norm.gain_axes == QKCTS_AXES_HEAD_HEAD_DIM || norm.gain_axes == QKCTS_AXES_HEAD;
  if (per_head && equal_heads(gain, heads)) return fmt::format("{} is the same in every head", input_name(input));
  return {};
}

}  // namespace

std::vector<std::string_view> coincidence_names() {
  return {names.begin(), names.end()};
}

std::vector<Coincidence> coincidences(const PlannedCase& planned) {
  const qkcts_shape& s = planned.shape;
  std::vector<Coincidence> found;
  if (s.q_len == s.k_len)
    found.push_back({"lengths", fmt::format("Lq = Lk = {}: axes and the corner of a causal mask", s.q_len)});
  if (s.kv_heads == s.q_heads)
    found.push_back({"heads", fmt::format("Hq = Hkv = {}: which key head a query head reads", s.q_heads)});
  if (s.kv_heads == 1 && s.q_heads > 1) found.push_back({"heads", "Hkv = 1: which key head a query head reads"});
  if (s.head_dim == s.v_head_dim)
    found.push_back({"widths", fmt::format("D = Dv = {}: whose width is meant", s.head_dim)});
  if (s.k_len == 1) found.push_back({"one_key", "Lk = 1: the weight is 1 whatever the score"});
  if (equal_epsilons(planned.contract.terms))
    found.push_back({"eps", fmt::format("q and k have the epsilon {}", planned.contract.terms.q_norm.eps)});
  if (accidental_scale(planned.contract.terms, s))
    found.push_back({"scale", fmt::format("the scale of the contract is 1/sqrt({})", s.head_dim)});
  return found;
}

std::vector<Coincidence> coincidences(const Case& c) {
  const qkcts_contract& terms = c.contract.terms;
  std::vector<Coincidence> found;
  std::string fault = gain_fault(c, Input::q_gain, terms.q_norm, c.shape.q_heads);
  if (fault.empty()) fault = gain_fault(c, Input::k_gain, terms.k_norm, c.shape.kv_heads);
  if (fault.empty() && c.inputs.has(Input::q_gain) && c.inputs.has(Input::k_gain) &&
      c.inputs.at(Input::q_gain).values() == c.inputs.at(Input::k_gain).values())
    fault = "q_gain and k_gain are equal";
  if (!fault.empty()) found.push_back({"gains", fault});
  for (const Input input : {Input::q_position_ids, Input::k_position_ids}) {
    if (!c.inputs.has(input)) continue;
    const std::vector<double> ids = c.inputs.at(input).values();
    const bool rows = ids.size() > 1 && !one_number(ids);
    if (rows) continue;
    found.push_back(
        {"positions", fmt::format("every row stands at {} of {}: rotations cancel", ids.front(), input_name(input))});
    break;
  }
  return found;
}

std::vector<UncoveredCoincidence> uncovered_coincidences(const Plan& plan) {
  std::vector<std::vector<Coincidence>> of_case;
  std::map<std::string_view, std::set<std::string>> free;  // name -> contracts that some case shows without it
  for (const PlannedCase& planned : plan.cases) {
    if (planned.member) {  // made from another case, which is looked at
      of_case.emplace_back();
      continue;
    }
    of_case.push_back(coincidences(planned));
    for (const std::string_view name : names) {
      const auto& found = of_case.back();
      const auto is_named = [&](const Coincidence& c) { return c.name == name; };
      if (std::none_of(found.begin(), found.end(), is_named)) free[name].insert(planned.contract.name);
    }
  }
  std::vector<UncoveredCoincidence> uncovered;
  for (std::size_t i = 0; i < plan.cases.size(); ++i)
    for (const Coincidence& coincidence : of_case[i]) {
      const PlannedCase& planned = plan.cases[i];
      const std::set<std::string>& makes_up = free[coincidence.name];
      if (of_contract(coincidence.name) ? !makes_up.empty() : makes_up.count(planned.contract.name) != 0) continue;
      if (planned.allowed.count(std::string(coincidence.name)) != 0) continue;
      uncovered.push_back({planned.slug, coincidence});
    }
  return uncovered;
}

}  // namespace qkcts
