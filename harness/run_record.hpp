// SPDX-License-Identifier: Apache-2.0
// One run of one adapter over one corpus: the single source of every report, and run.json itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/growing_file.hpp"
#include "conformance/json.hpp"
#include "harness/adapter_description.hpp"
#include "harness/case_results.hpp"
#include "harness/demands.hpp"
#include "harness/diagnosis.hpp"
#include "harness/known_failures.hpp"
#include "harness/relation_result.hpp"

namespace qkcts {

struct Machine {
  std::string system, release, architecture, processor;
  int logical_processors = 0;
  std::uint64_t worker_memory_mib = 0;  // that each worker was left, asked for or not; 0: nothing ran in a worker
};
Machine this_machine();

// Of the case in which a stage came nearest to its budget, or went farthest beyond it.
struct StageHeat {
  qkcts_stage stage = QKCTS_STAGE_OUTPUT;
  std::string slug;
  double max_ratio = 0;
  HeatMap map;
};

// How the adapter was run, beside what is judged and by what.
struct RunConditions {
  std::string case_glob = "*";
  std::string shard;  // "I/N", else empty
  Variants variants = Variants::none;
  bool in_process = false;
  std::vector<std::string> gtest;                       // arguments behind --
  std::uint64_t memory_mib = 0, address_space_mib = 0;  // 0: as WorkerLimits says
  double processor_seconds = 0;
  int respawns = 0;
};

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
  bool plain = false;       // StageResult::plain was asked for
  std::string limits_text;  // canonical JSON of --limits, else empty
  Demands demands;
  std::vector<KnownFailureUse> known_failures;  // of --known-failures
  int repeat = 1;
  double timeout_seconds = 0;
  RunConditions conditions;
  int interrupted_by = 0;                        // signal
  std::optional<std::size_t> planned_cases;      // of a run that did not end, of which this is what its journal holds
  std::map<std::string, std::string> contracts;  // name -> canonical JSON, of the contracts that occur
  CaseResults cases;
  std::vector<RelationResult> relations;
  std::optional<Diagnosis> diagnosis;  // if one was asked for
  std::vector<StageHeat> heat_maps;    // at most one per stage, in order of evaluation
};

// The file that holds all of it, which reports name where they leave something out.
inline std::string_view record_file(const RunRecord& record) {
  return record.planned_cases ? "run.part" : "run.json";
}

// Moves the heat maps of the case into the record where they are the worst of their stage, and drops the others.
void keep_worst_heat(RunRecord& record, CaseResult& result);

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

// The same without the cases, which are many.
Json frame_json(const RunRecord& record);

// run.json as it is written.
void write_run_json(const RunRecord& record, const TextSink& sink);
std::string run_json_text(const RunRecord& record);

// The inverse. Throws InputError naming `origin` and the JSON pointer of the first fault; what the schema does not know
// is one.
RunRecord record_from_json(std::string_view text, std::string_view origin);
RunRecord read_run_record(const std::string& path);
// Of frame_json().
RunRecord record_from_frame(const Json& frame, const std::string& origin);

}  // namespace qkcts
