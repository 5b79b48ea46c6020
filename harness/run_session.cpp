// SPDX-License-Identifier: Apache-2.0
#include "harness/run_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "harness/adapter_error.hpp"
#include "harness/failure_text.hpp"
#include "harness/interruption.hpp"
#include "harness/offline_runner.hpp"
#include "harness/relation_report.hpp"
#include "harness/run_findings.hpp"
#include "harness/run_head.hpp"
#include "harness/run_lanes.hpp"
#include "harness/run_selection.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts {
namespace {

// Runs each case when the first of its stage tests comes up: here, or ahead of time in lanes.
class Session {
 public:
  // `lanes` is null where cases are run one after another.
  Session(const RunRequest& request, const RunProgress& progress, const CorpusReader& corpus,
          RelationSession& relations, RunRecord& record, std::unique_ptr<CaseLanes> lanes)
      : request_(request),
        progress_(progress),
        corpus_(corpus),
        relations_(relations),
        record_(record),
        findings_(request, record),
        lanes_(std::move(lanes)) {}

  void open() {
    std::unique_ptr<AdapterRunner> adapter = adapter_runner(request_);
    try {
      if (record_.plain) plain_.emplace();
    } catch (const AdapterError&) {  // an installation without bundled kernels judges all the same
      record_.plain = false;
    }
    const OpenAnswer answer = opened(*adapter);
    add_adapter(record_, request_, answer);
    if (lanes_) {
      lanes_->begin({answer.description, record_.plain, record_.corpus_digest});
    } else {
      cases_ = case_runner(std::move(adapter));
    }
  }

  // The cases of which a stage is selected, in the order in which they will come up.
  void begin_round(const std::vector<std::string_view>& slugs) {
    current_.reset();
    relations_.begin_round();
    findings_.read_earlier();
    for (const auto& [slug, result] : findings_.earlier_relations()) relations_.skip(slug);
    if (lanes_ && record_.unavailable.empty()) plan_lanes(slugs);
    findings_.open_journal(slugs.size());
  }

  double earlier_seconds() const { return findings_.earlier_seconds(); }
  void finish() { findings_.finish(); }
  bool is_at_its_end() const { return !end_of_run().empty(); }

  StageTestResult run(const StageTest& test) {
    return test.stage ? run_stage(test) : run_relation(std::string(test.slug));
  }

 private:
  void plan_lanes(const std::vector<std::string_view>& slugs) {
    std::vector<LaneOrder> orders;
    for (const std::string_view name : slugs) {
      const std::string slug(name);
      if (!findings_.is_earlier(slug) || relations_.needs(slug)) orders.push_back(order_of(slug));
    }
    lanes_->plan(std::move(orders));
    WorkerLimits limits = request_.limits;
    limits.beside = lanes_->beside();
    record_.machine.worker_memory_mib = resident_limit(limits) >> 20;
  }

  StageTestResult run_stage(const StageTest& test) {
    const std::string slug(test.slug);
    findings_.select(test.slug, *test.stage);
    if (!current_ || current_->slug != slug) {
      current_ = findings_.add(run_one(slug));
      progress_.after_case(record_, *current_);
    }
    const StageResult& stage = *std::find_if(current_->stages.begin(), current_->stages.end(),
                                             [&](const StageResult& s) { return s.stage == *test.stage; });
    StageTestResult result;
    result.outcome = row(stage.verdict).junit;
    result.text = violates(stage.verdict) && !stage.judgement ? failure_text(record_, *current_)
                                                              : failure_text(record_, *current_, stage);
    if (stage.judgement && stage.judgement->limit && stage.judgement->limit->violations > 0 &&
        result.outcome == JunitElement::passed) {
      result.outcome = JunitElement::failure;
    }
    if (result.text.empty())
      result.text = fmt::format("{}: {}{}", verdict_name(stage.verdict), current_->detail, stage.detail);
    return result;
  }

  StageTestResult run_relation(const std::string& slug) {
    const auto earlier = findings_.earlier_relations().find(slug);
    // A case outside of the selection has no result of its own.
    const RelationResult shown = findings_.add(
        earlier != findings_.earlier_relations().end()
            ? earlier->second
            : relations_.judge(slug, record_.description, [&](const std::string& name) { run_one(name); }));
    StageTestResult result;
    result.outcome = row(shown.verdict).junit;
    result.text = relation_failure_text(record_, shown);
    if (result.text.empty()) result.text = fmt::format("{}: {}", verdict_name(shown.verdict), shown.detail);
    if (progress_.after_relation) progress_.after_relation(record_, shown);
    return result;
  }

  // A run whose time is over at once still says of which adapter: what has an end is opened again with its first case.
  // In lanes it is opened again anyway.
  OpenAnswer opened(AdapterRunner& adapter) {
    if (!request_.limits.stop_at) return adapter.open(true);
    RunRequest without_end = request_;
    without_end.limits.stop_at.reset();
    return adapter_runner(without_end)->open(true);
  }

  std::unique_ptr<CaseRunner> case_runner(std::unique_ptr<AdapterRunner> adapter) {
    return std::make_unique<CaseRunner>(request_, corpus_, record_.description, std::move(adapter),
                                        plain_ ? &*plain_ : nullptr);
  }

  // Why nothing is run any more, if so.
  std::string end_of_run() const {
    if (interruption() != 0) return "the run was interrupted before";
    if (is_over(request_.limits.stop_at)) return "the time that --max-time gives was over before";
    return record_.unavailable;
  }

  CaseResult run_one(const std::string& slug) {
    // What a lane has run is judged, also when nothing more is run.
    const std::string reason = lanes_ && lanes_->is_ready(slug) ? std::string() : end_of_run();
    // What a relation still needs is run once more: outputs are not in the journal.
    if (findings_.is_earlier(slug) && (!reason.empty() || !relations_.needs(slug))) {
      const CaseResult& earlier = findings_.earlier_case(slug);
      if (relations_.needs(slug)) {  // its relation is not run: the outputs are missing
        CaseResult without = earlier;
        without.verdict = Verdict::not_run;
        without.detail = reason;
        relations_.keep(without, {});
      }
      return earlier;
    }
    RanCase ran = reason.empty() ? run_now(slug) : unrun(slug, reason);
    record_.contracts.emplace(ran.result.contract, ran.contract);
    if (request_.keep_outputs && reason.empty()) hand_over(ran);
    if (relations_.needs(slug)) relations_.keep(ran.result, std::move(ran.outputs));
    return std::move(ran.result);
  }

  RanCase unrun(const std::string& slug, const std::string& reason) const {
    const GoldenCase golden = corpus_.outline(slug);
    RanCase ran;
    ran.result = unrun_case(golden, Verdict::not_run, reason);
    ran.contract = canonical_json(golden.input.contract);
    return ran;
  }

  LaneOrder order_of(const std::string& slug) const {
    return {slug, relations_.needs(slug) || request_.keep_outputs ? Outputs::kept : Outputs::dropped};
  }

  RanCase run_now(const std::string& slug) {
    const LaneOrder order = order_of(slug);
    if (!lanes_) return cases_->run(slug, order.outputs);
    std::optional<RanCase> ran = lanes_->take(order);
    if (!ran) return unrun(slug, "interrupted");
    // As one worker: what died is counted in the order of the cases, and what was run ahead of that is forgotten.
    if (ran->worker_died && ++deaths_ > request_.limits.respawns) {
      lanes_.reset();
      cases_ = case_runner(spent_runner(request_.limits.respawns));
    }
    return std::move(*ran);
  }

  // What a file of results holds of the case: nothing, if it was not run.
  void hand_over(const RanCase& ran) const {
    const CaseResult& result = ran.result;
    Execution execution;
    execution.status = QKCTS_OK;
    execution.implementation = result.implementation;
    if (ran.outputs.filled) {
      execution.outputs = ran.outputs.outputs;
    } else if (violates(result.verdict)) {
      execution.violation = result.verdict;
      execution.violation_detail = result.detail;
    } else {
      return;
    }
    request_.keep_outputs(corpus_.read(result.slug).input, execution);
  }

  const RunRequest& request_;
  const RunProgress& progress_;
  const CorpusReader& corpus_;
  RelationSession& relations_;
  RunRecord& record_;
  RunFindings findings_;
  std::optional<PlainEvaluation> plain_;
  std::unique_ptr<CaseLanes> lanes_;
  std::unique_ptr<CaseRunner> cases_;  // where there are no lanes
  int deaths_ = 0;                     // of workers in lanes
  std::optional<CaseResult> current_;  // as its user sees it: known failures are marked
};

}  // namespace

std::optional<RunRecord> run_corpus(const RunRequest& request, const RunProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  check_untrusted_corpus(request.corpus_path);
  std::unique_ptr<CaseLanes> lanes = request.jobs > 1 ? std::make_unique<CaseLanes>(request) : nullptr;
  const CorpusReader corpus(request.corpus_path);
  if (!request.corpus_digest.empty() && corpus.info().digest != request.corpus_digest)
    throw InputError(fmt::format("{}: is not the released suite {}: its digest is {}, that of the manifest {}",
                                 request.corpus_path, corpus.info().suite, corpus.info().digest.substr(0, 12),
                                 request.corpus_digest.substr(0, 12)));
  if (request.adapter.kind == AdapterKind::results) require_results_of(request.adapter, corpus);
  RunRecord record = run_head(request, corpus.info());
  record.known_failures =
      known_failure_uses(request.known_failures, record.corpus_suite,
                         request.known_failures_day.empty() ? record.started.substr(0, 10) : request.known_failures_day,
                         all_names(corpus));
  std::vector<std::string_view> selected = selected_slugs(corpus, request);
  RelationSession relations(corpus, request.case_glob, selected);
  const std::vector<std::string_view> slugs = shared_out(std::move(selected), request.share, relations);
  Session session(request, progress, corpus, relations, record, std::move(lanes));
  session.open();

  const std::vector<TestGroup> tests = stage_tests(corpus, slugs, relations.relations(), request, record.description);
  progress.start(slugs.size());
  const StageTestHooks hooks = {
      [&](const StageTest& test) { return session.run(test); },
      [&](const std::vector<std::string_view>& selected_now) { session.begin_round(selected_now); },
      [&] { return session.is_at_its_end(); }};
  if (run_registered(tests, request.gtest_arguments, hooks) == RegisteredRun::listed) return std::nullopt;
  session.finish();
  record.interrupted_by = interruption();
  record.seconds =
      session.earlier_seconds() + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return record;
}

}  // namespace qkcts
