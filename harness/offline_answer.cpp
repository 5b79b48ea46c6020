// SPDX-License-Identifier: Apache-2.0
#include "harness/offline_answer.hpp"

#include <optional>

#include <fmt/format.h>
#include <fnmatch.h>

#include "conformance/file.hpp"
#include "harness/adapter_description.hpp"
#include "harness/exchange_requests.hpp"
#include "harness/interruption.hpp"
#include "harness/status_name.hpp"
#include "harness/utf8_text.hpp"
#include "vectors/file_replacement.hpp"

namespace qkcts {
namespace {

// The first call that did not end well, else the first of all: its outputs are the answer.
Execution answer_to(AdapterRunner& runner, const AdapterDescription& description, const KernelRequest& request) {
  RunOrder order;
  order.request = {request.input.contract.terms,
                   canonical_json(request.input.contract),
                   request.input.shape,
                   request.input.inputs,
                   request.stages,
                   description.alignment};
  order.calls = {{Variant::plain, Placement::end_aligned}, {Variant::plain, Placement::start_aligned}};
  order.slug = request.input.slug;
  RunOutcome outcome = runner.run(order);
  if (outcome.death != Verdict::pass) {
    Execution end;
    end.violation = outcome.death;
    end.violation_detail = utf8_line(outcome.death_detail);
    return end;
  }
  for (Execution& execution : outcome.answer.executions)
    if (execution.violation != Verdict::pass || execution.status != QKCTS_OK) return std::move(execution);
  return std::move(outcome.answer.executions.front());
}

std::string how_it_ended(const Execution& execution) {
  if (execution.violation != Verdict::pass)
    return fmt::format("{}: {}", verdict_name(execution.violation), utf8_line(execution.violation_detail));
  return fmt::format("status {}: {}", status_word(execution.status), utf8_line(execution.message));
}

}  // namespace

AnswerCounts answer_requests(const AnswerRequest& request, const ToldOfFailure& told) {
  check_untrusted_requests(request.requests);
  const RequestReader requests(request.requests);
  FileReplacement target(request.results);
  const std::unique_ptr<AdapterRunner> runner = worker_runner(request.adapter, request.limits);
  const OpenAnswer opened = runner->open(true);
  const AdapterDescription description = description_from_adapter(opened.description, request.adapter.given);
  AnswerCounts counts;
  if (opened.probe != QKCTS_OK) {
    counts.unavailable = opened.probe_reason.empty() ? "probe() gave no reason" : utf8_line(opened.probe_reason);
    return counts;
  }
  ResultWriter results(target.temporary(), request.results, requests.corpus_digest(), description.text);
  for (const std::string& slug : requests.slugs()) {
    if (interruption() != 0 || fnmatch(request.case_glob.c_str(), slug.c_str(), 0) != 0) continue;
    KernelRequest asked = requests.read(slug);
    asked.stages &= description.stages;
    if (asked.stages == 0 || !unsupported_reason(description, asked.input).empty()) {
      ++counts.unsupported;
      continue;
    }
    const Execution execution = answer_to(*runner, description, asked);
    if (execution.violation == Verdict::not_run) {  // interrupted, or a request could not be written
      if (interruption() == 0) throw WriteError(execution.violation_detail);
      continue;
    }
    const bool well = execution.violation == Verdict::pass && execution.status == QKCTS_OK;
    ++(well ? counts.answered : counts.failed);
    if (!well) told(slug, how_it_ended(execution));
    results.add(asked.input, execution);
  }
  results.close();
  if (counts.answered + counts.failed > 0) target.commit();
  return counts;
}

}  // namespace qkcts
