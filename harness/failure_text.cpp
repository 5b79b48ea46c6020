// SPDX-License-Identifier: Apache-2.0
#include "harness/failure_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/value_text.hpp"

namespace qkcts {
namespace {

std::string due_text(const JudgedElement& element, Format format) {
  if (element.rule == ElementRule::hidden) {
    return "due -inf, or a sentinel whose exponential is 0";
  }
  if (!std::isfinite(element.exact.hi)) return fmt::format("due {}", element.exact.hi);
  return fmt::format("exact {} ({})", exact_text(element.exact), bits_text(format, element.expected));
}

std::string measure_text(const JudgedElement& element, Format format) {
  switch (element.breach) {
    case Breach::unwritten:
      return "never written: the poison is still there";
    case Breach::value_class:
      return "class differs";
    case Breach::exact_clause:
      return "the contract fixes this value: no tolerance";
    case Breach::sentinel:
      return "softmax would see this sentinel";
    default: {
      const double delta = static_cast<double>(element.delta);
      const double unit = std::isfinite(element.exact.hi) ? ulp(format, element.exact.hi) : 1;
      return fmt::format("off {} ulp  budget {} ulp ({:.3g} = {:a})  error/budget {}", short_text(element.ulps),
                         short_text(delta / unit), delta, delta, short_text(element.ratio));
    }
  }
}

std::string element_text(const CaseResult& result, qkcts_stage stage, const JudgedElement& element) {
  const Format format = stage_format(stage, result.format);
  return fmt::format("  {}[{}]  got {} ({})  {}\n      {}\n", stage_name(stage),
                     coordinate_text(stage, result.shape, element.place), bits_text(format, element.got),
                     decimal_text(format, element.got_value), due_text(element, format), measure_text(element, format));
}

std::string limit_text(const CaseResult& result, const StageResult& stage, const LimitResult& limit) {
  std::string rule;
  if (limit.limit.max_ulp) rule += fmt::format(" max_ulp {}", *limit.limit.max_ulp);
  if (limit.limit.max_ratio) rule += fmt::format(" max_error_over_delta {}", *limit.limit.max_ratio);
  if (limit.limit.atol) rule += fmt::format(" atol {}", *limit.limit.atol);
  if (limit.limit.rtol) rule += fmt::format(" rtol {}", *limit.limit.rtol);
  return fmt::format("OVER YOUR LIMIT  {}  {}:{}\n  {} elements, the worst:\n{}", result.slug, stage_name(stage.stage),
                     rule, limit.violations, element_text(result, stage.stage, *limit.worst));
}

std::string heading(std::string_view word, const CaseResult& result, std::string_view clause) {
  return fmt::format("{}  {}\n  contract {}  clause {}  profile {}\n", word, result.slug, result.contract, clause,
                     result.profile);
}

std::string tail_of_output(const CaseResult& result) {
  if (result.output.empty()) return {};
  std::string text = "  it printed:\n";
  constexpr std::size_t kept = 1000;
  std::string tail = result.output.substr(result.output.size() > kept ? result.output.size() - kept : 0);
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  for (std::size_t at = 0; at <= tail.size();) {
    const std::size_t end = std::min(tail.find('\n', at), tail.size());
    text += "    | " + tail.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return text;
}

bool judged_alone(const CaseResult& result) {
  return std::any_of(result.stages.begin(), result.stages.end(),
                     [](const StageResult& s) { return s.judgement.has_value(); });
}

}  // namespace

std::string shell_quoted(const std::string& argument) {
  const bool plain = !argument.empty() && argument.find_first_not_of(
                                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                              "0123456789_./:=,@%+-") == std::string::npos;
  if (plain) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string rerun_command(const RunRecord& record, const CaseResult& result) {
  std::string command = fmt::format("qkcts run {} {} --case {}", shell_quoted(record.adapter.given),
                                    shell_quoted(record.corpus_path), result.slug);
  if (!record.profile_asked.empty()) command += " --profile " + record.profile_asked;
  if (record.repeat != 1) command += fmt::format(" --repeat {}", record.repeat);
  return command;
}

std::string explain_command(const RunRecord& record, const CaseResult& result, qkcts_stage stage, ElementPlace place) {
  return fmt::format("qkcts explain {} {} {} {} --profile {}", shell_quoted(record.corpus_path), result.slug,
                     stage_name(stage), index_text(stage, result.shape, place), result.profile);
}

std::string failure_text(const RunRecord& record, const CaseResult& result, const StageResult& stage) {
  std::string text;
  if (violates(stage.verdict) && stage.judgement) {
    const StageJudgement& j = *stage.judgement;
    const std::string_view clause = j.failures.empty() ? stage_clause(stage.stage) : j.failures.front().clause;
    text += heading(stage.verdict == Verdict::fail ? "FAIL" : fmt::format("FAIL {}", verdict_name(stage.verdict)),
                    result, clause);
    if (!stage.detail.empty()) text += fmt::format("  {}: {}\n", stage_name(stage.stage), stage.detail);
    if (j.unwritten > 0)
      text += fmt::format("  {}: {} elements were never written\n", stage_name(stage.stage), j.unwritten);
    for (const JudgedElement& element : j.failures) text += element_text(result, stage.stage, element);
    if (j.counts.failed > j.failures.size()) {
      const std::uint64_t all = j.counts.judged + j.counts.exact + j.counts.mistrusted + j.counts.hidden;
      text +=
          fmt::format("  {} of {} elements of {} fail; the worst:\n", j.counts.failed, all, stage_name(stage.stage));
      text += element_text(result, stage.stage, *j.worst);
    }
    if (j.worst) text += fmt::format("  explain: {}\n", explain_command(record, result, stage.stage, j.worst->place));
    text += fmt::format("  again:   {}\n", rerun_command(record, result));
  }
  if (stage.judgement && stage.judgement->limit && stage.judgement->limit->violations > 0) {
    text += limit_text(result, stage, *stage.judgement->limit);
  }
  return text;
}

std::string failure_text(const RunRecord& record, const CaseResult& result) {
  if (violates(result.verdict) && !judged_alone(result)) {
    return fmt::format("FAIL {}  {}\n  contract {}\n  {}\n{}  again:   {}\n", verdict_name(result.verdict), result.slug,
                       result.contract, result.detail, tail_of_output(result), rerun_command(record, result));
  }
  std::string text;
  for (const StageResult& stage : result.stages) text += failure_text(record, result, stage);
  return text;
}

}  // namespace qkcts
