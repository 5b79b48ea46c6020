// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/separation_curve.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "conformance/contract_field.hpp"
#include "conformance/neighbour.hpp"
#include "harness/cli/separation.hpp"
#include "reference/separation.hpp"

namespace qkcts::cli {
namespace {

bool is_of_epsilon(const std::string& neighbour) {
  return neighbour.rfind("q_norm.root=", 0) == 0 || neighbour.rfind("q_norm.eps=", 0) == 0;
}

bool has_curve(const Case& c) {
  const qkcts_norm& norm = c.contract.terms.q_norm;
  return norm.applied != 0 && norm.eps > 0 && norm.axis != QKCTS_AXIS_FULL_WIDTH && c.inputs.has(Input::q);
}

// rms and ratio of every row of q.
std::vector<CurvePoint> row_points(const Case& c) {
  const qkcts_norm& norm = c.contract.terms.q_norm;
  const auto width = static_cast<std::size_t>(c.shape.head_dim);
  const auto count = static_cast<double>(width);
  const std::vector<double> values = c.inputs.at(Input::q).values();
  std::vector<CurvePoint> points;
  for (std::size_t i = 0; i < values.size(); i += width) {
    double sum = 0, squares = 0, about_mean = 0;
    for (std::size_t d = i; d < i + width; ++d) sum += values[d];
    for (std::size_t d = i; d < i + width; ++d) {
      squares += values[d] * values[d];
      about_mean += (values[d] - sum / count) * (values[d] - sum / count);
    }
    const double total = norm.center != 0 ? about_mean : squares;
    const double statistic = norm.statistic == QKCTS_MEAN_SQUARE ? total / count : total;
    points.push_back({std::sqrt(squares / count), std::sqrt(statistic / norm.eps), 0});
  }
  return points;
}

std::string kind_of(const qkcts_contract& terms) {
  for (const FieldValue& field : contract_field_values(terms))
    if (field.path == "q_norm.kind") return field.json.substr(1, field.json.size() - 2);
  return "?";
}

void append_case(const GoldenCase& golden, std::vector<SeparationCurve>& curves) {
  const Case& c = golden.input;
  const Separator separator(c, view_of(golden), profiles_named(golden.profiles, golden.own_profiles));
  const std::vector<std::uint32_t>& rows = golden.stages[QKCTS_STAGE_Q_NORM].values.rows;
  const std::vector<CurvePoint> all = row_points(c);
  for (const Neighbour& neighbour : neighbours(c.contract.terms)) {
    if (!is_of_epsilon(neighbour.name)) continue;
    const std::optional<Case> other = case_under(c, neighbour.terms);
    if (!other) continue;
    std::vector<std::vector<Separation>> found;
    try {
      found = separator.by_row(*other, QKCTS_STAGE_Q_NORM);
    } catch (const UndecidedError&) {
      continue;
    } catch (const InputError&) {  // a row of zeros without an epsilon
      continue;
    }
    for (std::size_t profile = 0; profile < golden.profiles.size(); ++profile) {
      SeparationCurve& curve = curves.emplace_back();
      curve.slug = c.slug;
      curve.contract = c.contract.name;
      curve.kind = kind_of(c.contract.terms);
      curve.format = parameters(c.inputs.format).name;
      curve.profile = golden.profiles[profile];
      curve.neighbour = neighbour.name;
      curve.eps = c.contract.terms.q_norm.eps;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        curve.points.push_back(all[rows[i]]);
        curve.points.back().separation = found[i][profile].value;
      }
      std::stable_sort(curve.points.begin(), curve.points.end(),
                       [](const CurvePoint& a, const CurvePoint& b) { return a.ratio < b.ratio; });
    }
  }
}

}  // namespace

std::vector<SeparationCurve> separation_curves(const CorpusReader& reader, const std::string& contracts,
                                               const std::string& families) {
  std::vector<SeparationCurve> curves;
  for (const std::string& slug : reader.slugs()) {
    const GoldenCase outline = reader.outline(slug);
    if (!glob_matches(contracts, outline.input.contract.name) || !glob_matches(families, outline.family)) continue;
    const GoldenCase golden = reader.read(slug);
    if (has_curve(golden.input)) append_case(golden, curves);
  }
  return curves;
}

}  // namespace qkcts::cli
