// SPDX-License-Identifier: Apache-2.0
#include "harness/run_findings.hpp"

#include <utility>

namespace qkcts {
namespace {

void leave_out(StageResult& stage) {
  const qkcts_stage left_out = stage.stage;
  stage = {};
  stage.stage = left_out;
  stage.verdict = Verdict::skipped;
  stage.detail = "left out by a filter";
}

}  // namespace

void RunFindings::read_earlier() {
  if (!request_.journal_folder.empty() && !journal_ && request_.resume)
    earlier_ = journaled_run(request_.journal_folder, record_);
}

void RunFindings::open_journal(std::size_t cases) {
  if (request_.journal_folder.empty() || journal_) return;
  journal_ =
      std::make_unique<RunJournal>(request_.journal_folder, record_, cases, request_.resume ? &earlier_ : nullptr);
  record_.contracts.insert(earlier_.contracts.begin(), earlier_.contracts.end());
  record_.heat_maps = std::move(earlier_.heat_maps);
  if (!earlier_.started.empty()) record_.started = earlier_.started;
}

CaseResult RunFindings::add(CaseResult fresh) {
  std::optional<std::uint32_t>& place = cases_.at(fresh.slug).place;
  const CaseResults& results = record_.cases;
  const bool is_new = !place;
  if (is_new) place = static_cast<std::uint32_t>(results.size());
  if (is_new || fresh.verdict > results[*place].verdict) {
    keep_worst_heat(record_, fresh);
    (is_new ? record_.cases.emplace_back() : record_.cases[*place]) = std::move(fresh);
  }
  CaseResult shown = results[*place];
  if (journal_ && !earlier_.holds(shown.slug)) journal_->add(record_, shown);
  apply_known_failures(shown, record_.known_failures, request_.options.stages);
  return shown;
}

RelationResult RunFindings::add(RelationResult fresh) {
  if (journal_ && !earlier_.relations.contains(fresh.slug)) journal_->add(fresh);
  RelationResult shown = fresh;
  const auto [known, is_new] = relation_places_.try_emplace(fresh.slug, record_.relations.size());
  if (is_new) {
    record_.relations.push_back(std::move(fresh));
  } else if (fresh.verdict > record_.relations[known->second].verdict) {
    record_.relations[known->second] = std::move(fresh);
  }
  apply_known_failures(shown, record_.known_failures);
  return shown;
}

void RunFindings::finish() {
  for (CaseResult& result : record_.cases) {
    const StageSet selected = cases_.at(result.slug).selected;
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
