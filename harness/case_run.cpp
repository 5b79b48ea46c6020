// SPDX-License-Identifier: Apache-2.0
#include "harness/case_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/further_profiles.hpp"
#include "harness/call_judgement.hpp"
#include "harness/utf8_text.hpp"

namespace qkcts {
namespace {

std::string_view status_name(std::uint32_t status) {
  switch (status) {
    case QKCTS_OK:
      return "QKCTS_OK";
    case QKCTS_UNSUPPORTED:
      return "QKCTS_UNSUPPORTED";
    case QKCTS_UNAVAILABLE:
      return "QKCTS_UNAVAILABLE";
    case QKCTS_OUT_OF_MEMORY:
      return "QKCTS_OUT_OF_MEMORY";
    case QKCTS_INVALID:
      return "QKCTS_INVALID";
    case QKCTS_INTERNAL:
      return "QKCTS_INTERNAL";
  }
  return "an unknown status";
}

struct Ending {
  Verdict verdict = Verdict::pass;
  std::string detail;
};

// How a call ended, apart from what it computed.
Ending ending(const Execution& execution) {
  if (execution.violation != Verdict::pass) return {execution.violation, execution.violation_detail};
  if (execution.status == QKCTS_OK) return {};
  const Verdict verdict = execution.status == QKCTS_OUT_OF_MEMORY ? Verdict::error_memory : Verdict::error_protocol;
  const std::string_view excuse =
      execution.status == QKCTS_UNSUPPORTED ? " for a case inside of what describe() declares" : "";
  return {verdict, fmt::format("run() returned {} ({}){}{}{}", status_name(execution.status), execution.status, excuse,
                               execution.message.empty() ? "" : ": ", utf8_line(execution.message))};
}

CaseResult case_header(const GoldenCase& golden) {
  CaseResult result;
  result.slug = golden.input.slug;
  result.contract = golden.input.contract.name;
  result.contract_digest = contract_digest(golden.input.contract);
  result.family = utf8_text(golden.family);
  result.description = utf8_text(golden.description);
  result.format = golden.input.inputs.format;
  result.shape = golden.input.shape;
  for (const qkcts_stage stage : all_stages) {
    if (!golden.stages[stage].present) continue;
    StageResult& entry = result.stages.emplace_back();
    entry.stage = stage;
  }
  return result;
}

void end_all(CaseResult& result, StageSet asked, const Ending& end) {
  result.verdict = end.verdict;
  result.detail = end.detail;
  for (StageResult& stage : result.stages) {
    if ((asked & bit(stage.stage)) != 0) stage.verdict = end.verdict;
  }
}

// Which stages are asked for; the others get the verdict that says why not.
StageSet stages_to_ask(CaseResult& result, const AdapterDescription& description, const RunOptions& options) {
  StageSet asked = 0;
  for (StageResult& stage : result.stages) {
    if ((options.stages & bit(stage.stage)) == 0) {
      stage.verdict = Verdict::skipped;
      stage.detail = "not asked for";
    } else if ((description.stages & bit(stage.stage)) == 0) {
      stage.verdict = Verdict::unsupported;
      stage.detail = "describe() does not list this stage";
    } else {
      asked |= bit(stage.stage);
    }
  }
  return asked;
}

void keep(KeptOutputs& kept, const CaseResult& result, RunAnswer& answer) {
  kept.filled = true;
  kept.outputs = std::move(answer.executions.front().outputs);
  for (const StageResult& stage : result.stages)
    if (stage.differing_calls > 0) kept.restless |= bit(stage.stage);
}

// Why no value of the case is judged; empty if they are.
Ending unjudged(const GoldenCase& golden, const std::string& profile, const RunOptions& options) {
  if (options.judging == Judging::relations_alone) return {Verdict::skipped, "judged by relations alone"};
  if (holds_profile(golden, profile)) return {};
  return {Verdict::mistrusted, fmt::format("holds no budgets for profile {}: more than 1 % of its elements would be "
                                           "mistrusted, so it was refused when the case was made",
                                           profile)};
}

}  // namespace

std::string judging_profile(const GoldenCase& golden, const AdapterDescription& description,
                            const RunOptions& options) {
  const Format format = golden.input.inputs.format;
  if (options.profile && (holds_profile(golden, *options.profile) || is_shipped_profile(*options.profile, format))) {
    return *options.profile;
  }
  return description.profile.at(format);
}

bool is_shipped_profile(const std::string& name, Format format) {
  const std::vector<Profile> profiles = selectable_profiles(format);
  return std::any_of(profiles.begin(), profiles.end(), [&](const Profile& profile) { return profile.name == name; });
}

bool holds_profile(const GoldenCase& golden, const std::string& name) {
  return std::find(golden.profiles.begin(), golden.profiles.end(), name) != golden.profiles.end();
}

CaseResult unrun_case(const GoldenCase& golden, Verdict verdict, std::string detail) {
  CaseResult result = case_header(golden);
  result.verdict = verdict;
  result.detail = std::move(detail);
  for (StageResult& stage : result.stages) stage.verdict = verdict;
  return result;
}

CaseResult run_case(AdapterRunner& runner, const AdapterDescription& description, const GoldenCase& golden,
                    const RunOptions& options, KeptOutputs* kept) {
  if (std::string reason = unsupported_reason(description, golden.input); !reason.empty()) {
    return unrun_case(golden, Verdict::unsupported, std::move(reason));
  }
  CaseResult result = case_header(golden);
  result.profile = judging_profile(golden, description, options);
  const Ending without_values = unjudged(golden, result.profile, options);
  if (without_values.verdict != Verdict::pass && kept == nullptr) {
    end_all(result, ~StageSet{0}, without_values);
    return result;
  }
  const auto profile = static_cast<std::size_t>(
      std::find(golden.profiles.begin(), golden.profiles.end(), result.profile) - golden.profiles.begin());
  const StageSet asked = stages_to_ask(result, description, options);
  if (asked == 0) {
    result.verdict = Verdict::skipped;
    result.detail = "none of the stages asked for exists here and is observable";
    return result;
  }

  RunOrder order;
  order.request = {golden.input.contract.terms,
                   canonical_json(golden.input.contract),
                   golden.input.shape,
                   golden.input.inputs,
                   asked,
                   description.alignment};
  order.calls = plan_calls(description, golden.input, asked, options.repeat,
                           without_values.verdict == Verdict::pass ? options.variants : Variants::none);
  order.slug = golden.input.slug;
  RunOutcome outcome = runner.run(order);
  // Also of stages that cannot be observed: of a case that nobody ran, "unsupported" would be the gravest verdict.
  if (outcome.death == Verdict::not_run) return unrun_case(golden, Verdict::not_run, utf8_line(outcome.death_detail));
  result.output = utf8_text(outcome.output);
  if (outcome.death != Verdict::pass) {
    end_all(result, asked, {outcome.death, utf8_line(outcome.death_detail)});
    return result;
  }
  const std::vector<Execution>& executions = outcome.answer.executions;
  result.calls = static_cast<int>(executions.size());
  result.implementation = utf8_line(executions.front().implementation);
  result.seconds = executions.front().seconds;
  for (std::size_t call = 0; call < executions.size(); ++call) {
    const Variant variant = order.calls[call].variant;
    if (variant == Variant::plain) result.seconds = std::min(result.seconds, executions[call].seconds);
    Ending end = ending(executions[call]);
    if (end.verdict == Verdict::pass) continue;
    if (variant != Variant::plain) end.detail += fmt::format(", in the call `{}`", variant_name(variant));
    end_all(result, asked, end);
    return result;
  }
  const bool values = without_values.verdict == Verdict::pass;
  if (!values) end_all(result, asked, without_values);
  judge_calls(result, order, outcome.answer, golden, values ? std::optional(profile) : std::nullopt, asked,
              options.limits);
  hold_to_claims(result, order, description);
  for (const StageResult& stage : result.stages) result.verdict = graver(result.verdict, stage.verdict);
  if (kept != nullptr) keep(*kept, result, outcome.answer);
  return result;
}

}  // namespace qkcts
