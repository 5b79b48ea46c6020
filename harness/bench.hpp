// SPDX-License-Identifier: Apache-2.0
// Error and time of several adapters on the same cases, so that one is not chosen without the other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/json.hpp"
#include "harness/case_run.hpp"

namespace qkcts {

struct BenchRequest {
  std::vector<AdapterSpec> adapters;  // ratios are to the first
  std::string corpus_path;
  std::string case_glob = "*";
  StageSet stages = bit(QKCTS_STAGE_OUTPUT);  // asked for; more of them cost a fused kernel time
  int rounds = 5;                             // in each, every adapter runs the case once, one after the other
  WorkerLimits limits;
};

// One adapter on one case.
struct BenchCell {
  Verdict verdict = Verdict::not_run;
  std::string detail;
  double max_ulp = 0, max_ratio = 0;  // over the stages asked for; of the first round
  std::vector<double> seconds;        // of each round; empty unless every round ended well
  double time_ratio = 0;              // median over the rounds of its time by that of the first adapter; 0: not known
};

struct BenchCase {
  std::string slug, contract;
  Format format = Format::binary32;
  std::vector<BenchCell> cells;  // by adapter
};

struct BenchAdapter {
  AdapterSpec spec;
  AdapterDescription description;
  std::string sha256;
  std::string unavailable;  // reason that probe() gave; empty if it is usable
};

struct BenchResult {
  std::string corpus_suite, corpus_digest;
  std::vector<BenchAdapter> adapters;
  std::vector<BenchCase> cases;
  int rounds = 0;
  int interrupted_by = 0;
};

using BenchProgress = std::function<void(std::size_t done, std::size_t all, const std::string& slug)>;

// Throws InputError, AdapterError. A crash or timeout is the verdict of its cell.
BenchResult bench(const BenchRequest& request, const BenchProgress& progress = {});

// Of one adapter, over all cases.
struct BenchSummary {
  int passed = 0, violated = 0, other = 0;
  double max_ulp = 0, max_ratio = 0;
  int timed = 0;  // cases for which a time ratio is known
  double median_ratio = 0, least_ratio = 0, largest_ratio = 0;
};
BenchSummary summarise_bench(const BenchResult& result, std::size_t adapter);

// Times stand on their own where the device is no processor of this machine: those of a shared one say little.
bool has_device(const AdapterDescription& description);

// 0: every adapter passed in some case and violated in none; 1 otherwise; 5: nothing ran.
int bench_exit_code(const BenchResult& result);

std::string bench_text(const BenchResult& result);
// The document of conformance/schemas/bench.schema.json.
Json bench_json(const BenchResult& result);

}  // namespace qkcts
