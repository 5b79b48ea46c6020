// SPDX-License-Identifier: Apache-2.0
#include "vectors/corpus_diff.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "conformance/contract.hpp"

namespace qkcts {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

using Differences = std::vector<CaseDifference>;

void note(Differences& found, std::string aspect, std::string place, std::string text) {
  found.push_back({std::move(aspect), std::move(place), 0, 0, 0, std::move(text)});
}

template <class T>
bool same_bits(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  return a == b;
}

// How many numbers of the format apart; infinite where one of them is no number.
double steps_apart(Format format, std::uint64_t a, std::uint64_t b) {
  if (!std::isfinite(decode(format, a)) || !std::isfinite(decode(format, b))) return infinite;
  const auto ordinal = [&](std::uint64_t pattern) {
    const std::uint64_t sign = std::uint64_t{1} << static_cast<unsigned>(parameters(format).bits - 1);
    const auto magnitude = static_cast<double>(pattern & (sign - 1));
    return (pattern & sign) != 0 ? -magnitude : magnitude;
  };
  return std::abs(ordinal(a) - ordinal(b));
}

// Between hi + lo/256 ulp of each, in ulp of the old hi.
double ulps_apart(double old_hi, std::int16_t old_lo, double new_hi, std::int16_t new_lo) {
  if (!std::isfinite(old_hi) || !std::isfinite(new_hi)) return same_bits(old_hi, new_hi) ? 0 : infinite;
  const double of_old = ulp(Format::binary64, old_hi), of_new = ulp(Format::binary64, new_hi);
  return std::abs((new_hi - old_hi) / of_old + (new_lo * (of_new / of_old) - old_lo) / 256);
}

double factor(double old_value, double new_value) {
  if (old_value == 0 || !std::isfinite(old_value) || !std::isfinite(new_value)) return infinite;
  return new_value / old_value;
}

// The least and largest of measure(i) over the elements that differ.
template <class Differs, class Measure>
std::optional<CaseDifference> measured(std::size_t count, const Differs& differs, const Measure& measure) {
  CaseDifference found{"", "", 0, infinite, 0, ""};
  for (std::size_t i = 0; i < count; ++i) {
    if (!differs(i)) continue;
    ++found.elements;
    found.least = std::min(found.least, measure(i));
    found.most = std::max(found.most, measure(i));
  }
  if (found.elements == 0) return std::nullopt;
  return found;
}

void name(Differences& found, std::optional<CaseDifference> difference, const char* aspect, const std::string& place,
          const std::string& text) {
  if (!difference) return;
  difference->aspect = aspect;
  difference->place = place;
  difference->text = fmt::format("{} {}{}", difference->elements, difference->elements == 1 ? "element" : "elements",
                                 text.empty() ? "" : ", " + text);
  found.push_back(std::move(*difference));
}

std::string most_text(const std::optional<CaseDifference>& d, const char* unit) {
  if (!d) return {};
  return std::isinf(d->most) ? std::string("of another class") : fmt::format("at most {:.3g} {}", d->most, unit);
}

std::string factor_text(const std::optional<CaseDifference>& d) {
  if (!d) return {};
  if (std::isinf(d->least)) return "to or from 0 or infinity";
  const std::string upper = std::isinf(d->most) ? "infinity" : fmt::format("{:.4g}", d->most);
  return d->least == d->most ? fmt::format("times {}", upper) : fmt::format("times {:.4g} to {}", d->least, upper);
}

void compare_contracts(const Contract& before, const Contract& after, Differences& found) {
  if (before.name != after.name) note(found, "contract", "name", fmt::format("{}, now {}", before.name, after.name));
  for (const ClauseDifference& d : contract_differences(before, after))
    note(found, "contract", d.field, fmt::format("{}, now {} ({})", d.left, d.right, d.clause));
}

void compare_inputs(const Case& before, const Case& after, Differences& found) {
  for (std::size_t i = 0; i < input_count; ++i) {
    const std::optional<Tensor>& a = before.inputs.tensors[i];
    const std::optional<Tensor>& b = after.inputs.tensors[i];
    const std::string place(input_name(static_cast<Input>(i)));
    if (a.has_value() != b.has_value()) {
      note(found, "inputs", place, b ? "is new" : "is gone");
    } else if (a && (a->shape != b->shape || a->type != b->type)) {
      note(found, "inputs", place, "has another shape or type");
    } else if (a && a->bytes != b->bytes) {
      const std::size_t size = element_size(a->type);
      name(found,
           measured(
               a->bytes.size() / size, [&](std::size_t e) { return a->pattern(e) != b->pattern(e); },
               [](std::size_t) { return 0.0; }),
           "inputs", place, "");
    }
  }
}

void compare_budgets(const GoldenCase& before, const GoldenCase& after, qkcts_stage stage, Differences& found) {
  const GoldenStage& a = before.stages[stage];
  const GoldenStage& b = after.stages[stage];
  for (std::size_t i = 0; i < before.profiles.size(); ++i) {
    const auto other = std::find(after.profiles.begin(), after.profiles.end(), before.profiles[i]);
    if (other == after.profiles.end()) continue;
    const StageBudget& old_budget = a.budgets[i];
    const StageBudget& new_budget = b.budgets[static_cast<std::size_t>(other - after.profiles.begin())];
    const std::string place = fmt::format("{} {}", stage_name(stage), before.profiles[i]);
    const auto deltas = measured(
        old_budget.delta.size(), [&](std::size_t e) { return !same_bits(old_budget.delta[e], new_budget.delta[e]); },
        [&](std::size_t e) { return factor(old_budget.delta[e], new_budget.delta[e]); });
    name(found, deltas, "budget", place, factor_text(deltas));
    name(found,
         measured(
             old_budget.trust.size(), [&](std::size_t e) { return old_budget.trust[e] != new_budget.trust[e]; },
             [](std::size_t) { return 0.0; }),
         "trust", place, "");
  }
}

void compare_stage(const GoldenCase& before, const GoldenCase& after, qkcts_stage stage, Differences& found) {
  const GoldenStage& a = before.stages[stage];
  const GoldenStage& b = after.stages[stage];
  const std::string place(stage_name(stage));
  if (a.present != b.present) return note(found, "stages", place, b.present ? "is new" : "is gone");
  if (!a.present) return;
  const ProvenStage& x = a.values;
  const ProvenStage& y = b.values;
  if (x.rows != y.rows || x.expected.size() != y.expected.size())
    return note(found, "rows", place,
                x.rows.size() == y.rows.size() ? fmt::format("{} rows stored, now others", x.rows.size())
                                               : fmt::format("{} rows stored, now {}", x.rows.size(), y.rows.size()));
  const Format format = stage_format(stage, before.input.inputs.format);
  const auto expected = measured(
      x.expected.size(), [&](std::size_t e) { return x.expected[e] != y.expected[e]; },
      [&](std::size_t e) { return steps_apart(format, x.expected[e], y.expected[e]); });
  name(found, expected, "expected", place, most_text(expected, "ulp"));
  const auto value = measured(
      x.hi.size(), [&](std::size_t e) { return !same_bits(x.hi[e], y.hi[e]) || x.lo[e] != y.lo[e]; },
      [&](std::size_t e) { return ulps_apart(x.hi[e], x.lo[e], y.hi[e], y.lo[e]); });
  name(found, value, "value", place, most_text(value, "ulp64"));
  name(found,
       measured(
           x.rule.size(), [&](std::size_t e) { return x.rule[e] != y.rule[e]; }, [](std::size_t) { return 0.0; }),
       "rule", place, "");
  compare_budgets(before, after, stage, found);
}

void compare_profiles(const GoldenCase& before, const GoldenCase& after, Differences& found) {
  const auto missing = [&](const GoldenCase& from, const GoldenCase& in, const char* text) {
    for (const std::string& profile : from.profiles)
      if (std::find(in.profiles.begin(), in.profiles.end(), profile) == in.profiles.end())
        note(found, "profiles", profile, text);
  };
  missing(before, after, "no longer judges");
  missing(after, before, "judges too");
  if (before.own_profiles != after.own_profiles) note(found, "profiles", "own", "say something else");
}

void compare_separations(const GoldenCase& before, const GoldenCase& after, Differences& found) {
  const SeparationRecord& a = before.separation;
  const SeparationRecord& b = after.separation;
  if (a.neighbours != b.neighbours || a.values.size() != b.values.size()) {
    if (!a.neighbours.empty() || !b.neighbours.empty())
      note(found, "separation", "neighbours", fmt::format("{}, now {}", a.neighbours.size(), b.neighbours.size()));
    return;
  }
  const auto values = measured(
      a.values.size(), [&](std::size_t e) { return !same_bits(a.values[e], b.values[e]); },
      [&](std::size_t e) { return factor(a.values[e], b.values[e]); });
  name(found, values, "separation", "value", factor_text(values));
  name(found,
       measured(
           a.places.size(), [&](std::size_t e) { return a.places[e] != b.places[e]; }, [](std::size_t) { return 0.0; }),
       "separation", "place", "");
}

void compare_statistics(const GoldenCase& before, const GoldenCase& after, Differences& found) {
  const auto compare = [&](const char* place, const Range& a, const Range& b) {
    if (!same_bits(a.min, b.min) || !same_bits(a.median, b.median) || !same_bits(a.max, b.max))
      note(found, "statistics", place, fmt::format("median {:.6g}, now {:.6g}", a.median, b.median));
  };
  compare("entropy", before.entropy, after.entropy);
  compare("p_max", before.p_max, after.p_max);
  compare("score_max", before.score_max, after.score_max);
  if (before.jacobian.has_value() != after.jacobian.has_value()) {
    note(found, "statistics", "jacobian", after.jacobian ? "is new" : "is gone");
  } else if (before.jacobian) {
    compare("jacobian", *before.jacobian, *after.jacobian);
  }
}

using DigestOf = std::map<std::string, std::string>;

DigestOf digests_of(const std::vector<DigestEntry>& entries) {
  DigestOf digests;
  for (const DigestEntry& entry : entries) digests.emplace(entry.name, entry.digest);
  return digests;
}

// What stands beside the cases: a line for each that differs.
void compare_named(const char* kind, const DigestOf& before, const DigestOf& after, std::vector<std::string>& lines) {
  for (const auto& [name, digest] : before) {
    const auto now = after.find(name);
    if (now == after.end()) {
      lines.push_back(fmt::format("{} {} is gone", kind, name));
    } else if (now->second != digest) {
      lines.push_back(fmt::format("{} {} says something else", kind, name));
    }
  }
  for (const auto& [name, digest] : after)
    if (before.count(name) == 0) lines.push_back(fmt::format("{} {} is new", kind, name));
}

}  // namespace

std::vector<CaseDifference> case_differences(const GoldenCase& before, const GoldenCase& after) {
  Differences found;
  compare_contracts(before.input.contract, after.input.contract, found);
  if (before.family != after.family) note(found, "description", "family", before.family + ", now " + after.family);
  if (before.description != after.description) note(found, "description", "text", "is another one");
  if (before.seed != after.seed) note(found, "inputs", "seed", fmt::format("{}, now {}", before.seed, after.seed));
  if (before.first_position != after.first_position)
    note(found, "inputs", "first_position", fmt::format("{}, now {}", before.first_position, after.first_position));
  if (before.input.inputs.format != after.input.inputs.format) {
    note(found, "inputs", "format",
         fmt::format("{}, now {}", parameters(before.input.inputs.format).name,
                     parameters(after.input.inputs.format).name));
    return found;  // nothing else can be compared
  }
  compare_inputs(before.input, after.input, found);
  for (const qkcts_stage stage : all_stages) compare_stage(before, after, stage, found);
  compare_profiles(before, after, found);
  compare_statistics(before, after, found);
  compare_separations(before, after, found);
  if (found.empty()) note(found, "digest", "", "says otherwise of the same evidence");
  return found;
}

CorpusDifference corpus_difference(const CorpusReader& before, const CorpusReader& after) {
  CorpusDifference result;
  const auto head = [&](const char* what, const auto& a, const auto& b) {
    if (a != b) result.head.push_back(fmt::format("{}: {}, now {}", what, a, b));
  };
  head("suite", before.info().suite, after.info().suite);
  head("seed", before.info().seed, after.info().seed);
  const auto compare = [&](const char* kind, std::vector<DigestEntry> CorpusContents::*entries) {
    compare_named(kind, digests_of(before.contents().*entries), digests_of(after.contents().*entries), result.head);
  };
  compare("contract", &CorpusContents::contracts);
  compare("profile", &CorpusContents::profiles);
  compare("relation", &CorpusContents::relations);
  const DigestOf old_cases = digests_of(before.contents().cases), new_cases = digests_of(after.contents().cases);
  for (const auto& [slug, digest] : new_cases)
    if (old_cases.count(slug) == 0) result.appeared.push_back(slug);
  for (const auto& [slug, digest] : old_cases) {
    const auto now = new_cases.find(slug);
    if (now == new_cases.end()) {
      result.vanished.push_back(slug);
    } else if (now->second == digest) {
      ++result.equal;
    } else {
      result.changed.push_back({slug, case_differences(before.read(slug), after.read(slug))});
    }
  }
  return result;
}

}  // namespace qkcts
