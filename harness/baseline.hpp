// SPDX-License-Identifier: Apache-2.0
// What an adapter reached before: figures per case and stage, kept in a file beside its sources, for harness/gate.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/run_record.hpp"

namespace qkcts {

struct BaselineEntry {
  std::string contract, slug;
  qkcts_stage stage = QKCTS_STAGE_OUTPUT;
  std::string profile, implementation;
  double max_ulp = 0, max_ratio = 0;  // ratio: error/Delta
  std::string output_sha256;
};

// Figures are compared only where all of this is the same.
struct BaselineScope {
  std::string adapter;        // its name, not its version: versions are what a gate compares
  std::string machine_class;  // what may round otherwise is another class
  std::string suite, corpus_digest;
};
bool operator==(const BaselineScope& a, const BaselineScope& b);

struct BaselineRun {
  BaselineScope scope;
  std::vector<BaselineEntry> entries;  // by case, then in order of evaluation
};

struct Baseline {
  std::vector<BaselineRun> runs;  // one of each scope
};

// Architecture and model of the processor, and the device that the adapter names.
std::string machine_class(const RunRecord& record);

// The judged stages of a run that do not violate: what failed is no measure.
BaselineRun baseline_of(const RunRecord& record, const std::string& machine_class);

// Throws InputError naming `origin` and the JSON pointer of the first fault.
Baseline baseline_from_json(std::string_view text, std::string_view origin);
// A file of it, or a run.json, which is a baseline of one run.
Baseline read_baseline(const std::string& path);
std::string baseline_json_text(const Baseline& baseline);

struct BaselineChange {
  std::size_t entries = 0, added = 0, changed = 0, removed = 0;
};

// The run takes the place of what the baseline says of its cases. Entries of cases that the run left out, or did not
// come to, stay.
BaselineChange update_baseline(Baseline& baseline, const RunRecord& record, const std::string& machine_class);

}  // namespace qkcts
