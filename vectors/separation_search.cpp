// SPDX-License-Identifier: Apache-2.0
#include "vectors/separation_search.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "conformance/neighbour.hpp"
#include "reference/separation.hpp"
#include "vectors/case_separation.hpp"
#include "vectors/counter_generator.hpp"
#include "vectors/generate.hpp"
#include "vectors/plan.hpp"
#include "vectors/row_selection.hpp"

namespace qkcts {
namespace {

constexpr std::uint32_t change_stream = 128, noise_stream = 129;  // apart from those of families, rows and samples

// ---- changes of the inputs

// One row of a tensor, as numbers.
class Row {
 public:
  Row(Tensor& tensor, std::size_t row) : tensor_(tensor), width_(static_cast<std::size_t>(tensor.shape.back())) {
    first_ = row * width_;
    for (std::size_t d = 0; d < width_; ++d) values.push_back(tensor.value(first_ + d));
  }
  std::vector<double> values;

  double rms() const {
    double squares = 0;
    for (const double x : values) squares += x * x;
    return std::sqrt(squares / static_cast<double>(width_));
  }
  // Correctly rounded; false, and nothing is written, if a number leaves the format.
  bool store(Format format) const {
    for (const double x : values)
      if (!std::isfinite(decode(format, encode(format, x)))) return false;
    for (std::size_t d = 0; d < width_; ++d) tensor_.set_pattern(first_ + d, encode(format, values[d]));
    return true;
  }

 private:
  Tensor& tensor_;
  std::size_t width_, first_ = 0;
};

class Changes {
 public:
  Changes(std::uint64_t seed, Format format)
      : change_(seed, change_stream), noise_(seed, noise_stream), format_(format) {}

  // The change of this step in words; empty if it leaves the format. Every draw belongs to its step alone.
  std::string apply(Case& c, std::uint32_t step) const {
    const std::uint64_t base = std::uint64_t{step} * 16;
    const Input targets[] = {c.inputs.has(Input::q) ? Input::q : Input::q_x,
                             c.inputs.has(Input::k) ? Input::k : Input::k_x, Input::v};
    // v decides less: it takes one step of eight.
    const std::uint64_t drawn = change_.below(base, 8);
    const Input target = targets[drawn == 7 ? 2 : drawn % 2];
    Tensor& tensor = *c.inputs.tensors[static_cast<std::size_t>(target)];
    const std::size_t rows = tensor.count() / static_cast<std::size_t>(tensor.shape.back());
    const std::size_t row = change_.below(base + 1, rows);
    const int exponent = static_cast<int>(1 + change_.below(base + 2, 4)) * (change_.sign(base + 3) < 0 ? -1 : 1);
    switch (change_.below(base + 4, 6)) {
      case 0:
        return scaled(tensor, 0, rows, exponent) ? fmt::format("{} * 2^{}", input_name(target), exponent) : "";
      case 1: {
        const Input partner = target == Input::v ? Input::v : targets[target == targets[0] ? 1 : 0];
        Tensor& second = *c.inputs.tensors[static_cast<std::size_t>(partner)];
        const std::size_t count = second.count() / static_cast<std::size_t>(second.shape.back());
        if (!scaled(tensor, 0, rows, exponent) || (partner != target && !scaled(second, 0, count, exponent))) return "";
        return fmt::format("{} and {} * 2^{}", input_name(target), input_name(partner), exponent);
      }
      case 2:
        return scaled(tensor, row, 1, exponent) ? fmt::format("row {} of {} * 2^{}", row, input_name(target), exponent)
                                                : "";
      case 3:
        return noisy(tensor, row, std::ldexp(1.0, -static_cast<int>(change_.below(base + 5, 5))), base, target);
      case 4:
        return aligned(c, tensor, row, target, targets);
      default:
        return concentrated(tensor, row, change_.below(base + 6, static_cast<std::uint64_t>(tensor.shape.back())),
                            target);
    }
  }

 private:
  bool scaled(Tensor& tensor, std::size_t first, std::size_t count, int exponent) const {
    for (std::size_t row = first; row < first + count; ++row) {
      Row x(tensor, row);
      for (double& value : x.values) value = std::ldexp(value, exponent);
      if (!x.store(format_)) return false;
    }
    return true;
  }

  std::string noisy(Tensor& tensor, std::size_t row, double share, std::uint64_t base, Input target) const {
    Row x(tensor, row);
    const double size = x.rms() * share;
    for (std::size_t d = 0; d < x.values.size(); ++d) x.values[d] += size * noise_.gaussian((base << 16U) + d);
    return x.store(format_) ? fmt::format("row {} of {} + {:g} noise", row, input_name(target), share) : "";
  }

  // A row of q (or k) takes the direction of one of k (or q), and keeps its size.
  std::string aligned(Case& c, Tensor& tensor, std::size_t row, Input target, const Input (&targets)[3]) const {
    if (target == Input::v) return "";
    Tensor& other = *c.inputs.tensors[static_cast<std::size_t>(targets[target == targets[0] ? 1 : 0])];
    if (other.shape.back() != tensor.shape.back()) return "";
    const std::size_t rows = other.count() / static_cast<std::size_t>(other.shape.back());
    Row x(tensor, row);
    const Row y(other, row % rows);
    const double size = y.rms();
    if (!(size > 0)) return "";
    const double factor = x.rms() / size;
    for (std::size_t d = 0; d < x.values.size(); ++d) x.values[d] = y.values[d] * factor;
    return x.store(format_) ? fmt::format("row {} of {} along row {} of the other", row, input_name(target), row % rows)
                            : "";
  }

  // One lane grows to hold most of the row: outliers, and rows near a constant one after centring.
  std::string concentrated(Tensor& tensor, std::size_t row, std::uint64_t lane, Input target) const {
    Row x(tensor, row);
    x.values[lane] = (x.values[lane] < 0 ? -4 : 4) * x.rms();
    return x.store(format_) ? fmt::format("lane {} of row {} of {} grows", lane, row, input_name(target)) : "";
  }

  RandomStream change_, noise_;
  Format format_;
};

// ---- the contracts

bool equal_needs(const InputRequirement& a, const InputRequirement& b) {
  return a.input == b.input && a.type == b.type && a.shape == b.shape;
}

void require_equal_inputs(const SeparationSearch& search) {
  if (contract_digest(search.own) == contract_digest(search.other))
    throw InputError(fmt::format("{} and {} are one contract", search.own.name, search.other.name));
  for (const Contract* contract : {&search.own, &search.other})
    if (const std::string fault = shape_fault(contract->terms, search.shape); !fault.empty())
      throw InputError(fmt::format("{}: {}", contract->name, fault));
  const auto needs_of = [&](const Contract& contract) {
    return required_inputs(contract.terms, search.shape, search.format);
  };
  const std::vector<InputRequirement> own = needs_of(search.own), other = needs_of(search.other);
  const auto require_all = [](const std::vector<InputRequirement>& needs, const std::vector<InputRequirement>& known,
                              const std::string& name, const std::string& other_name) {
    for (const InputRequirement& need : needs)
      if (std::none_of(known.begin(), known.end(), [&](const auto& each) { return equal_needs(each, need); }))
        throw InputError(
            fmt::format("{} and {} do not take the same inputs: {} {} is only for {}; choose contracts that differ "
                        "in what they compute, not in what they read",
                        name, other_name, input_name(need.input), shape_text(need.shape), name));
  };
  require_all(own, other, search.own.name, search.other.name);
  require_all(other, own, search.other.name, search.own.name);
}

GoldenCase start_of(const SeparationSearch& search) {
  PlannedCase planned;
  planned.contract = search.own;
  planned.family = search.family;
  planned.format = search.format;
  planned.shape = search.shape;
  planned.slug = case_slug(search.own, "separating", search.format, search.shape, 0) + "_from_" + search.other.name;
  planned.seed = case_seed(search.seed, planned.slug);
  GoldenCase golden;
  golden.input = make_case(planned, golden.first_position);
  golden.family = "separating";
  golden.seed = planned.seed;
  if (search.profile) {
    golden.profiles = {search.profile->profile.name};
    if (!search.profile->text.empty()) golden.own_profiles.emplace(search.profile->profile.name, search.profile->text);
  } else {
    golden.profiles = {profiles_for(search.format).front().name};
  }
  return golden;
}

struct Judged {
  double separation = -1;
  qkcts_stage stage = QKCTS_STAGE_OUTPUT;
};

// Fills the evidence of the case. Throws InputError and UndecidedError; nothing if the profile does not judge it.
std::optional<Judged> judged(GoldenCase& golden, const SeparationSearch& search) {
  std::vector<DroppedProfile> dropped;
  seal(golden, select_rows(search.own.terms, search.shape, 0, golden.seed), dropped);
  if (!dropped.empty()) return std::nullopt;
  Case other = golden.input;
  other.contract = search.other;
  CaseView view;
  for (const qkcts_stage stage : all_stages)
    if (golden.stages[stage].present) view[stage] = {&golden.stages[stage].values, &golden.stages[stage].budgets};
  const Separator separator(golden.input, view, profiles_named(golden.profiles, golden.own_profiles));
  const SeparationTable table = separator.to(other);
  Judged best;
  for (const qkcts_stage stage : all_stages) {
    if (table[stage].empty() || (search.stage && stage != *search.stage)) continue;
    if (table[stage][0].value > best.separation) best = {table[stage][0].value, stage};
  }
  if (best.separation < 0) throw InputError("the two contracts do not have the wanted stage in common");
  return best;
}

}  // namespace

SearchResult search_separation(const SeparationSearch& search, const std::function<bool()>& stopped) {
  require_equal_inputs(search);
  SearchResult result;
  result.golden = start_of(search);
  const std::optional<Judged> start = judged(result.golden, search);
  if (!start)
    throw InputError(fmt::format("profile {} cannot judge a {} case of family {}: choose another family to start from",
                                 result.golden.profiles[0], search.own.name, search.family));
  result.improvements.push_back({0, "", start->separation, start->stage});
  const Changes changes(result.golden.seed, search.format);
  for (std::uint32_t step = 1; step <= search.steps && !(stopped && stopped()); ++step) {
    if (std::isinf(result.improvements.back().separation)) break;
    GoldenCase candidate = result.golden;
    const std::string change = changes.apply(candidate.input, step);
    if (change.empty()) continue;
    std::optional<Judged> found;
    try {
      found = judged(candidate, search);
    } catch (const UndecidedError&) {
    } catch (const InputError&) {
    }
    if (!found) {
      ++result.refused;
    } else if (found->separation > result.improvements.back().separation) {
      result.golden = std::move(candidate);
      result.improvements.push_back({step, change, found->separation, found->stage});
    }
  }
  const SearchStep& best = result.improvements.back();
  result.golden.description =
      fmt::format("found by a search from family {}: tells {} from {}, separation {:.6g} in {}", search.family,
                  search.own.name, search.other.name, best.separation, stage_name(best.stage));
  result.golden.separation = make_separations(result.golden);
  return result;
}

}  // namespace qkcts
