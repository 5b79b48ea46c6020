// SPDX-License-Identifier: Apache-2.0
#include "harness/run_session.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>

#include <fnmatch.h>

#include "conformance/further_profiles.hpp"
#include "harness/adapter_digest.hpp"
#include "harness/adapter_error.hpp"
#include "harness/failure_text.hpp"
#include "harness/gtest_registration.hpp"
#include "harness/interruption.hpp"
#include "harness/offline_runner.hpp"
#include "harness/plain_evaluation.hpp"
#include "harness/relation_report.hpp"
#include "harness/relation_session.hpp"
#include "harness/run_journal.hpp"
#include "harness/utf8_text.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts {
namespace {

std::vector<std::string> selected_slugs(const CorpusReader& corpus, const RunRequest& request) {
  std::vector<std::string> slugs;
  for (const std::string& slug : corpus.slugs()) {
    const bool named = !request.only || request.only->contains(slug);
    if (named && fnmatch(request.case_glob.c_str(), slug.c_str(), 0) == 0) slugs.push_back(slug);
  }
  return slugs;
}

// The cases of this share; of the relations those stay whose last case is among them.
std::vector<std::string> shared_out(const std::vector<std::string>& slugs, const CaseShare& share,
                                    RelationSession& relations) {
  if (share.count == 1) return slugs;
  std::vector<std::string> mine;
  for (std::size_t i = share.index - 1; i < slugs.size(); i += share.count) mine.push_back(slugs[i]);
  std::uint32_t others = 0;  // relations of cases that were not selected: dealt out in turn
  relations.keep_if([&](const Relation& relation) {
    const std::string& last = *std::max_element(relation.cases.begin(), relation.cases.end());
    if (std::binary_search(slugs.begin(), slugs.end(), last)) return std::binary_search(mine.begin(), mine.end(), last);
    return others++ % share.count == share.index - 1;
  });
  return mine;
}

std::vector<std::string> all_names(const CorpusReader& corpus) {
  std::vector<std::string> names = corpus.slugs();
  for (const Relation& relation : corpus.relations()) names.push_back(relation.slug);
  return names;
}

// Runs each case when the first of its stage tests comes up, and keeps the results in the record.
class Session {
 public:
  Session(const RunRequest& request, const RunProgress& progress, const CorpusReader& corpus,
          RelationSession& relations, RunRecord& record)
      : request_(request), progress_(progress), corpus_(corpus), relations_(relations), record_(record) {}

  void open() {
    runner_ = adapter_runner(request_);
    try {
      if (record_.plain) plain_.emplace();
    } catch (const AdapterError&) {  // an installation without bundled kernels judges all the same
      record_.plain = false;
    }
    const OpenAnswer answer = opened();
    record_.description = description_from_adapter(answer.description, request_.adapter.given);
    // Where its tensors lie in memory is a command's own affair.
    if (request_.adapter.kind == AdapterKind::command) record_.description.layouts.clear();
    if (answer.probe != QKCTS_OK) {
      record_.unavailable = answer.probe_reason.empty() ? "probe() gave no reason" : utf8_line(answer.probe_reason);
    }
  }

  void begin_round() {
    current_.reset();
    relations_.begin_round();
    if (!request_.journal_folder.empty() && !journal_) open_journal();
    for (const auto& [slug, result] : earlier_.relations) relations_.skip(slug);
  }

  // Of the run that this one goes on with.
  double earlier_seconds() const { return earlier_.seconds; }

  StageTestResult run(const StageTest& test) { return test.stage ? run_stage(test) : run_relation(test.slug); }

  StageTestResult run_stage(const StageTest& test) {
    selected_[test.slug] |= bit(*test.stage);
    if (!current_ || current_->slug != test.slug) current_ = result_of(test.slug);
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
    const auto earlier = earlier_.relations.find(slug);
    const bool known_already = earlier != earlier_.relations.end();
    // A case outside of the selection has no result of its own.
    const RelationResult fresh =
        known_already ? earlier->second
                      : relations_.judge(slug, record_.description, [&](const std::string& name) { run_one(name); });
    if (journal_ && !known_already) journal_->add(fresh);
    RelationResult shown = fresh;
    apply_known_failures(shown, record_.known_failures);
    StageTestResult result;
    result.outcome = row(shown.verdict).junit;
    result.text = relation_failure_text(record_, shown);
    if (result.text.empty()) result.text = fmt::format("{}: {}", verdict_name(shown.verdict), shown.detail);
    const auto known = std::find_if(record_.relations.begin(), record_.relations.end(),
                                    [&](const RelationResult& r) { return r.slug == slug; });
    if (known == record_.relations.end()) {
      record_.relations.push_back(fresh);
    } else if (fresh.verdict > known->verdict) {
      *known = fresh;  // of repetitions the gravest counts
    }
    if (progress_.after_relation) progress_.after_relation(record_, shown);
    return result;
  }

  // Stages that a filter or shard left out are no finding of this run.
  void finish() {
    for (CaseResult& result : record_.cases) {
      const StageSet selected = selected_[result.slug];
      Verdict gravest = Verdict::not_run;
      for (StageResult& stage : result.stages) {
        if ((selected & bit(stage.stage)) == 0) {
          const qkcts_stage left_out = stage.stage;
          stage = {};
          stage.stage = left_out;
          stage.verdict = Verdict::skipped;
          stage.detail = "left out by a filter";
        }
        gravest = graver(gravest, stage.verdict);
      }
      result.verdict = gravest;
      apply_known_failures(result, record_.known_failures, request_.options.stages);
    }
    for (RelationResult& result : record_.relations) apply_known_failures(result, record_.known_failures);
  }

 private:
  // A run whose time is over at once still says of which adapter: what has an end is opened again with its first case.
  OpenAnswer opened() {
    if (!request_.limits.stop_at) return runner_->open(true);
    RunRequest without_end = request_;
    without_end.limits.stop_at.reset();
    return adapter_runner(without_end)->open(true);
  }

  // The record keeps what was found; known failures are marked in it when the run is at its end.
  CaseResult result_of(const std::string& slug) {
    CaseResult fresh = run_one(slug);
    const auto known = std::find_if(record_.cases.begin(), record_.cases.end(),
                                    [&](const CaseResult& result) { return result.slug == slug; });
    CaseResult* kept = nullptr;
    if (known == record_.cases.end()) {
      kept = &record_.cases.emplace_back(std::move(fresh));
    } else {
      if (fresh.verdict > known->verdict) *known = std::move(fresh);  // of repetitions the gravest counts
      kept = &*known;
    }
    keep_worst_heat(record_, *kept);
    if (journal_ && !earlier_.cases.contains(slug)) journal_->add(record_, *kept);
    CaseResult shown = *kept;
    apply_known_failures(shown, record_.known_failures, request_.options.stages);
    progress_.after_case(record_, shown);
    return shown;
  }

  void open_journal() {
    if (request_.resume) earlier_ = journaled_run(request_.journal_folder, record_);
    journal_ = std::make_unique<RunJournal>(request_.journal_folder, record_, request_.resume ? &earlier_ : nullptr);
    record_.contracts.insert(earlier_.contracts.begin(), earlier_.contracts.end());
    record_.heat_maps = std::move(earlier_.heat_maps);
    if (!earlier_.started.empty()) record_.started = earlier_.started;
  }

  CaseResult run_one(const std::string& slug) {
    const std::string reason = interruption() != 0                ? "the run was interrupted before"
                               : is_over(request_.limits.stop_at) ? "the time that --max-time gives was over before"
                                                                  : record_.unavailable;
    // What a relation still needs is run once more: outputs are not in the journal.
    const auto earlier = earlier_.cases.find(slug);
    if (earlier != earlier_.cases.end() && (!reason.empty() || !relations_.needs(slug))) {
      if (relations_.needs(slug)) {  // its relation is not run: the outputs are missing
        CaseResult without = earlier->second;
        without.verdict = Verdict::not_run;
        without.detail = reason;
        relations_.keep(without, {});
      }
      return earlier->second;
    }
    if (!reason.empty()) {
      const GoldenCase golden = corpus_.outline(slug);
      record_.contracts.emplace(golden.input.contract.name, canonical_json(golden.input.contract));
      CaseResult result = unrun_case(golden, Verdict::not_run, reason);
      if (relations_.needs(slug)) relations_.keep(result, {});
      return result;
    }
    const GoldenCase golden = corpus_.read(slug);
    record_.contracts.emplace(golden.input.contract.name, canonical_json(golden.input.contract));
    KeptOutputs outputs;
    const bool related = relations_.needs(slug);
    const bool kept = related || request_.keep_outputs;
    CaseResult result = run_case(*runner_, record_.description, golden, request_.options, kept ? &outputs : nullptr);
    if (plain_) plain_->add(result, golden);
    if (request_.keep_outputs) hand_over(golden.input, result, outputs);
    if (related) relations_.keep(result, std::move(outputs));
    return result;
  }

  // What a file of results holds of the case: nothing, if it was not run.
  void hand_over(const Case& asked, const CaseResult& result, const KeptOutputs& outputs) const {
    Execution execution;
    execution.status = QKCTS_OK;
    execution.implementation = result.implementation;
    if (outputs.filled) {
      execution.outputs = outputs.outputs;
    } else if (violates(result.verdict)) {
      execution.violation = result.verdict;
      execution.violation_detail = result.detail;
    } else {
      return;
    }
    request_.keep_outputs(asked, execution);
  }

  const RunRequest& request_;
  const RunProgress& progress_;
  const CorpusReader& corpus_;
  RelationSession& relations_;
  RunRecord& record_;
  std::unique_ptr<AdapterRunner> runner_;
  JournaledRun earlier_;  // of the run that this one goes on with
  std::unique_ptr<RunJournal> journal_;
  std::optional<PlainEvaluation> plain_;
  std::optional<CaseResult> current_;  // as its user sees it: known failures are marked
  std::map<std::string, StageSet> selected_;
};

// A profile that nobody can judge by is said before anything runs; otherwise the cases of its format would say nothing.
void require_profiles(const std::map<Format, std::set<std::string>>& held, const RunRequest& request,
                      const AdapterDescription& description) {
  const auto known = [&](const std::string& name, Format format) {
    const auto entry = held.find(format);
    return is_shipped_profile(name, format) || (entry != held.end() && entry->second.contains(name));
  };
  for (const Format format : description.formats) {
    const std::string& name = description.profile.at(format);
    if (known(name, format)) continue;
    std::vector<std::string> names;
    for (const Profile& profile : selectable_profiles(format)) names.push_back(profile.name);
    throw AdapterError(fmt::format("{}: describe() names profile '{}' for {}, which does not exist; there are: {}",
                                   request.adapter.given, name, parameters(format).name, fmt::join(names, ", ")));
  }
  if (!request.options.profile || held.empty()) return;
  std::set<std::string> judging;
  for (const auto& [format, names] : held) {
    if (known(*request.options.profile, format)) return;
    judging.insert(names.begin(), names.end());
    for (const Profile& profile : selectable_profiles(format)) judging.insert(profile.name);
  }
  throw UsageError(
      fmt::format("--profile {}: no profile of that name judges the formats of these cases; those that do: {}",
                  *request.options.profile, fmt::join(judging, ", ")));
}

// Each relation comes right after the last of its cases, so that their outputs are not kept for long.
std::vector<StageTest> stage_tests(const CorpusReader& corpus, const std::vector<std::string>& slugs,
                                   const std::vector<Relation>& relations, const RunRequest& request,
                                   const AdapterDescription& description) {
  std::multimap<std::string, std::string> relations_after;
  for (const Relation& relation : relations)
    relations_after.emplace(*std::max_element(relation.cases.begin(), relation.cases.end()), relation.slug);
  std::vector<StageTest> tests;
  std::map<Format, std::set<std::string>> held;
  for (const std::string& slug : slugs) {
    const GoldenCase golden = corpus.outline(slug);
    held[golden.input.inputs.format].insert(golden.profiles.begin(), golden.profiles.end());
    for (const qkcts_stage stage : all_stages) {
      if (golden.stages[stage].present) tests.push_back({slug, stage});
    }
    const auto [first, last] = relations_after.equal_range(slug);
    for (auto entry = first; entry != last; ++entry) tests.push_back({entry->second, std::nullopt});
    relations_after.erase(first, last);
  }
  for (const auto& [slug, relation] : relations_after) tests.push_back({relation, std::nullopt});
  if (request.options.judging == Judging::values_and_relations) require_profiles(held, request, description);
  return tests;
}

// Comma-separated, as --stages takes them; empty: all.
std::string stages_text(StageSet stages) {
  std::string text;
  if (stages == ~StageSet{0}) return text;
  for (const qkcts_stage stage : all_stages) {
    if ((stages & bit(stage)) != 0) text += fmt::format("{}{}", text.empty() ? "" : ",", stage_name(stage));
  }
  return text;
}

RunConditions conditions_of(const RunRequest& request) {
  RunConditions how;
  how.case_glob = request.case_glob;
  if (request.share.count > 1) how.shard = fmt::format("{}/{}", request.share.index, request.share.count);
  how.variants = request.options.variants;
  how.in_process = request.isolation == Isolation::in_process;
  how.gtest = request.gtest_arguments;
  how.memory_mib = request.limits.resident_bytes >> 20;
  how.address_space_mib = request.limits.address_space_bytes >> 20;
  how.processor_seconds = static_cast<double>(request.limits.processor_time.count()) / 1000;
  how.respawns = request.limits.respawns;
  return how;
}

RunRecord new_record(const RunRequest& request, const CorpusInfo& corpus) {
  RunRecord record;
  record.suite_version = request.suite_version;
  record.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                               fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  record.command = request.command;
  record.machine = this_machine();
  record.adapter = request.adapter;
  record.adapter_sha256 = adapter_digest(request.adapter);
  record.corpus_path = request.corpus_path;
  record.corpus_suite = corpus.suite;
  record.corpus_digest = corpus.digest;
  record.generator_version = corpus.generator_version;
  record.judging = request.options.judging;
  record.plain = request.plain && request.options.judging == Judging::values_and_relations;
  record.profile_asked = request.options.profile.value_or("");
  record.stages_asked = stages_text(request.options.stages);
  record.limits_text = request.options.limits.text;
  record.demands = request.demands;
  record.repeat = request.options.repeat;
  record.timeout_seconds = static_cast<double>(request.limits.timeout.count()) / 1000;
  record.conditions = conditions_of(request);
  return record;
}

}  // namespace

std::unique_ptr<AdapterRunner> adapter_runner(const RunRequest& request) {
  if (request.adapter.kind == AdapterKind::results) return results_runner(request.adapter);
  if (request.isolation == Isolation::in_process) return in_process_runner(request.adapter);
  return worker_runner(request.adapter, request.limits);
}

std::optional<RunRecord> run_corpus(const RunRequest& request, const RunProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  check_untrusted_corpus(request.corpus_path);
  const CorpusReader corpus(request.corpus_path);
  if (!request.corpus_digest.empty() && corpus.info().digest != request.corpus_digest)
    throw InputError(fmt::format("{}: is not the released suite {}: its digest is {}, that of the manifest {}",
                                 request.corpus_path, corpus.info().suite, corpus.info().digest.substr(0, 12),
                                 request.corpus_digest.substr(0, 12)));
  if (request.adapter.kind == AdapterKind::results) require_results_of(request.adapter, corpus);
  RunRecord record = new_record(request, corpus.info());
  record.known_failures =
      known_failure_uses(request.known_failures, record.corpus_suite,
                         request.known_failures_day.empty() ? record.started.substr(0, 10) : request.known_failures_day,
                         all_names(corpus));
  const std::vector<std::string> selected = selected_slugs(corpus, request);
  RelationSession relations(corpus, request.case_glob, selected);
  const std::vector<std::string> slugs = shared_out(selected, request.share, relations);
  Session session(request, progress, corpus, relations, record);
  session.open();

  const std::vector<StageTest> tests = stage_tests(corpus, slugs, relations.relations(), request, record.description);
  progress.start(slugs.size());
  record.cases.reserve(slugs.size());  // results are referred to while the run goes on
  const StageTestHooks hooks = {[&](const StageTest& test) { return session.run(test); },
                                [&] { session.begin_round(); }};
  if (run_registered(tests, request.gtest_arguments, hooks) == RegisteredRun::listed) return std::nullopt;
  session.finish();
  record.interrupted_by = interruption();
  record.seconds =
      session.earlier_seconds() + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return record;
}

}  // namespace qkcts
