// SPDX-License-Identifier: Apache-2.0
// RunRecord -> run.json
#include <cmath>

#include "harness/relation_report.hpp"
#include "harness/run_record.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

std::string_view rule_name(ElementRule rule) {
  switch (rule) {
    case ElementRule::budget:
      return "budget";
    case ElementRule::budget_exact:
      return "budget_exact";
    case ElementRule::exact_clause:
      return "exact_clause";
    case ElementRule::hidden:
      return "hidden";
    case ElementRule::special:
      return "special";
    case ElementRule::not_finite:
      return "not_finite";
    case ElementRule::free:
      return "free";
  }
  return {};
}

Json element_json(const JudgedElement& element, const CaseResult& owner, qkcts_stage stage) {
  const Format format = stage_format(stage, owner.format);
  return {{"index", index_of(stage, owner.shape, element.place)},
          {"breach", element.breach == Breach::none ? Json() : Json(breach_name(element.breach))},
          {"clause", element.clause},
          {"rule", rule_name(element.rule)},
          {"got_bits", bits_text(format, element.got)},
          {"expected_bits", bits_text(format, element.expected)},
          {"got", finite(element.got_value)},
          {"exact_hi", finite(element.exact.hi)},
          {"exact_lo", element.exact.lo},
          {"delta", finite(static_cast<double>(element.delta))},
          {"ulps", finite(element.ulps)},
          {"error_over_delta", finite(element.ratio)}};
}

Json elements_json(const std::vector<JudgedElement>& elements, const CaseResult& owner, qkcts_stage stage) {
  Json list = Json::array();
  for (const JudgedElement& element : elements) list.push_back(element_json(element, owner, stage));
  return list;
}

Json limit_json(const LimitResult& result, const CaseResult& owner, qkcts_stage stage) {
  Json limit = Json::object();
  if (result.limit.max_ulp) limit["max_ulp"] = *result.limit.max_ulp;
  if (result.limit.max_ratio) limit["max_error_over_delta"] = *result.limit.max_ratio;
  if (result.limit.atol) limit["atol"] = *result.limit.atol;
  if (result.limit.rtol) limit["rtol"] = *result.limit.rtol;
  return {{"limit", limit},
          {"verdict", result.violations == 0 ? "within" : "exceeded"},
          {"violations", result.violations},
          {"worst", result.worst ? element_json(*result.worst, owner, stage) : Json()}};
}

Json stage_json(const StageResult& result, const CaseResult& owner) {
  Json stage = {{"stage", stage_name(result.stage)},
                {"verdict", verdict_name(result.verdict)},
                {"detail", result.detail},
                {"differing_calls", result.differing_calls}};
  if (!result.judgement) return stage;
  const StageJudgement& j = *result.judgement;
  const ElementCounts& c = j.counts;
  stage["elements"] = {{"judged", c.judged}, {"exact", c.exact},   {"mistrusted", c.mistrusted}, {"domain", c.domain},
                       {"hidden", c.hidden}, {"failed", c.failed}, {"unwritten", j.unwritten}};
  stage["max_ulp"] = finite(j.max_ulp);
  stage["p99_ulp"] = finite(j.p99_ulp);
  stage["mean_ulp"] = finite(j.mean_ulp);
  stage["signed_mean_ulp"] = finite(j.signed_mean_ulp);
  stage["max_error_over_delta"] = finite(j.max_ratio);
  stage["histogram"] = j.histogram;
  stage["worst"] = j.worst ? element_json(*j.worst, owner, result.stage) : Json();
  stage["failures"] = elements_json(j.failures, owner, result.stage);
  if (j.limit) stage["own_limit"] = limit_json(*j.limit, owner, result.stage);
  return stage;
}

Json shape_json(const qkcts_shape& s) {
  return {{"batch", s.batch}, {"q_heads", s.q_heads},   {"kv_heads", s.kv_heads},    {"q_len", s.q_len},
          {"k_len", s.k_len}, {"head_dim", s.head_dim}, {"v_head_dim", s.v_head_dim}};
}

Json case_json(const CaseResult& result) {
  Json stages = Json::array();
  for (const StageResult& stage : result.stages) stages.push_back(stage_json(stage, result));
  return {{"case", result.slug},
          {"contract", result.contract},
          {"contract_digest", result.contract_digest},
          {"family", result.family},
          {"description", result.description},
          {"format", parameters(result.format).name},
          {"shape", shape_json(result.shape)},
          {"profile", result.profile},
          {"verdict", verdict_name(result.verdict)},
          {"detail", result.detail},
          {"implementation", result.implementation},
          {"seconds", result.seconds},
          {"calls", result.calls},
          {"output", result.output},
          {"stages", std::move(stages)}};
}

Json counts_json(const std::map<Verdict, int>& counts) {
  Json object = Json::object();
  for (const auto& [verdict, count] : counts) object[std::string(verdict_name(verdict))] = count;
  return object;
}

}  // namespace

Json to_json(const RunRecord& record) {
  const RunSummary summary = summarise(record);
  Json cases = Json::array();
  for (const CaseResult& result : record.cases) cases.push_back(case_json(result));
  Json relations = Json::array();
  for (const RelationResult& result : record.relations) relations.push_back(relation_json(result));
  Json contracts = Json::object();
  for (const auto& [name, text] : record.contracts) contracts[name] = parse_json(text, name);
  return {
      {"schema", "qkcts-run/1"},
      {"suite_version", record.suite_version},
      {"started", record.started},
      {"seconds", record.seconds},
      {"command", record.command},
      {"machine",
       {{"system", record.machine.system},
        {"release", record.machine.release},
        {"architecture", record.machine.architecture},
        {"processor", record.machine.processor},
        {"logical_processors", record.machine.logical_processors}}},
      {"adapter",
       {{"given", record.adapter.given},
        {"path", record.adapter.path},
        {"options", record.adapter.options},
        {"sha256", record.adapter_sha256},
        {"description", parse_json(record.description.text, "describe()")},
        {"unavailable", record.unavailable}}},
      {"corpus",
       {{"path", record.corpus_path},
        {"suite", record.corpus_suite},
        {"digest", record.corpus_digest},
        {"generator_version", record.generator_version}}},
      {"options",
       {{"profile", record.profile_asked.empty() ? Json() : Json(record.profile_asked)},
        {"stages", record.stages_asked.empty() ? Json() : Json(record.stages_asked)},
        {"relations_only", record.judging == Judging::relations_alone},
        {"repeat", record.repeat},
        {"timeout_seconds", record.timeout_seconds},
        {"limits", record.limits_text.empty() ? Json() : parse_json(record.limits_text, "limits")}}},
      {"interrupted_by", record.interrupted_by},
      {"exit_code", exit_code(record)},
      {"summary",
       {{"cases", counts_json(summary.cases)},
        {"stages", counts_json(summary.stages)},
        {"relations", counts_json(summary.relations)},
        {"limit_violations", summary.limit_violations}}},
      {"histogram_edges", histogram_edges},
      {"contracts", std::move(contracts)},
      {"cases", std::move(cases)},
      {"relations", std::move(relations)},
      {"diagnosis", record.diagnosis ? diagnosis_json(*record.diagnosis) : Json()},
  };
}

std::string run_json_text(const RunRecord& record) {
  // Paths and words of the command line may hold any bytes; everything else is clean already.
  return to_json(record).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace qkcts
