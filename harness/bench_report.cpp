// SPDX-License-Identifier: Apache-2.0
// A bench in writing.
#include <fmt/format.h>

#include <algorithm>

#include "harness/bench.hpp"
#include "harness/record_values.hpp"
#include "harness/value_text.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts {
namespace {

double fastest(const BenchCell& cell) {
  return cell.seconds.empty() ? 0 : *std::min_element(cell.seconds.begin(), cell.seconds.end());
}

double total_milliseconds(const BenchResult& result, std::size_t adapter) {
  double seconds = 0;
  for (const BenchCase& one : result.cases) seconds += fastest(one.cells[adapter]);
  return seconds * 1000;
}

Json cell_json(const BenchCell& cell, bool with_times) {
  Json json = {{"verdict", verdict_name(cell.verdict)},
               {"detail", cell.detail},
               {"max_ulp", figure_json(cell.max_ulp)},
               {"max_error_over_delta", figure_json(cell.max_ratio)},
               {"time_ratio", cell.time_ratio > 0 ? Json(cell.time_ratio) : Json()}};
  if (with_times) json["milliseconds"] = cell.seconds.empty() ? Json() : Json(fastest(cell) * 1000);
  return json;
}

}  // namespace

std::string bench_text(const BenchResult& result) {
  const std::string rule = std::string(terminal_columns, '-') + "\n";
  std::string text = fmt::format("suite {} {:.12}, {}, {} of every adapter in turn\n\n", result.corpus_suite,
                                 result.corpus_digest, counted(result.cases.size(), "case", "cases"),
                                 counted(static_cast<std::uint64_t>(result.rounds), "round", "rounds"));
  text += fmt::format("{:<21}{:>6}{:>6}{:>6}{:>9}{:>10}  {:>8}{:>12}\n", "adapter", "pass", "fail", "other", "max ulp",
                      "max err/D", "time", "least-most") +
          rule;
  std::string notes;
  for (std::size_t i = 0; i < result.adapters.size(); ++i) {
    const BenchAdapter& adapter = result.adapters[i];
    const BenchSummary s = summarise_bench(result, i);
    const bool judged = s.passed + s.violated > 0;
    text += fmt::format("{:<21}{:>6}{:>6}{:>6}{:>9}{:>10}  {:>8}{:>12}\n", clipped(adapter.spec.given, 20), s.passed,
                        s.violated, s.other, judged ? short_text(s.max_ulp) : "-",
                        judged ? short_text(s.max_ratio) : "-", s.timed > 0 ? short_text(s.median_ratio) + "x" : "-",
                        s.timed > 0 ? fmt::format("{:.2g}-{:.2g}", s.least_ratio, s.largest_ratio) : "-");
    if (has_device(adapter.description))
      notes += wrapped(adapter.spec.given + " ",
                       fmt::format("on {}: {:.3f} ms for all cases it ran, the fastest call of each",
                                   adapter.description.device, total_milliseconds(result, i)),
                       2);
    if (!adapter.unavailable.empty()) notes += wrapped(adapter.spec.given + ": ", adapter.unavailable, 2);
  }
  return text + rule + notes +
         "time: by that of the first adapter; of each case the median over pairs of one\n"
         "round, of the cases the median. err/D above 1 fails.\n";
}

Json bench_json(const BenchResult& result) {
  Json adapters = Json::array();
  for (std::size_t i = 0; i < result.adapters.size(); ++i) {
    const BenchAdapter& adapter = result.adapters[i];
    const BenchSummary s = summarise_bench(result, i);
    adapters.push_back({{"given", adapter.spec.given},
                        {"sha256", adapter.sha256},
                        {"description", parse_json(adapter.description.text, "describe()")},
                        {"unavailable", adapter.unavailable},
                        {"passed", s.passed},
                        {"violated", s.violated},
                        {"other", s.other},
                        {"max_ulp", figure_json(s.max_ulp)},
                        {"max_error_over_delta", figure_json(s.max_ratio)},
                        {"timed_cases", s.timed},
                        {"median_time_ratio", s.timed > 0 ? Json(s.median_ratio) : Json()}});
  }
  Json cases = Json::array();
  for (const BenchCase& one : result.cases) {
    Json cells = Json::array();
    for (std::size_t i = 0; i < one.cells.size(); ++i)
      cells.push_back(cell_json(one.cells[i], has_device(result.adapters[i].description)));
    cases.push_back({{"case", one.slug},
                     {"contract", one.contract},
                     {"format", parameters(one.format).name},
                     {"adapters", std::move(cells)}});
  }
  return {{"schema", "qkcts-bench/1"},
          {"corpus", {{"suite", result.corpus_suite}, {"digest", result.corpus_digest}}},
          {"rounds", result.rounds},
          {"interrupted_by", result.interrupted_by},
          {"exit_code", bench_exit_code(result)},
          {"adapters", std::move(adapters)},
          {"cases", std::move(cases)}};
}

}  // namespace qkcts
