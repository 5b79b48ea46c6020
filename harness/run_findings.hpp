// SPDX-License-Identifier: Apache-2.0
// What a run has found so far: in its record, in its journal, and as its user sees it, with known failures marked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "harness/run_journal.hpp"
#include "harness/run_request.hpp"

namespace qkcts {

class RunFindings {
 public:
  // Both outlive the object.
  RunFindings(const RunRequest& request, RunRecord& record) : request_(request), record_(record) {}

  // The run that this one goes on with, if the request asks for that. Not before the adapter is described.
  void read_earlier();
  // Behind that: begins the journal, or goes on with that of the earlier run, if the request names a folder for it. Its
  // first line holds what the record says by then. What was opened stays open. `cases`: so many will be run.
  void open_journal(std::size_t cases);

  // Of the run that this one goes on with.
  bool is_earlier(const std::string& slug) const { return earlier_.holds(slug); }
  const CaseResult& earlier_case(const std::string& slug) const {
    return earlier_.cases[earlier_.place_of_case.at(slug)];
  }
  const std::map<std::string, RelationResult>& earlier_relations() const { return earlier_.relations; }
  double earlier_seconds() const { return earlier_.seconds; }

  // The record keeps what was found, of repetitions the gravest. Returned is what the user sees.
  CaseResult add(CaseResult fresh);
  RelationResult add(RelationResult fresh);

  // The stage was selected, before its case is added; the name outlives the object. At the end the other stages are no
  // findings of this run, and known failures are marked.
  void select(std::string_view slug, qkcts_stage stage) { cases_[slug].selected |= bit(stage); }
  void finish();

 private:
  const RunRequest& request_;
  RunRecord& record_;
  JournaledRun earlier_;
  std::unique_ptr<RunJournal> journal_;
  struct KnownCase {
    StageSet selected = 0;
    std::optional<std::uint32_t> place;  // in the record, once it is there
  };
  std::map<std::string_view, KnownCase> cases_;
  std::map<std::string, std::size_t> relation_places_;  // by name, where in the record
};

}  // namespace qkcts
