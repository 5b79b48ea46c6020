// SPDX-License-Identifier: Apache-2.0
// RunRecord -> run.json
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "harness/json_pieces.hpp"
#include "harness/record_values.hpp"
#include "harness/relation_report.hpp"
#include "harness/run_json_parts.hpp"
#include "harness/run_record.hpp"
#include "harness/stage_warning.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

Json element_json(const JudgedElement& element, const CaseResult& owner, qkcts_stage stage) {
  const Format format = stage_format(stage, owner.format);
  return {{"index", index_of(stage, owner.shape, element.place)},
          {"breach", element.breach == Breach::none ? Json() : Json(breach_name(element.breach))},
          {"clause", element.clause},
          {"rule", rule_name(element.rule)},
          {"got_bits", bits_text(format, element.got)},
          {"expected_bits", bits_text(format, element.expected)},
          {"got", figure_json(element.got_value)},
          {"exact_hi", figure_json(element.exact.hi)},
          {"exact_lo", element.exact.lo},
          {"delta", figure_json(static_cast<double>(element.delta))},
          {"ulps", figure_json(element.ulps)},
          {"error_over_delta", figure_json(element.ratio)}};
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

Json plain_json(const PlainError& plain) {
  return {{"max_ulp", figure_json(plain.max_ulp)},
          {"p99_ulp", figure_json(plain.p99_ulp)},
          {"mean_ulp", figure_json(plain.mean_ulp)},
          {"max_error_over_delta", figure_json(plain.max_ratio)}};
}

Json variant_json(const VariantFinding& finding) {
  Json variant = {{"variant", variant_name(finding.variant)}, {"same_bits", finding.same_bits}};
  if (finding.max_ratio) variant["max_error_over_delta"] = figure_json(*finding.max_ratio);
  if (!finding.implementation.empty()) variant["implementation"] = finding.implementation;
  return variant;
}

// Beside what is judged, and by what: how the adapter was run.
void add_conditions(Json& options, const RunRecord& record) {
  const RunConditions& how = record.conditions;
  options["case_glob"] = how.case_glob;
  options["shard"] = how.shard.empty() ? Json() : Json(how.shard);
  options["variants"] = how.variants == Variants::all ? "all" : "none";
  options["strict_protocol"] = record.adapter.strictness == Strictness::everything;
  options["in_process"] = how.in_process;
  options["gtest"] = how.gtest;
  options["memory_mib"] = how.memory_mib;
  options["address_space_mib"] = how.address_space_mib;
  options["cpu_seconds"] = how.processor_seconds;
  options["respawns"] = how.respawns;
}

Json options_json(const RunRecord& record) {
  Json options = {{"profile", record.profile_asked.empty() ? Json() : Json(record.profile_asked)},
                  {"stages", record.stages_asked.empty() ? Json() : Json(record.stages_asked)},
                  {"relations_only", record.judging == Judging::relations_alone},
                  {"plain", record.plain},
                  {"repeat", record.repeat},
                  {"timeout_seconds", record.timeout_seconds},
                  {"limits", record.limits_text.empty() ? Json() : parse_json(record.limits_text, "limits")}};
  add_conditions(options, record);
  return options;
}

Json stage_json(const StageResult& result, const CaseResult& owner) {
  Json stage = {{"stage", stage_name(result.stage)},
                {"verdict", verdict_name(result.verdict)},
                {"detail", result.detail},
                {"differing_calls", result.differing_calls},
                {"variants", Json::array()}};
  if (result.spread_ulp) stage["spread_ulp"] = figure_json(*result.spread_ulp);
  for (const VariantFinding& finding : result.variants) stage["variants"].push_back(variant_json(finding));
  if (!result.judgement) return stage;
  const StageJudgement& j = *result.judgement;
  const ElementCounts& c = j.counts;
  stage["elements"] = {{"judged", c.judged}, {"exact", c.exact},   {"mistrusted", c.mistrusted}, {"domain", c.domain},
                       {"hidden", c.hidden}, {"failed", c.failed}, {"unwritten", j.unwritten}};
  stage["output_sha256"] = result.output_sha256;
  stage["max_ulp"] = figure_json(j.max_ulp);
  stage["p99_ulp"] = figure_json(j.p99_ulp);
  stage["mean_ulp"] = figure_json(j.mean_ulp);
  stage["signed_mean_ulp"] = figure_json(j.signed_mean_ulp);
  stage["outward_mean_ulp"] = figure_json(j.outward_mean_ulp);
  stage["max_error_over_delta"] = figure_json(j.max_ratio);
  stage["histogram"] = j.histogram;
  stage["worst"] = j.worst ? element_json(*j.worst, owner, result.stage) : Json();
  stage["failures"] = elements_json(j.failures, owner, result.stage);
  stage["first_unwritten"] = j.first_unwritten ? Json(index_of(result.stage, owner.shape, *j.first_unwritten)) : Json();
  stage["plain"] = result.plain ? plain_json(*result.plain) : Json();
  stage["warnings"] = Json::array();
  for (const StageWarning warning : stage_warnings(result, owner)) stage["warnings"].push_back(warning_name(warning));
  if (j.limit) stage["own_limit"] = limit_json(*j.limit, owner, result.stage);
  return stage;
}

}  // namespace

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

namespace {

// The shortest decimal that reads back to the same binary32.
Json float_json(float value) {
  return figure_json(std::isfinite(value) ? std::strtod(fmt::format("{}", value).c_str(), nullptr)
                                          : static_cast<double>(value));
}

// A cell in which nothing was measured is -1, an infinite one null.
}  // namespace

Json heat_json(const StageHeat& heat) {
  Json rows = Json::array();
  for (std::size_t r = 0; r < heat.map.rows(); ++r) {
    Json& row = rows.emplace_back(Json::array());
    for (std::size_t c = 0; c < heat.map.columns(); ++c) row.push_back(float_json(heat.map.at(r, c)));
  }
  return {{"stage", stage_name(heat.stage)},
          {"case", heat.slug},
          {"max_error_over_delta", figure_json(heat.max_ratio)},
          {"stored_rows", heat.map.stored()},
          {"row_length", heat.map.length()},
          {"cells", std::move(rows)}};
}

namespace {

Json heat_maps_json(const RunRecord& record) {
  Json list = Json::array();
  for (const StageHeat& heat : record.heat_maps) list.push_back(heat_json(heat));
  return list;
}

Json counts_json(const std::map<Verdict, int>& counts) {
  Json object = Json::object();
  for (const auto& [verdict, count] : counts) object[std::string(verdict_name(verdict))] = count;
  return object;
}

}  // namespace

Json frame_json(const RunRecord& record) {
  const RunSummary summary = summarise(record);
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
        {"logical_processors", record.machine.logical_processors},
        {"worker_memory_mib", record.machine.worker_memory_mib}}},
      {"adapter",
       {{"given", record.adapter.given},
        {"path", record.adapter.path},
        {"options", record.adapter.options},
        {"kind", adapter_kind_name(record.adapter.kind)},
        {"sha256", record.adapter_sha256},
        {"description", parse_json(record.description.text, "describe()")},
        {"unavailable", record.unavailable}}},
      {"corpus",
       {{"path", record.corpus_path},
        {"suite", record.corpus_suite},
        {"digest", record.corpus_digest},
        {"generator_version", record.generator_version}}},
      {"options", options_json(record)},
      {"demands", demands_json(record.demands)},
      {"known_failures", known_failures_json(record.known_failures)},
      {"unmet_demands", unmet_demands(record)},
      {"interrupted_by", record.interrupted_by},
      {"exit_code", exit_code(record)},
      {"summary",
       {{"cases", counts_json(summary.cases)},
        {"stages", counts_json(summary.stages)},
        {"relations", counts_json(summary.relations)},
        {"limit_violations", summary.limit_violations}}},
      {"histogram_edges", histogram_edges},
      {"contracts", std::move(contracts)},
      {"cases", Json::array()},
      {"relations", std::move(relations)},
      {"heat_maps", heat_maps_json(record)},
      {"diagnosis", record.diagnosis ? diagnosis_json(*record.diagnosis) : Json()},
  };
}

Json to_json(const RunRecord& record) {
  Json whole = frame_json(record);
  for (const CaseResult& result : record.cases) whole["cases"].push_back(case_json(result));
  return whole;
}

void write_run_json(const RunRecord& record, const TextSink& sink) {
  const auto write_cases = [&](std::size_t level) {
    write_json_list(sink, level, [&](const JsonSink& item) {
      for (const CaseResult& result : record.cases) item(case_json(result));
    });
  };
  write_json_object(sink, 0, frame_json(record), {{"cases", write_cases}});
  sink("\n");
}

std::string run_json_text(const RunRecord& record) {
  return text_of([&](const TextSink& sink) { write_run_json(record, sink); });
}

}  // namespace qkcts
