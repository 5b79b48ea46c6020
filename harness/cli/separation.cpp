// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/separation.hpp"

#include <fnmatch.h>

#include <algorithm>

#include <fmt/format.h>

#include "conformance/neighbour.hpp"
#include "harness/wrapped_text.hpp"
#include "vectors/case_separation.hpp"

namespace qkcts::cli {
namespace {

// The largest over the stages, and the stage where it stands.
struct Best {
  float value = 0;
  std::string_view stage = "-";
};

Best best_of(const GoldenCase& golden, const SeparationRecord& record, std::size_t neighbour, std::size_t profile) {
  Best best;
  for (const qkcts_stage stage : all_stages) {
    if (!golden.stages[stage].present) continue;
    const float value = separation_entry(golden, record, neighbour, stage, profile).value;
    if (value > best.value) best = {value, stage_name(stage)};
  }
  return best;
}

struct Line {
  std::string neighbour;
  std::vector<Best> best;  // by profile
  float least = 0;
};

}  // namespace

bool glob_matches(const std::string& glob, const std::string& name) {
  return glob.empty() || ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

CaseView view_of(const GoldenCase& golden) {
  CaseView view;
  for (const qkcts_stage stage : all_stages)
    if (golden.stages[stage].present) view[stage] = {&golden.stages[stage].values, &golden.stages[stage].budgets};
  return view;
}

SeparationRecord separations_of(const GoldenCase& golden) {
  return golden.jacobian ? golden.separation : full_separations(golden);
}

void print_separations(const GoldenCase& golden) {
  const SeparationRecord record = separations_of(golden);
  std::vector<Line> lines;
  for (std::size_t i = 0; i < record.neighbours.size(); ++i) {
    Line& line = lines.emplace_back();
    line.neighbour = record.neighbours[i];
    for (std::size_t profile = 0; profile < golden.profiles.size(); ++profile)
      line.best.push_back(best_of(golden, record, i, profile));
    line.least = line.best[0].value;
    for (const Best& best : line.best) line.least = std::min(line.least, best.value);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.least < b.least; });

  // Of each profile one column; where their names have no room, numbers stand above the columns.
  const bool has_names = golden.profiles.size() == 1;
  std::vector<std::string> heads = {"by"};
  for (std::size_t i = 0; i < golden.profiles.size(); ++i)
    heads.push_back(has_names ? golden.profiles[i] : fmt::format("({})", i + 1));
  const auto print_row = [](const std::string& name, std::vector<std::string> cells) {
    cells.front() = fmt::format("{:<9}", cells.front());
    fmt::print("{}", table_row("  " + name, 36, cells, 11));
  };
  fmt::print("\n");
  print_row("neighbouring contract", heads);
  for (const Line& line : lines) {
    std::vector<std::string> cells = {std::string(line.best[0].stage)};
    for (const Best& best : line.best) cells.push_back(fmt::format("{:.3g}", best.value));
    print_row(line.neighbour, std::move(cells));
  }
  for (std::size_t i = 0; i < golden.profiles.size() && !has_names; ++i)
    fmt::print("  ({}) {}\n", i + 1, golden.profiles[i]);
  fmt::print("{}",
             wrapped("  ", fmt::format("above 1: no implementation that is right for the neighbour can pass this "
                                       "case; 0: the rows that were compared are equal under both; inf: special "
                                       "values differ. {}",
                                       golden.jacobian ? "Stored in the corpus: lower bounds from a few rows."
                                                       : "Not stored in this corpus: computed over all stored rows.")));
  for (const Neighbour& neighbour : neighbours(golden.input.contract.terms))
    if (std::find(record.neighbours.begin(), record.neighbours.end(), neighbour.name) == record.neighbours.end())
      fmt::print("{}", wrapped("  not compared: ",
                               neighbour.name + ": the case lacks an input, or its values do not exist or are not "
                                                "proven",
                               4));
}

}  // namespace qkcts::cli
