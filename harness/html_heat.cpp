// SPDX-License-Identifier: Apache-2.0
#include "harness/html_heat.hpp"

#include <fmt/format.h>

#include <array>

#include "harness/report_html.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

// Upper ends of the steps of colour; the next one is above 1.
constexpr std::array<float, 4> steps = {0.01F, 0.1F, 0.5F, 1.0F};

int step_of(float ratio) {
  if (ratio == heat_unjudged) return -1;
  int step = 0;
  while (step < static_cast<int>(steps.size()) && ratio > steps[static_cast<std::size_t>(step)]) ++step;
  return step;
}

// Neighbours of one colour are one rectangle.
std::string cells(const HeatMap& map, double width, double height) {
  std::string text;
  for (std::size_t r = 0; r < map.rows(); ++r) {
    for (std::size_t c = 0; c < map.columns();) {
      const int step = step_of(map.at(r, c));
      std::size_t end = c + 1;
      while (end < map.columns() && step_of(map.at(r, end)) == step) ++end;
      if (step >= 0)
        text += fmt::format("<rect class=\"h{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>", step,
                            static_cast<double>(c) * width, static_cast<double>(r) * height,
                            static_cast<double>(end - c) * width, height);
      c = end;
    }
  }
  return text;
}

std::string figure(const StageHeat& heat) {
  const HeatMap& map = heat.map;
  constexpr double picture_width = 240, picture_height = 128;
  const double width = picture_width / static_cast<double>(map.columns());
  const double height = picture_height / static_cast<double>(map.rows());
  return fmt::format(
      "<figure><figcaption>{0} <span class=\"dim\">{1}</span></figcaption><svg viewBox=\"0 0 {2} {3}\" role=\"img\" "
      "aria-label=\"Error over Delta of {0} in its worst case, {1}: at most {4}\" preserveAspectRatio=\"none\">\n"
      "<rect class=\"empty\" x=\"0\" y=\"0\" width=\"{2}\" height=\"{3}\"/>{5}</svg>"
      "<p class=\"small\">{6} down, {7} across; at most {4}</p></figure>\n",
      stage_name(heat.stage), html_escaped(heat.slug), picture_width, picture_height, short_text(heat.max_ratio),
      cells(map, width, height), counted(map.stored(), "stored row", "stored rows"),
      counted(map.length(), "element", "elements"));
}

}  // namespace

std::string heat_figures(const RunRecord& record) {
  if (record.heat_maps.empty()) return "<p>No element was measured.</p>\n";
  std::string legend = "<p class=\"legend\">Largest error / &#916; of a block: ";
  const std::array<std::string_view, 5> labels = {"up to 0.01", "up to 0.1", "up to 0.5", "up to 1", "above 1: fails"};
  for (std::size_t i = 0; i < labels.size(); ++i)
    legend += fmt::format(
        "<span><svg class=\"key\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"h{}\" "
        "width=\"12\" height=\"12\"/></svg> {}</span> ",
        i, labels[i]);
  legend +=
      "<span><svg class=\"key\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"empty\" width=\"12\" "
      "height=\"12\"/></svg> not measured</span></p>\n";
  std::string figures;
  for (const StageHeat& heat : record.heat_maps) figures += figure(heat);
  return legend + "<div class=\"figures\">\n" + figures + "</div>\n";
}

}  // namespace qkcts
