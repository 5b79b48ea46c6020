// SPDX-License-Identifier: Apache-2.0
#include "harness/run_findings.hpp"

#include <algorithm>

namespace qkcts {
namespace {

// Where the result stands in the record.
template <class Result>
Result& put(std::vector<Result>& results, Result fresh) {
  const auto known =
      std::find_if(results.begin(), results.end(), [&](const Result& result) { return result.slug == fresh.slug; });
  if (known == results.end()) return results.emplace_back(std::move(fresh));
  if (fresh.verdict > known->verdict) *known = std::move(fresh);
  return *known;
}

void leave_out(StageResult& stage) {
  const qkcts_stage left_out = stage.stage;
  stage = {};
  stage.stage = left_out;
  stage.verdict = Verdict::skipped;
  stage.detail = "left out by a filter";
}

}  // namespace

void RunFindings::open_journal() {
  if (request_.journal_folder.empty() || journal_) return;
  if (request_.resume) earlier_ = journaled_run(request_.journal_folder, record_);
  journal_ = std::make_unique<RunJournal>(request_.journal_folder, record_, request_.resume ? &earlier_ : nullptr);
  record_.contracts.insert(earlier_.contracts.begin(), earlier_.contracts.end());
  record_.heat_maps = std::move(earlier_.heat_maps);
  if (!earlier_.started.empty()) record_.started = earlier_.started;
}

CaseResult RunFindings::add(CaseResult fresh) {
  CaseResult& kept = put(record_.cases, std::move(fresh));
  keep_worst_heat(record_, kept);
  if (journal_ && !earlier_.cases.contains(kept.slug)) journal_->add(record_, kept);
  CaseResult shown = kept;
  apply_known_failures(shown, record_.known_failures, request_.options.stages);
  return shown;
}

RelationResult RunFindings::add(RelationResult fresh) {
  if (journal_ && !earlier_.relations.contains(fresh.slug)) journal_->add(fresh);
  RelationResult shown = fresh;
  put(record_.relations, std::move(fresh));
  apply_known_failures(shown, record_.known_failures);
  return shown;
}

void RunFindings::finish() {
  for (CaseResult& result : record_.cases) {
    const StageSet selected = selected_[result.slug];
    Verdict gravest = Verdict::not_run;
    for (StageResult& stage : result.stages) {
      if ((selected & bit(stage.stage)) == 0) leave_out(stage);
      gravest = graver(gravest, stage.verdict);
    }
    result.verdict = gravest;
    apply_known_failures(result, record_.known_failures, request_.options.stages);
  }
  for (RelationResult& result : record_.relations) apply_known_failures(result, record_.known_failures);
}

}  // namespace qkcts
