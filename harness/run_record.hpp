// SPDX-License-Identifier: Apache-2.0
// One run of one adapter over one corpus: the single source of every report, and run.json itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/json.hpp"
#include "harness/adapter_description.hpp"
#include "harness/case_run.hpp"
#include "harness/diagnosis.hpp"
#include "harness/relation_result.hpp"

namespace qkcts {

struct Machine {
  std::string system, release, architecture, processor;
  int logical_processors = 0;
};
Machine this_machine();

struct RunRecord {
  std::string suite_version;
  std::string started;               // UTC, ISO 8601
  double seconds = 0;                // wall clock
  std::vector<std::string> command;  // as typed
  Machine machine;
  AdapterSpec adapter;
  std::string adapter_sha256;
  AdapterDescription description;
  std::string unavailable;  // reason that probe() gave; empty if the adapter is usable
  std::string corpus_path, corpus_suite, corpus_digest, generator_version;
  std::string profile_asked;  // --profile, else empty
  std::string stages_asked;   // --stages, comma-separated, else empty
  Judging judging = Judging::values_and_relations;
  std::string limits_text;  // canonical JSON of --limits, else empty
  int repeat = 1;
  double timeout_seconds = 0;
  int interrupted_by = 0;                        // signal
  std::map<std::string, std::string> contracts;  // name -> canonical JSON, of the contracts that occur
  std::vector<CaseResult> cases;
  std::vector<RelationResult> relations;
  std::optional<Diagnosis> diagnosis;  // if one was asked for
};

struct RunSummary {
  std::map<Verdict, int> cases;   // verdict -> number of cases
  std::map<Verdict, int> stages;  // verdict -> number of case x stage
  std::map<Verdict, int> relations;
  int limit_violations = 0;  // case x stage over a user's own limit
};
RunSummary summarise(const RunRecord& record);

// 0, 1 or 5 by the table in harness/README.md; 128 + n after a signal.
int exit_code(const RunRecord& record);

// Exit code 1, and only because of the user's own limits: Delta alone would have given 0.
bool over_own_limits_alone(const RunRecord& record);

// The document of conformance/schemas/run.schema.json. Figures that are not finite are null.
Json to_json(const RunRecord& record);

// run.json as it is written.
std::string run_json_text(const RunRecord& record);

}  // namespace qkcts
