// SPDX-License-Identifier: Apache-2.0
#include "harness/run_case.hpp"

#include <utility>

namespace qkcts {
namespace {

// Sees whether the worker died of what it was given last.
class WatchedRunner final : public AdapterRunner {
 public:
  explicit WatchedRunner(AdapterRunner& watched) : watched_(watched) {}
  OpenAnswer open(bool prepare) override { return watched_.open(prepare); }
  RunOutcome run(const RunOrder& order) override {
    RunOutcome outcome = watched_.run(order);
    died = outcome.death != Verdict::pass && outcome.death != Verdict::not_run;
    return outcome;
  }
  bool died = false;

 private:
  AdapterRunner& watched_;
};

}  // namespace

CaseRunner::CaseRunner(const RunRequest& request, const CorpusReader& corpus, const AdapterDescription& description,
                       std::unique_ptr<AdapterRunner> adapter, const PlainEvaluation* plain)
    : request_(request), corpus_(corpus), description_(description), adapter_(std::move(adapter)), plain_(plain) {}

RanCase CaseRunner::run(const std::string& slug, Outputs outputs) {
  const GoldenCase golden = corpus_.read(slug);
  RanCase ran;
  ran.contract = canonical_json(golden.input.contract);
  WatchedRunner watched(*adapter_);
  ran.result =
      run_case(watched, description_, golden, request_.options, outputs == Outputs::kept ? &ran.outputs : nullptr);
  ran.worker_died = watched.died;
  if (plain_ != nullptr) plain_->add(ran.result, golden);
  return ran;
}

}  // namespace qkcts
