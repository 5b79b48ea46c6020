// SPDX-License-Identifier: Apache-2.0
#include "harness/run_head.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "harness/adapter_digest.hpp"
#include "harness/utf8_text.hpp"

namespace qkcts {
namespace {

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

}  // namespace

RunRecord run_head(const RunRequest& request, const CorpusInfo& corpus) {
  RunRecord record;
  record.suite_version = request.suite_version;
  record.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                               fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  record.command = request.command;
  record.machine = this_machine();
  if (request.isolation == Isolation::worker_process && request.adapter.kind != AdapterKind::results)
    record.machine.worker_memory_mib = resident_limit(request.limits) >> 20;
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

void add_adapter(RunRecord& head, const RunRequest& request, const OpenAnswer& answer) {
  head.description = described(request, answer.description);
  if (answer.probe != QKCTS_OK)
    head.unavailable = answer.probe_reason.empty() ? "probe() gave no reason" : utf8_line(answer.probe_reason);
}

}  // namespace qkcts
