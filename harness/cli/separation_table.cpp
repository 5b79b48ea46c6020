// SPDX-License-Identifier: Apache-2.0
// The tables of `inspect --separation` over a whole corpus.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "conformance/json.hpp"
#include "harness/cli/separation.hpp"
#include "harness/cli/separation_curve.hpp"
#include "harness/wrapped_text.hpp"
#include "vectors/case_separation.hpp"

namespace qkcts::cli {
namespace {

// One entry of a plot-ready table.
class Entry {
 public:
  Entry& text(const char* name, std::string_view value) { return add(name, fmt::format("\"{}\"", value), value); }
  Entry& number(const char* name, double value) {
    if (!std::isfinite(value)) return text(name, std::isnan(value) ? "nan" : "inf");  // JSON has no such numbers
    const std::string shown = fmt::format("{:.9g}", value);
    return add(name, shown, shown);
  }

  void print(TableForm form, bool is_first) const {
    std::string line;
    if (form == TableForm::csv) {
      if (is_first) fmt::print("{}\n", joined(&Cell::name));
      fmt::print("{}\n", joined(&Cell::plain));
      return;
    }
    for (const Cell& cell : cells_) line += fmt::format("{}\"{}\": {}", line.empty() ? "" : ", ", cell.name, cell.json);
    fmt::print("{}  {{{}}}", is_first ? "[\n" : ",\n", line);
  }

 private:
  struct Cell {
    std::string name, json, plain;
  };
  Entry& add(const char* name, std::string json, std::string_view plain) {
    // Names of neighbours hold braces, colons and commas, never quotes.
    const bool quoted = plain.find(',') != std::string_view::npos;
    cells_.push_back({name, std::move(json), quoted ? fmt::format("\"{}\"", plain) : std::string(plain)});
    return *this;
  }
  std::string joined(std::string Cell::*member) const {
    std::string line;
    for (const Cell& cell : cells_) line += (&cell == cells_.data() ? "" : ",") + cell.*member;
    return line;
  }

  std::vector<Cell> cells_;
};

void end_table(TableForm form, bool is_empty) {
  if (form == TableForm::json) fmt::print("{}\n", is_empty ? "[]" : "\n]");
}

double smallest_rms(const Case& c) {
  if (!c.inputs.has(Input::q)) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values = c.inputs.at(Input::q).values();
  const auto width = static_cast<std::size_t>(c.shape.head_dim);
  double least = HUGE_VAL;
  for (std::size_t i = 0; i < values.size(); i += width) {
    double squares = 0;
    for (std::size_t d = i; d < i + width; ++d) squares += values[d] * values[d];
    least = std::min(least, std::sqrt(squares / static_cast<double>(width)));
  }
  return least;
}

void print_entries(const GoldenCase& golden, TableForm form, bool& is_first) {
  const Case& c = golden.input;
  const SeparationRecord record = separations_of(golden);
  const double rms = smallest_rms(c);
  for (std::size_t i = 0; i < record.neighbours.size(); ++i)
    for (const qkcts_stage stage : all_stages) {
      if (!golden.stages[stage].present) continue;
      for (std::size_t profile = 0; profile < golden.profiles.size(); ++profile) {
        const SeparationEntry found = separation_entry(golden, record, i, stage, profile);
        if (std::isnan(found.value)) continue;
        Entry entry;
        entry.text("case", c.slug).text("contract", c.contract.name).text("family", golden.family);
        entry.text("format", parameters(c.inputs.format).name).number("q_eps", c.contract.terms.q_norm.eps);
        entry.number("smallest_q_rms", rms).text("neighbour", record.neighbours[i]).text("stage", stage_name(stage));
        entry.text("profile", golden.profiles[profile]).number("separation", static_cast<double>(found.value));
        entry.number("row", found.row).number("column", found.column).print(form, is_first);
        is_first = false;
      }
    }
}

// Of a neighbour in one format: the case that tells it best under the profile that tells it least.
struct BestCase {
  double separation = -1;
  std::string slug;
};

}  // namespace

void print_separations(const CorpusReader& reader, const std::string& contracts, const std::string& families,
                       TableForm form) {
  std::map<std::pair<std::string, std::string>, std::map<std::string, BestCase>> best;
  bool is_first = true;
  for (const std::string& slug : reader.slugs()) {
    const GoldenCase outline = reader.outline(slug);
    if (!glob_matches(contracts, outline.input.contract.name) || !glob_matches(families, outline.family)) continue;
    const GoldenCase golden = reader.read(slug);
    if (form != TableForm::text) {
      print_entries(golden, form, is_first);
      continue;
    }
    const SeparationRecord record = separations_of(golden);
    for (std::size_t i = 0; i < record.neighbours.size(); ++i) {
      double least = HUGE_VAL;
      for (std::size_t profile = 0; profile < golden.profiles.size(); ++profile) {
        double largest = 0;
        for (const qkcts_stage stage : all_stages)
          if (golden.stages[stage].present)
            largest = std::max(largest, static_cast<double>(separation_entry(golden, record, i, stage, profile).value));
        least = std::min(least, largest);
      }
      BestCase& found = best[{golden.input.contract.name, record.neighbours[i]}]
                            [std::string(parameters(golden.input.inputs.format).name)];
      if (least > found.separation) found = {least, slug};
    }
  }
  if (form != TableForm::text) return end_table(form, is_first);
  std::string contract;
  for (const auto& [names, formats] : best) {
    if (names.first != contract) fmt::print("\n{}\n", contract = names.first);
    for (const auto& [format, found] : formats) {
      const std::string prefix = contract + "/";
      const std::string place = found.slug.starts_with(prefix) ? found.slug.substr(prefix.size()) : found.slug;
      fmt::print("{}", wrapped(fmt::format("  {:<31} {:>8.3g}  ", names.second, found.separation), place, 6));
    }
  }
  fmt::print("\n{}", wrapped("",
                             "neighbour, largest separation over the cases of one format (of the stage that tells "
                             "most, under the profile that tells least), and the case, whose name begins with the "
                             "contract. Above 1: no implementation that is right for the neighbour can pass"));
}

void print_separation_rows(const CorpusReader& reader, const std::string& contracts, const std::string& families,
                           TableForm form) {
  const std::vector<SeparationCurve> curves = separation_curves(reader, contracts, families);
  bool is_first = true;
  std::string slug;
  for (const SeparationCurve& curve : curves) {
    if (form == TableForm::text) {
      if (curve.slug != slug)
        fmt::print("\n{}\n  {}, eps {:g}\n  {:<26} {:<16} {:>22} {:>10}\n", slug = curve.slug, curve.kind, curve.eps,
                   "neighbour", "profile", "seen up to sqrt(t/eps)", "rms");
      const CurvePoint* last = nullptr;
      for (const CurvePoint& point : curve.points)
        if (point.separation > 1) last = &point;
      if (last != nullptr) {
        fmt::print("  {:<26} {:<16} {:>22.4g} {:>10.4g}\n", curve.neighbour, curve.profile, last->ratio, last->rms);
      } else {
        fmt::print("  {:<26} {:<16} {:>22} {:>10}\n", curve.neighbour, curve.profile, "never", "-");
      }
      continue;
    }
    for (const CurvePoint& point : curve.points) {
      Entry entry;
      entry.text("case", curve.slug).text("contract", curve.contract).text("norm", curve.kind);
      entry.text("format", curve.format).number("eps", curve.eps).text("neighbour", curve.neighbour);
      entry.text("profile", curve.profile).number("rms", point.rms).number("sqrt_t_over_eps", point.ratio);
      entry.number("separation", point.separation).print(form, is_first);
      is_first = false;
    }
  }
  if (form != TableForm::text) return end_table(form, is_first);
  fmt::print("\n{}", wrapped("",
                             "t: the mean square, variance or sum of squares of the row, beside which eps stands. "
                             "The largest row of q_norm that no implementation right for the neighbour can pass"));
}

}  // namespace qkcts::cli
