// SPDX-License-Identifier: Apache-2.0
#include "harness/bench.hpp"

#include <algorithm>
#include <memory>

#include <fnmatch.h>

#include "harness/adapter_digest.hpp"
#include "harness/interruption.hpp"
#include "harness/utf8_text.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Contestant {
  BenchAdapter* adapter;
  std::unique_ptr<AdapterRunner> runner;
};

void open(Contestant& contestant) {
  const OpenAnswer answer = contestant.runner->open(true);
  BenchAdapter& adapter = *contestant.adapter;
  adapter.description = description_from_adapter(answer.description, adapter.spec.given);
  if (answer.probe != QKCTS_OK)
    adapter.unavailable = answer.probe_reason.empty() ? "probe() gave no reason" : utf8_line(answer.probe_reason);
}

// Is there any sense in timing it again? What failed may be right later, but what crashed will crash again.
bool ended_well(const CaseResult& result) {
  return result.calls > 0 && row(result.verdict).junit != JunitElement::error;
}

void add_round(BenchCell& cell, const CaseResult& result, int round) {
  if (round == 0) {
    cell.verdict = result.verdict;
    cell.detail = result.detail;
    for (const StageResult& stage : result.stages) {
      if (!stage.judgement) continue;
      cell.max_ulp = std::max(cell.max_ulp, stage.judgement->max_ulp);
      cell.max_ratio = std::max(cell.max_ratio, stage.judgement->max_ratio);
    }
  }
  cell.verdict = graver(cell.verdict, result.verdict);
  if (ended_well(result)) cell.seconds.push_back(result.seconds);
}

// Pairs of one round share what else the machine was doing; the median keeps what most rounds agree on.
void set_time_ratios(BenchCase& one, int rounds) {
  for (BenchCell& cell : one.cells)
    if (cell.seconds.size() != static_cast<std::size_t>(rounds)) cell.seconds.clear();
  const std::vector<double>& first = one.cells.front().seconds;
  for (BenchCell& cell : one.cells) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(cell.seconds.size(), first.size()); ++i)
      if (first[i] > 0) ratios.push_back(cell.seconds[i] / first[i]);
    if (!ratios.empty()) cell.time_ratio = median(std::move(ratios));
  }
}

BenchCase bench_case(const GoldenCase& golden, std::vector<Contestant>& contestants, const BenchRequest& request) {
  BenchCase one = {golden.input.slug, golden.input.contract.name, golden.input.inputs.format, {}};
  one.cells.resize(contestants.size());
  RunOptions options;
  options.stages = request.stages;
  for (int round = 0; round < request.rounds && interruption() == 0; ++round) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      BenchCell& cell = one.cells[i];
      if (!contestants[i].adapter->unavailable.empty()) {
        cell.detail = contestants[i].adapter->unavailable;
      } else if (round == 0 || !cell.seconds.empty()) {
        add_round(cell, run_case(*contestants[i].runner, contestants[i].adapter->description, golden, options), round);
      }
    }
  }
  set_time_ratios(one, request.rounds);
  return one;
}

}  // namespace

BenchResult bench(const BenchRequest& request, const BenchProgress& progress) {
  check_untrusted_corpus(request.corpus_path);
  const CorpusReader corpus(request.corpus_path);
  BenchResult result;
  result.corpus_suite = corpus.info().suite;
  result.corpus_digest = corpus.info().digest;
  result.rounds = request.rounds;
  result.adapters.resize(request.adapters.size());
  std::vector<Contestant> contestants;
  for (std::size_t i = 0; i < request.adapters.size(); ++i) {
    result.adapters[i].spec = request.adapters[i];
    result.adapters[i].sha256 = adapter_digest(request.adapters[i]);
    contestants.push_back({&result.adapters[i], worker_runner(request.adapters[i], request.limits)});
    open(contestants.back());
  }
  std::vector<std::string> slugs = corpus.slugs();
  std::erase_if(slugs,
                [&](const std::string& slug) { return fnmatch(request.case_glob.c_str(), slug.c_str(), 0) != 0; });
  for (const std::string& slug : slugs) {
    if (interruption() != 0) break;
    result.cases.push_back(bench_case(corpus.read(slug), contestants, request));
    if (progress) progress(result.cases.size(), slugs.size(), slug);
  }
  result.interrupted_by = interruption();
  return result;
}

BenchSummary summarise_bench(const BenchResult& result, std::size_t adapter) {
  BenchSummary summary;
  std::vector<double> ratios;
  for (const BenchCase& one : result.cases) {
    const BenchCell& cell = one.cells[adapter];
    ++(cell.verdict == Verdict::pass ? summary.passed : violates(cell.verdict) ? summary.violated : summary.other);
    summary.max_ulp = std::max(summary.max_ulp, cell.max_ulp);
    summary.max_ratio = std::max(summary.max_ratio, cell.max_ratio);
    if (cell.time_ratio > 0) ratios.push_back(cell.time_ratio);
  }
  summary.timed = static_cast<int>(ratios.size());
  if (ratios.empty()) return summary;
  const auto [least, largest] = std::minmax_element(ratios.begin(), ratios.end());
  summary.least_ratio = *least;
  summary.largest_ratio = *largest;
  summary.median_ratio = median(std::move(ratios));
  return summary;
}

bool has_device(const AdapterDescription& description) {
  return !description.device.empty() && description.device.rfind("cpu", 0) != 0;
}

int bench_exit_code(const BenchResult& result) {
  if (result.interrupted_by != 0) return 128 + result.interrupted_by;
  bool ran = false, conforms = true;
  for (std::size_t i = 0; i < result.adapters.size(); ++i) {
    const BenchSummary summary = summarise_bench(result, i);
    ran = ran || summary.passed + summary.violated > 0;
    conforms = conforms && summary.passed > 0 && summary.violated == 0;
  }
  return !ran ? 5 : conforms ? 0 : 1;
}

}  // namespace qkcts
