// SPDX-License-Identifier: Apache-2.0
// What a run has found so far, as a file that grows by one line per case: whatever ends the run, at most the case in
// work is lost, and `run --resume` goes on behind it.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "harness/run_record.hpp"

namespace qkcts {

// What a journal, or the run.json of a run that was stopped, holds of cases that were run.
struct JournaledRun {
  std::string started;
  double seconds = 0;
  CaseResults cases;
  std::map<std::string, std::size_t> place_of_case;  // by name, where in `cases`
  std::map<std::string, RelationResult> relations;
  std::map<std::string, std::string> contracts;
  std::vector<StageHeat> heat_maps;
  std::uint64_t bytes = 0;  // of the journal's whole lines; a kill may leave a part of one behind them

  bool holds(const std::string& slug) const { return place_of_case.contains(slug); }
  // In the place of what was known of the case.
  void put(CaseResult result);
};

// FOLDER/run.part if it is there, else FOLDER/run.json; nothing where neither is. Throws UsageError if that is of
// another run than `head` (adapter, corpus, version, any option), and InputError if it cannot be read.
JournaledRun journaled_run(const std::string& folder, const RunRecord& head);

// What the journal of a run that did not end holds of it, with its known failures marked. Throws InputError.
RunRecord read_partial_run(const std::string& path);

// FOLDER/run.part.
std::string journal_path(const std::string& folder);

// Was everything run that can be? Else --resume has something to do.
bool nothing_is_left(const RunRecord& record);
void remove_journal(const std::string& folder);

class RunJournal {
 public:
  // Begins FOLDER/run.part with what `head` says of a run of so many cases, in the place of what is there, or goes on
  // behind the lines of `known`. All calls throw WriteError.
  RunJournal(const std::string& folder, const RunRecord& head, std::size_t cases, const JournaledRun* known);
  ~RunJournal();
  RunJournal(const RunJournal&) = delete;
  RunJournal& operator=(const RunJournal&) = delete;

  // Results of which nothing was run are no findings, and are left out.
  void add(const RunRecord& record, const CaseResult& result);
  void add(const RelationResult& result);

 private:
  void append(const Json& line);

  std::string path_;
  int file_ = -1;
  double seconds_before_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::map<std::string, std::string> contracts_;  // written already
  std::map<qkcts_stage, std::string> heat_;       // case of the map that was written last
};

}  // namespace qkcts
