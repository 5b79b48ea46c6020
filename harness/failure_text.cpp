// SPDX-License-Identifier: Apache-2.0
#include "harness/failure_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/value_text.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts {
namespace {

std::string exact_line(const JudgedElement& element, Format format) {
  if (element.rule == ElementRule::hidden) return "    due    -inf, or a sentinel whose exponential is 0\n";
  if (element.rule == ElementRule::not_finite) return "    due    an infinity or NaN\n";
  if (element.rule == ElementRule::special && std::isinf(element.exact.hi))
    return fmt::format("    due    {} or NaN\n", element.exact.hi);
  if (!std::isfinite(element.exact.hi)) return fmt::format("    due    {}\n", element.exact.hi);
  return fmt::format("    exact  {}  {}\n", bits_text(format, element.expected), exact_text(element.exact));
}

std::string measure_line(const JudgedElement& element, Format format) {
  switch (element.breach) {
    case Breach::unwritten:
      return "    never written: the poison is still there\n";
    case Breach::value_class:
      return "    of another class: no tolerance applies\n";
    case Breach::exact_clause:
      return "    the contract fixes this value: no tolerance applies\n";
    case Breach::sentinel:
      return "    softmax would see this sentinel\n";
    default: {
      const double delta = static_cast<double>(element.delta);
      const std::string off = fmt::format("    off    {} ulp, budget {} ulp ({:.3g} = {:a}),", short_text(element.ulps),
                                          short_text(delta / ulp(format, element.exact.hi)), delta, delta);
      const std::string share = "error/budget " + short_text(element.ratio);
      const bool fits = text_columns(off) + 1 + text_columns(share) <= terminal_columns;
      return fmt::format("{}{}{}\n", off, fits ? " " : "\n           ", share);
    }
  }
}

std::string element_lines(const CaseResult& result, qkcts_stage stage, const JudgedElement& element) {
  const Format format = stage_format(stage, result.format);
  return fmt::format("    got    {}  {}\n{}{}", bits_text(format, element.got), decimal_text(format, element.got_value),
                     exact_line(element, format), measure_line(element, format));
}

std::string limit_text(const CaseResult& result, const StageResult& stage, const LimitResult& limit) {
  std::string rule;
  if (limit.limit.max_ulp) rule += fmt::format(" max_ulp {}", *limit.limit.max_ulp);
  if (limit.limit.max_ratio) rule += fmt::format(" max_error_over_delta {}", *limit.limit.max_ratio);
  if (limit.limit.atol) rule += fmt::format(" atol {}", *limit.limit.atol);
  if (limit.limit.rtol) rule += fmt::format(" rtol {}", *limit.limit.rtol);
  return fmt::format("OVER YOUR LIMIT  {}\n  limit of {}:{}\n  {}[{}]  {} it; the worst:\n{}", result.slug,
                     stage_name(stage.stage), rule, stage_name(stage.stage),
                     coordinate_text(stage.stage, result.shape, limit.worst->place),
                     counted(limit.violations, "element exceeds", "elements exceed"),
                     element_lines(result, stage.stage, *limit.worst));
}

bool over_limit(const StageResult& stage) {
  return stage.judgement && stage.judgement->limit && stage.judgement->limit->violations > 0;
}

// What one failing stage has to say, without heading and commands.
std::string stage_lines(const CaseResult& result, const StageResult& stage) {
  const StageJudgement& j = *stage.judgement;
  const std::string_view name = stage_name(stage.stage);
  std::string text;
  if (!stage.detail.empty()) text += fmt::format("  {}: {}\n", name, stage.detail);
  if (j.unwritten > 0) {
    text += fmt::format("  {}: {} never written, the first is [{}]\n", name,
                        counted(j.unwritten, "element was", "elements were"),
                        coordinate_text(stage.stage, result.shape, *j.first_unwritten));
  }
  if (j.counts.failed == 0) return text;
  const std::uint64_t all = j.counts.judged + j.counts.exact + j.counts.mistrusted + j.counts.hidden;
  return text +
         fmt::format("  {}[{}]  {} of {} elements fail; the worst:\n", name,
                     coordinate_text(stage.stage, result.shape, j.worst->place), j.counts.failed, all) +
         element_lines(result, stage.stage, *j.worst);
}

std::string heading(const CaseResult& result, const StageResult& stage) {
  const StageJudgement& j = *stage.judgement;
  const std::string_view clause = j.counts.failed > 0 ? j.worst->clause : stage_clause(stage.stage);
  const std::string word =
      stage.verdict == Verdict::fail ? std::string("FAIL") : fmt::format("FAIL {}", verdict_name(stage.verdict));
  return fmt::format("{}  {}\n  contract {}  clause {}  profile {}\n", word, result.slug, result.contract, clause,
                     result.profile);
}

std::string commands(const RunRecord& record, const CaseResult& result, const StageResult& stage) {
  std::string text;
  // Unwritten elements of rows that are not stored are counted, but cannot be explained.
  if (stage.judgement->counts.failed > 0) {
    text = fmt::format("  explain: {}\n", explain_command(record, result, stage.stage, stage.judgement->worst->place));
  }
  return text + fmt::format("  again:   {}\n", rerun_command(record, result));
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

std::string judging_command(const RunRecord& record) {
  const std::string adapter = shell_quoted(record.adapter.given), corpus = shell_quoted(record.corpus_path);
  if (record.adapter.kind == AdapterKind::results) return fmt::format("qkcts check {} {}", corpus, adapter);
  return fmt::format("qkcts run {} {}", adapter, corpus);
}

std::string rerun_command(const RunRecord& record, const CaseResult& result) {
  std::string command = fmt::format("{} --case {}", judging_command(record), result.slug);
  if (!record.profile_asked.empty()) command += " --profile " + record.profile_asked;
  if (!record.stages_asked.empty()) command += " --stages " + record.stages_asked;
  if (record.repeat != 1) command += fmt::format(" --repeat {}", record.repeat);
  return command;
}

std::string explain_command(const RunRecord& record, const CaseResult& result, qkcts_stage stage,
                            ElementCoordinates place) {
  return fmt::format("qkcts explain {} {} {} {} --profile {}", shell_quoted(record.corpus_path), result.slug,
                     stage_name(stage), index_text(stage, result.shape, place), result.profile);
}

std::string failure_text(const RunRecord& record, const CaseResult& result, const StageResult& stage) {
  std::string text;
  if (violates(stage.verdict) && stage.judgement) {
    text = heading(result, stage) + stage_lines(result, stage) + commands(record, result, stage);
  }
  if (over_limit(stage)) text += limit_text(result, stage, *stage.judgement->limit);
  return text;
}

std::string failure_text(const RunRecord& record, const CaseResult& result) {
  std::string text, others, limits;
  const StageResult* first = nullptr;
  for (const StageResult& stage : result.stages) {
    if (over_limit(stage)) limits += limit_text(result, stage, *stage.judgement->limit);
    if (!violates(stage.verdict) || !stage.judgement) continue;
    if (first == nullptr) {
      first = &stage;
    } else {
      const std::string part = fmt::format("{} {}", stage_name(stage.stage), short_text(stage.judgement->max_ratio));
      const bool full = others.size() - (others.rfind('\n') + 1) + part.size() > 70;
      others += fmt::format("{}{}{}", others.empty() ? "" : ",", full ? "\n    " : " ", part);
    }
  }
  if (first != nullptr) {
    text = heading(result, *first) + stage_lines(result, *first);
    if (!others.empty()) text += fmt::format("  error/budget of later stages:\n   {}\n", others);
    text += commands(record, result, *first);
  } else if (violates(result.verdict)) {
    text = fmt::format("FAIL {}  {}\n  contract {}\n  {}\n{}  again:   {}\n", verdict_name(result.verdict), result.slug,
                       result.contract, result.detail, tail_of_output(result), rerun_command(record, result));
  }
  return text + limits;
}

}  // namespace qkcts
