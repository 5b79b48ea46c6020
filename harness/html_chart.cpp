// SPDX-License-Identifier: Apache-2.0
#include "harness/html_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/report_html.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

// Error/Delta from 10^lowest to 10^highest; smaller ones and zeros stand at the left edge, larger ones at the right.
struct LogAxis {
  double lowest, highest;
  double left, width;

  double at(double ratio) const {
    const double decade = ratio > 0 ? std::log10(ratio) : lowest;
    return left + width * (std::clamp(decade, lowest, highest) - lowest) / (highest - lowest);
  }
};

std::string decade_label(int decade, const LogAxis& axis) {
  if (decade == static_cast<int>(axis.lowest)) return fmt::format("&#8804; 1e{}", decade);
  if (decade == static_cast<int>(axis.highest)) return fmt::format("&#8805; 1e{}", decade);
  if (decade >= -2 && decade <= 2) return fmt::format("{:g}", std::pow(10.0, decade));
  return fmt::format("1e{}", decade);
}

std::string_view dot_class(Verdict verdict) {
  if (violates(verdict)) return "bad";
  return verdict == Verdict::pass ? "good" : "dim";
}

// Dots so near that they would hide each other are one, which names the first of them and says how many more there
// are. So a run of any length has a picture of some thousand dots at most.
class Dots {
 public:
  explicit Dots(double radius) : radius_(radius) {}

  // `label`: HTML.
  void add(std::string_view kind, double x, double y, const std::string& label) {
    const auto [place, is_new] = dots_.try_emplace({kind, std::lround(x / apart), std::lround(y / apart)});
    Dot& dot = place->second;
    if (is_new) dot = {x, y, label, 0, static_cast<int>(dots_.size())};
    ++dot.count;
  }

  std::string svg() const {
    std::vector<std::pair<std::string_view, const Dot*>> order;
    for (const auto& [key, dot] : dots_) order.emplace_back(std::get<0>(key), &dot);
    std::sort(order.begin(), order.end(),
              [](const auto& a, const auto& b) { return a.second->number < b.second->number; });
    std::string text;
    for (const auto& [kind, dot] : order)
      text += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\"><title>{}{}</title></circle>\n",
                          kind, dot->x, dot->y, radius_, dot->label,
                          dot->count == 1 ? "" : fmt::format(", and {} more here", dot->count - 1));
    return text;
  }

 private:
  static constexpr double apart = 1.5;  // half a radius
  struct Dot {
    double x = 0, y = 0;
    std::string label;
    int count = 0, number = 0;
  };
  double radius_;
  std::map<std::tuple<std::string_view, long, long>, Dot> dots_;
};

// The dots of one stage spread over the height of its line, in the order of the cases, so that they hide each other
// less.
std::string stage_dots(const RunRecord& record, qkcts_stage stage, const LogAxis& axis, double top, double height) {
  Dots dots(3), plain(2.5);
  int index = 0;
  for (const CaseResult& result : record.cases) {
    for (const StageResult& entry : result.stages) {
      if (entry.stage != stage || !entry.judgement) continue;
      const double spread = static_cast<double>(index++ * 7 % 11) / 10;
      const double y = top + height * (0.1 + (entry.plain ? 0.4 : 0.7) * spread);
      const std::string name = html_escaped(result.slug);
      if (entry.plain)
        plain.add("plain", axis.at(entry.plain->max_ratio), top + height * (0.7 + 0.2 * spread),
                  fmt::format("plain, {}: {}", name, short_text(entry.plain->max_ratio)));
      dots.add(dot_class(entry.verdict), axis.at(entry.judgement->max_ratio), y,
               fmt::format("{}: {}", name, short_text(entry.judgement->max_ratio)));
    }
  }
  return plain.svg() + dots.svg();
}

using Histogram = std::array<std::uint64_t, histogram_edges.size() + 1>;

Histogram stage_histogram(const RunRecord& record, qkcts_stage stage) {
  Histogram sum{};
  for (const CaseResult& result : record.cases) {
    for (const StageResult& entry : result.stages) {
      if (entry.stage != stage || !entry.judgement) continue;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += entry.judgement->histogram[i];
    }
  }
  return sum;
}

std::string class_label(std::size_t index) {
  if (index == 0) return "exact";
  if (index == histogram_edges.size()) return fmt::format("more than {:g} ulp", histogram_edges.back());
  return fmt::format("up to {:g} ulp", histogram_edges[index]);
}

std::string histogram_figure(qkcts_stage stage, const Histogram& histogram) {
  const std::uint64_t largest = *std::max_element(histogram.begin(), histogram.end());
  constexpr double bar = 14, base = 92, tallest = 70;
  std::string bars;
  for (std::size_t i = 0; i < histogram.size(); ++i) {
    if (histogram[i] == 0) continue;
    // Square root: single elements stay visible beside millions.
    const double height =
        std::max(1.0, tallest * std::sqrt(static_cast<double>(histogram[i]) / static_cast<double>(largest)));
    bars += fmt::format(
        "<rect class=\"bar\" x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\"><title>{}: {}</title></rect>\n",
        8 + bar * static_cast<double>(i), base - height, bar - 2, height, class_label(i), histogram[i]);
  }
  std::string ticks;
  for (const std::size_t i : {std::size_t{0}, std::size_t{4}, std::size_t{8}, std::size_t{12}}) {
    ticks += fmt::format("<text x=\"{}\" y=\"106\" text-anchor=\"middle\">{:g}</text>",
                         15 + bar * static_cast<double>(i), histogram_edges[i]);
  }
  return fmt::format(
      "<figure><figcaption>{0}</figcaption><svg viewBox=\"0 0 240 112\" role=\"img\" aria-label=\"Histogram of ulp "
      "errors of "
      "{0}\">\n{1}<line class=\"axis\" x1=\"4\" y1=\"{2}\" x2=\"236\" y2=\"{2}\"/>{3}</svg></figure>\n",
      stage_name(stage), bars, base, ticks);
}

}  // namespace

std::string ratio_chart(const RunRecord& record) {
  std::vector<qkcts_stage> stages;
  for (const qkcts_stage stage : all_stages) {
    const Histogram histogram = stage_histogram(record, stage);
    if (std::any_of(histogram.begin(), histogram.end(), [](std::uint64_t n) { return n > 0; })) stages.push_back(stage);
  }
  if (stages.empty()) return "<p>No element was measured.</p>\n";
  constexpr double line = 48, top = 14;
  const LogAxis axis = {-6, 3, 84, 680};
  const double bottom = top + line * static_cast<double>(stages.size());
  std::string body;
  for (int decade = static_cast<int>(axis.lowest); decade <= static_cast<int>(axis.highest); ++decade) {
    const double x = axis.at(std::pow(10.0, decade));
    body += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\"/>",
                        decade == 0 ? "mark" : "grid", x, top, x, bottom);
    body += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x, bottom + 18,
                        decade_label(decade, axis));
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const double y = top + line * static_cast<double>(i);
    body += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\"/><text x=\"{3}\" y=\"{4}\" "
        "text-anchor=\"end\">{5}</text>\n",
        axis.left, y, axis.left + axis.width, axis.left - 8, y + line / 2 + 4, stage_name(stages[i]));
    body += stage_dots(record, stages[i], axis, y, line);
  }
  body += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">largest error / &#916; of a case</text>",
                      axis.left + axis.width / 2, bottom + 38);
  return fmt::format(
      "<svg class=\"wide\" viewBox=\"0 0 796 {}\" role=\"img\" aria-label=\"Largest error over Delta of every "
      "case, one line per stage, logarithmic axis; the table below holds the figures\">\n{}</svg>\n",
      bottom + 46, body);
}

std::string ulp_histograms(const RunRecord& record) {
  std::string figures;
  for (const qkcts_stage stage : all_stages) {
    const Histogram histogram = stage_histogram(record, stage);
    if (*std::max_element(histogram.begin(), histogram.end()) > 0) figures += histogram_figure(stage, histogram);
  }
  return "<div class=\"figures\">\n" + figures + "</div>\n";
}

}  // namespace qkcts
