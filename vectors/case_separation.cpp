// SPDX-License-Identifier: Apache-2.0
#include "vectors/case_separation.hpp"

#include <cmath>
#include <limits>
#include <optional>

#include "conformance/neighbour.hpp"
#include "reference/separation.hpp"

namespace qkcts {
namespace {

// Rounded down: it stays a lower bound. What is finite stays finite.
float rounded_down(double x) {
  if (std::isinf(x)) return std::numeric_limits<float>::infinity();
  if (x > static_cast<double>(std::numeric_limits<float>::max())) return std::numeric_limits<float>::max();
  const auto near = static_cast<float>(x);
  return static_cast<double>(near) <= x ? near : std::nextafter(near, 0.0F);
}

void append(SeparationRecord& record, const SeparationTable& table, const GoldenCase& golden) {
  for (const qkcts_stage stage : all_stages) {
    if (!golden.stages[stage].present) continue;
    for (std::size_t profile = 0; profile < golden.profiles.size(); ++profile) {
      if (table[stage].empty()) {
        record.values.push_back(no_separation);
        record.places.insert(record.places.end(), {0, 0});
        continue;
      }
      const Separation& found = table[stage][profile];
      const float value = rounded_down(found.value);
      record.values.push_back(value);
      if (value > 0) {
        record.places.insert(record.places.end(), {found.row, static_cast<std::uint32_t>(found.column)});
      } else {
        record.places.insert(record.places.end(), {0, 0});
      }
    }
  }
}

template <class Compare>
SeparationRecord separations(const GoldenCase& golden, const Compare& compare) {
  CaseView view;
  for (const qkcts_stage stage : all_stages)
    if (golden.stages[stage].present) view[stage] = {&golden.stages[stage].values, &golden.stages[stage].budgets};
  const Separator separator(golden.input, view, profiles_named(golden.profiles, golden.own_profiles));
  SeparationRecord record;
  for (const Neighbour& neighbour : neighbours(golden.input.contract.terms)) {
    const std::optional<Case> other = case_under(golden.input, neighbour.terms);
    if (!other) continue;
    try {
      append(record, compare(separator, *other), golden);
      record.neighbours.push_back(neighbour.name);
    } catch (const UndecidedError&) {
      continue;
    } catch (const InputError&) {
      continue;
    }
  }
  return record;
}

}  // namespace

SeparationRecord make_separations(const GoldenCase& golden) {
  return separations(golden, [](const Separator& own, const Case& other) { return own.quickly_to(other); });
}

SeparationRecord full_separations(const GoldenCase& golden) {
  return separations(golden, [](const Separator& own, const Case& other) { return own.to(other); });
}

SeparationEntry separation_entry(const GoldenCase& golden, const SeparationRecord& record, std::size_t neighbour,
                                 qkcts_stage stage, std::size_t profile) {
  const StageSet stages = stages_of(golden.input.contract.terms);
  std::size_t count = 0, at = 0;
  for (const qkcts_stage each : all_stages) {
    if (each == stage) at = count;
    if ((stages & bit(each)) != 0) ++count;
  }
  const std::size_t i = (neighbour * count + at) * golden.profiles.size() + profile;
  return {record.values[i], record.places[2 * i], record.places[2 * i + 1]};
}

}  // namespace qkcts
