// SPDX-License-Identifier: Apache-2.0
// Curves of separation against the size of a row as one SVG file: a panel for each norm and format, a colour for each
// neighbour, a dash for each epsilon. Self-contained; colours of Okabe and Ito, told apart by most eyes, on white.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "conformance/file.hpp"
#include "harness/cli/destination.hpp"
#include "harness/cli/separation.hpp"
#include "harness/cli/separation_curve.hpp"

namespace qkcts::cli {
namespace {

constexpr double panel_width = 300, panel_height = 210, left = 64, top = 40, gap_x = 60, gap_y = 58;
constexpr std::array colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#000000"};
constexpr std::array dashes = {"none", "6 3", "2 3", "9 3 2 3"};

// Positions of one panel; decades outside stand at its edge.
struct Panel {
  double x, y;
  int first_x, last_x, lowest, highest;  // decades

  double across(double ratio) const { return x + panel_width * share(ratio, first_x, last_x); }
  double up(double separation) const { return y + panel_height * (1 - share(separation, lowest, highest)); }
  static double share(double value, int from, int to) {
    if (!(value > 0)) return 0;
    return std::clamp((std::log10(value) - from) / (to - from), 0.0, 1.0);
  }
};

std::string decade_text(int decade) {
  if (decade >= -2 && decade <= 3) return fmt::format("{:g}", std::pow(10.0, decade));
  return fmt::format("1e{}", decade);
}

std::string axes(const Panel& panel, const std::string& title) {
  std::string body =
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-weight=\"600\">{}</text>\n", panel.x, panel.y - 8, title);
  for (int decade = panel.lowest; decade <= panel.highest; decade += 2) {
    const double y = panel.up(std::pow(10.0, decade));
    body += fmt::format("<path d=\"M{:.1f} {:.1f}h{}\" stroke=\"{}\" stroke-width=\"{}\"/>", panel.x, y, panel_width,
                        decade == 0 ? "#a8201a" : "#d5dade", decade == 0 ? 1.5 : 1);
    body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", panel.x - 6, y + 4,
                        decade_text(decade));
  }
  for (int decade = panel.first_x; decade <= panel.last_x; ++decade) {
    const double x = panel.across(std::pow(10.0, decade));
    body += fmt::format("<path d=\"M{:.1f} {:.1f}v{}\" stroke=\"#d5dade\"/>", x, panel.y, panel_height);
    body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x,
                        panel.y + panel_height + 15, decade_text(decade));
  }
  return body;
}

std::string line_of(const SeparationCurve& curve, const Panel& panel, const char* colour, const char* dash) {
  std::string path;
  for (const CurvePoint& point : curve.points)
    path +=
        fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", panel.across(point.ratio), panel.up(point.separation));
  return fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" "
      "stroke-dasharray=\"{}\"><title>{}</title></path>\n",
      path, colour, dash, fmt::format("{}, eps {:g}, {}", curve.neighbour, curve.eps, curve.profile));
}

// What differs, whatever the epsilon is: "eps=1e-05" beside eps 1e-6 and "eps=0.0001" beside 1e-5 are both ten times.
std::string change_of(const SeparationCurve& curve) {
  const std::string value = curve.neighbour.substr(curve.neighbour.find('=') + 1);
  if (curve.neighbour.rfind("q_norm.eps=", 0) != 0)
    return "eps " + value.substr(0, value.find('_')) + (value == "max_inside" ? " inside" : "") + " root";
  const double other = std::stod(value);
  return other == 0 ? "without eps" : other > curve.eps ? "eps x 10" : "eps / 10";
}

template <class Key>
std::size_t index_in(std::vector<Key>& list, const Key& key) {
  const auto found = std::find(list.begin(), list.end(), key);
  if (found != list.end()) return static_cast<std::size_t>(found - list.begin());
  list.push_back(key);
  return list.size() - 1;
}

std::string legend(const std::vector<std::string>& changes, const std::vector<double>& epsilons, double y) {
  std::string body;
  double x = left;
  const auto entry = [&](const std::string& text, const char* colour, const char* dash) {
    body += fmt::format(
        "<path d=\"M{:.0f} {:.0f}h26\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"/>"
        "<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
        x, y - 4, colour, dash, x + 32, y, text);
    x += 56 + 7.2 * static_cast<double>(text.size());
  };
  for (std::size_t i = 0; i < changes.size(); ++i) entry(changes[i], colours[i % colours.size()], "none");
  x = left;
  y += 20;
  for (std::size_t i = 0; i < epsilons.size(); ++i)
    entry(fmt::format("eps = {:g}", epsilons[i]), "#59626b", dashes[i % dashes.size()]);
  return body;
}

// Those of `order` that occur, in that order, then the others.
std::vector<std::string> ordered(const std::vector<SeparationCurve>& curves, std::string SeparationCurve::*name,
                                 std::vector<std::string> order) {
  for (const SeparationCurve& curve : curves) index_in(order, curve.*name);
  std::vector<std::string> present;
  for (const std::string& each : order)
    if (std::any_of(curves.begin(), curves.end(), [&](const SeparationCurve& curve) { return curve.*name == each; }))
      present.push_back(each);
  return present;
}

std::string chart(const std::vector<SeparationCurve>& curves) {
  std::vector<std::string> changes;
  std::vector<std::string> kinds = ordered(curves, &SeparationCurve::kind, {"rms", "layer_norm", "l2"});
  std::vector<std::string> formats =
      ordered(curves, &SeparationCurve::format, {"binary64", "binary32", "bfloat16", "binary16"});
  std::vector<double> epsilons;
  std::map<std::pair<std::size_t, std::size_t>, std::string> lines;
  std::map<std::string, std::string> first_profile;  // of a format; the others would hide it
  double smallest = HUGE_VAL, largest = 0;
  for (const SeparationCurve& curve : curves)
    for (const CurvePoint& point : curve.points) {
      if (!(point.ratio > 0 && std::isfinite(point.ratio))) continue;  // a row of zeros stands at the edge
      smallest = std::min(smallest, point.ratio);
      largest = std::max(largest, point.ratio);
    }
  if (!(largest > 0)) smallest = largest = 1;
  const int first_x = static_cast<int>(std::floor(std::log10(smallest))),
            last_x = std::max(first_x + 1, static_cast<int>(std::ceil(std::log10(largest))));
  const auto panel_at = [&](std::size_t kind, std::size_t format) {
    return Panel{left + (panel_width + gap_x) * static_cast<double>(format),
                 top + (panel_height + gap_y) * static_cast<double>(kind),
                 first_x,
                 last_x,
                 -4,
                 6};
  };
  for (const SeparationCurve& curve : curves) {
    if (first_profile.emplace(curve.format, curve.profile).first->second != curve.profile) continue;
    const std::size_t kind = index_in(kinds, curve.kind), format = index_in(formats, curve.format);
    const char* colour = colours[index_in(changes, change_of(curve)) % colours.size()];
    const char* dash = dashes[index_in(epsilons, curve.eps) % dashes.size()];
    lines[{kind, format}] += line_of(curve, panel_at(kind, format), colour, dash);
  }
  std::string body;
  for (const auto& [place, drawn] : lines)
    body +=
        axes(panel_at(place.first, place.second), fmt::format("{}, {} ({})", kinds[place.first], formats[place.second],
                                                              first_profile[formats[place.second]])) +
        drawn;
  const double width = left + (panel_width + gap_x) * static_cast<double>(formats.size());
  const double bottom = top + (panel_height + gap_y) * static_cast<double>(kinds.size());
  body += fmt::format(
      "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">size of the row of q: sqrt(t / eps), t = mean square, "
      "variance or sum of squares</text>\n",
      width / 2, bottom - 12);
  body += fmt::format(
      "<text transform=\"translate(16 {:.0f}) rotate(-90)\" text-anchor=\"middle\">separation in q_norm; above 1 "
      "(red) the difference is proven visible</text>\n",
      (top + bottom) / 2 - 20);
  body += legend(changes, epsilons, bottom + 14);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "role=\"img\" aria-label=\"Separation of contracts with another epsilon against the size of the input row\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#1c2126\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{2}</svg>\n",
      width, bottom + 50, body);
}

}  // namespace

void draw_separation_rows(const CorpusReader& reader, const std::string& contracts, const std::string& families,
                          const std::string& path) {
  require_destination(path, FileKind::drawing, {reader.info().path});
  const std::vector<SeparationCurve> curves = separation_curves(reader, contracts, families);
  if (curves.empty())
    throw InputError(
        fmt::format("{}: no case to draw: wanted is a norm over each head of an input q, with an epsilon above 0",
                    reader.info().path));
  write_file_atomically(path, chart(curves));
  fmt::print("{}: {} curves\n", path, curves.size());
}

}  // namespace qkcts::cli
