// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/separation.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "conformance/neighbour.hpp"
#include "reference/separation.hpp"

namespace qkcts::cli {
namespace {

struct Line {
  std::string neighbour;
  SeparationTable table;
  double least = 0;  // over the profiles, of the stage that tells most
};

// The stage that tells most under the first profile.
std::string_view best_stage(const SeparationTable& table) {
  const double best = largest_separation(table, 0).value;
  for (const qkcts_stage stage : all_stages)
    if (!table[stage].empty() && table[stage][0].value == best) return best > 0 ? stage_name(stage) : "-";
  return "-";
}

StageRows stored_rows(const GoldenCase& golden) {
  StageRows rows;
  for (const qkcts_stage stage : all_stages)
    if (golden.stages[stage].present) rows[stage] = golden.stages[stage].values.rows;
  return rows;
}

}  // namespace

void print_separations(const GoldenCase& golden) {
  const std::vector<Profile> profiles = profiles_named(golden.profiles, golden.own_profiles);
  const Separator separator(golden.input, stored_rows(golden), profiles);
  std::vector<Line> lines;
  std::vector<std::string> without;
  for (const Neighbour& neighbour : neighbours(golden.input.contract.terms)) {
    const std::optional<Case> other = case_under(golden.input, neighbour.terms);
    try {
      if (!other) {
        without.push_back(neighbour.name + ": the case lacks an input");
        continue;
      }
      Line line{neighbour.name, separator.to(*other)};
      line.least = largest_separation(line.table, 0).value;
      for (std::size_t i = 1; i < profiles.size(); ++i)
        line.least = std::min(line.least, largest_separation(line.table, i).value);
      lines.push_back(std::move(line));
    } catch (const UndecidedError&) {
      without.push_back(neighbour.name + ": a rounding of its values is not proven");
    } catch (const InputError&) {
      without.push_back(neighbour.name + ": its values have no meaning for these inputs");
    }
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.least < b.least; });

  fmt::print("\n  {:<38} {:<8}", "neighbouring contract", "by");
  for (const std::string& name : golden.profiles) fmt::print(" {:>11.11}", name);
  fmt::print("\n");
  for (const Line& line : lines) {
    fmt::print("  {:<38} {:<8}", line.neighbour, best_stage(line.table));
    for (std::size_t i = 0; i < profiles.size(); ++i) fmt::print(" {:>11.3g}", largest_separation(line.table, i).value);
    fmt::print("\n");
  }
  fmt::print(
      "  above 1: no implementation that is right for the neighbour can pass this case;\n"
      "  0: the stored rows are equal under both; inf: special values differ\n");
  for (const std::string& line : without) fmt::print("  not compared: {}\n", line);
}

}  // namespace qkcts::cli
