// SPDX-License-Identifier: Apache-2.0
#include "vectors/input_family.hpp"

#include <vector>

#include <fmt/format.h>

#include "conformance/near_name.hpp"
#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {

std::span<const InputFamily> input_families() {
  static const std::vector<InputFamily> all = [] {
    std::vector<InputFamily> list;
    for (const auto part :
         {ordinary_families(), norm_families(), range_families(), score_families(), mask_families(), logit_families(),
          position_families(), clamp_families(), hidden_families(), special_families(), projection_families(),
          point_families(), size_families(), channel_families(), weight_families(), ladder_families()})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }();
  return all;
}

const InputFamily& input_family(std::string_view name) {
  std::vector<std::string> known;
  for (const InputFamily& family : input_families()) {
    if (family.name == name) return family;
    known.emplace_back(family.name);
  }
  const std::string near = near_names(name, known);
  throw InputError(fmt::format("there is no input family {}; {}`qkcts generate --list-families` lists them", name,
                               near.empty() ? "" : fmt::format("did you mean {}? ", near)));
}

namespace {

// A cell of a Markdown table ends at a bar.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

std::string family_table() {
  std::string table = "| family | clause | why | what is promised of every case, and checked |\n|---|---|---|---|\n";
  for (const InputFamily& family : input_families()) {
    table +=
        fmt::format("| `{}` | {} | {} | {} |\n", family.name, family.clause, cell(family.reason), cell(family.promise));
  }
  return table;
}

namespace {

std::string fault_of(const InputFamily& family, const Draft& draft) {
  if (std::string fault = shape_fault(draft.contract.terms, draft.shape); !fault.empty()) return fault;
  if (std::string fault = family.plants ? rows_fault(draft.contract.terms) : std::string(); !fault.empty())
    return fault;
  return family.fault(draft);
}

}  // namespace

std::string family_fault(std::string_view name, const Contract& contract, const qkcts_shape& shape, Format format) {
  return fault_of(input_family(name), Draft(contract, shape, format, 0));
}

DrawnCase draw_case(std::string_view name, const Contract& contract, const qkcts_shape& shape, Format format,
                    std::uint64_t seed) {
  const InputFamily& family = input_family(name);
  if (std::string fault = shape_fault(contract.terms, shape); !fault.empty())
    throw InputError(fmt::format("{}: {}", contract.name, fault));
  Draft draft(contract, shape, format, seed);
  if (std::string fault = fault_of(family, draft); !fault.empty())
    throw InputError(fmt::format("family {} of contract {}: {}", name, contract.name, fault));
  draft.draw_ordinary();
  draft.planted = family.plants && draft.projects();
  family.draw(draft);
  return sealed(draft);
}

}  // namespace qkcts
