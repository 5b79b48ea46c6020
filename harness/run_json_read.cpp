// SPDX-License-Identifier: Apache-2.0
// run.json -> RunRecord. The schema says what may stand there; here stands what it means. What follows from the rest
// (counts, exit code, meanings) is not read: the record is written again, and any difference is a fault of the file.
#include <fmt/format.h>

#include <functional>

#include "conformance/file.hpp"
#include "conformance/json_in_parts.hpp"
#include "conformance/json_schema.hpp"
#include "harness/record_values.hpp"
#include "harness/relation_report.hpp"
#include "harness/run_json_parts.hpp"
#include "harness/run_record.hpp"

namespace qkcts {
namespace {

JudgedElement element_from(const JsonAt& at, const CaseResult& owner, qkcts_stage stage) {
  const Format format = stage_format(stage, owner.format);
  JudgedElement element;
  element.place = place_from(at["index"], stage, owner.shape);
  if (!at["breach"].is_null()) element.breach = breach_named(at["breach"].text()).value();
  const auto clause = judging_clause_named(at["clause"].text());
  if (!clause) at["clause"].refuse("is no clause that elements are judged by");
  element.clause = *clause;
  element.rule = rule_named(at["rule"].text()).value();
  element.got = bits_from(at["got_bits"], format);
  element.expected = bits_from(at["expected_bits"], format);
  element.got_value = decode(format, element.got);
  element.exact.hi = at["exact_hi"].is_null() ? decode(format, element.expected) : at["exact_hi"].get<double>();
  element.exact.lo = at["exact_lo"].get<std::int16_t>();
  element.delta = static_cast<float>(figure_from(at["delta"]));
  element.ulps = figure_from(at["ulps"]);
  element.ratio = figure_from(at["error_over_delta"]);
  return element;
}

std::optional<JudgedElement> element_or_none(const JsonAt& at, const CaseResult& owner, qkcts_stage stage) {
  if (at.is_null()) return std::nullopt;
  return element_from(at, owner, stage);
}

LimitResult limit_from(const JsonAt& at, const CaseResult& owner, qkcts_stage stage) {
  LimitResult result;
  const JsonAt limit = at["limit"];
  const auto figure = [&](const char* key) {
    return limit.has(key) ? std::optional(limit[key].get<double>()) : std::nullopt;
  };
  result.limit = {figure("max_ulp"), figure("max_error_over_delta"), figure("atol"), figure("rtol")};
  result.violations = at["violations"].get<std::uint64_t>();
  result.worst = element_or_none(at["worst"], owner, stage);
  if ((result.violations > 0) != result.worst.has_value()) at["worst"].refuse("must stand where the limit is exceeded");
  return result;
}

ElementCounts counts_from(const JsonAt& at) {
  const auto count = [&](const char* key) { return at[key].get<std::uint64_t>(); };
  return {count("judged"), count("exact"), count("mistrusted"), count("domain"), count("hidden"), count("failed")};
}

StageJudgement judgement_from(const JsonAt& at, const CaseResult& owner, qkcts_stage stage) {
  StageJudgement j;
  j.verdict = verdict_from(at["verdict"]);
  j.counts = counts_from(at["elements"]);
  j.unwritten = at["elements"]["unwritten"].get<std::uint64_t>();
  if (!at["first_unwritten"].is_null()) j.first_unwritten = place_from(at["first_unwritten"], stage, owner.shape);
  if ((j.unwritten > 0) != j.first_unwritten.has_value())
    at["first_unwritten"].refuse("must stand where elements are unwritten");
  j.max_ulp = figure_from(at["max_ulp"]);
  j.p99_ulp = figure_from(at["p99_ulp"]);
  j.mean_ulp = figure_from(at["mean_ulp"]);
  j.signed_mean_ulp = figure_from(at["signed_mean_ulp"]);
  j.outward_mean_ulp = figure_from(at["outward_mean_ulp"]);
  j.max_ratio = figure_from(at["max_error_over_delta"]);
  j.worst = element_or_none(at["worst"], owner, stage);
  if (j.counts.failed > 0 && !j.worst) at["worst"].refuse("must stand where elements fail");
  for (const JsonAt& failure : at["failures"].items()) j.failures.push_back(element_from(failure, owner, stage));
  const Json& histogram = at["histogram"].json();
  if (histogram.size() != j.histogram.size())
    at["histogram"].refuse(fmt::format("must have {} classes", j.histogram.size()));
  for (std::size_t i = 0; i < j.histogram.size(); ++i) j.histogram[i] = histogram[i].get<std::uint64_t>();
  if (at.has("own_limit")) j.limit = limit_from(at["own_limit"], owner, stage);
  return j;
}

StageResult stage_result_from(const JsonAt& at, const CaseResult& owner) {
  StageResult result;
  result.stage = stage_from(at["stage"]);
  result.verdict = verdict_from(at["verdict"]);
  result.detail = at["detail"].text();
  result.differing_calls = at["differing_calls"].get<int>();
  if (at.has("spread_ulp")) result.spread_ulp = figure_from(at["spread_ulp"]);
  for (const JsonAt& one : at["variants"].items()) {
    VariantFinding& finding = result.variants.emplace_back();
    finding.variant = variant_named(one["variant"].text()).value();
    finding.same_bits = one["same_bits"].get<bool>();
    if (one.has("max_error_over_delta")) finding.max_ratio = figure_from(one["max_error_over_delta"]);
    if (one.has("implementation")) finding.implementation = one["implementation"].text();
  }
  if (!at.has("elements")) return result;
  for (const char* key :
       {"first_unwritten", "max_ulp", "p99_ulp", "mean_ulp", "signed_mean_ulp", "outward_mean_ulp",
        "max_error_over_delta", "histogram", "worst", "failures", "plain", "warnings", "output_sha256"})
    if (!at.has(key)) at.refuse(fmt::format("key \"{}\" is missing beside \"elements\"", key));
  result.output_sha256 = at["output_sha256"].text();
  result.judgement = judgement_from(at, owner, result.stage);
  const JsonAt plain = at["plain"];
  if (!plain.is_null())
    result.plain = PlainError{figure_from(plain["max_ulp"]), figure_from(plain["p99_ulp"]),
                              figure_from(plain["mean_ulp"]), figure_from(plain["max_error_over_delta"])};
  return result;
}

CaseResult case_from(const JsonAt& at) {
  CaseResult result;
  result.slug = at["case"].text();
  result.contract = at["contract"].text();
  result.contract_digest = at["contract_digest"].text();
  result.family = at["family"].text();
  result.description = at["description"].text();
  result.format = format_from(at["format"]);
  result.shape = shape_from(at["shape"]);
  result.profile = at["profile"].text();
  result.verdict = verdict_from(at["verdict"]);
  result.detail = at["detail"].text();
  result.implementation = at["implementation"].text();
  result.seconds = at["seconds"].get<double>();
  result.calls = at["calls"].get<int>();
  result.output = at["output"].text();
  for (const JsonAt& stage : at["stages"].items()) result.stages.push_back(stage_result_from(stage, result));
  return result;
}

StageHeat heat_from(const JsonAt& at) {
  StageHeat heat;
  heat.stage = stage_from(at["stage"]);
  heat.slug = at["case"].text();
  heat.max_ratio = figure_from(at["max_error_over_delta"]);
  const auto stored = at["stored_rows"].get<std::size_t>(), length = at["row_length"].get<std::size_t>();
  const HeatMap shape(stored, length);
  std::vector<float> cells;
  if (at["cells"].json().size() != shape.rows()) at["cells"].refuse(fmt::format("must be {} rows", shape.rows()));
  for (const JsonAt& row : at["cells"].items()) {
    if (row.json().size() != shape.columns()) row.refuse(fmt::format("must be {} cells", shape.columns()));
    for (const JsonAt& cell : row.items()) cells.push_back(static_cast<float>(figure_from(cell)));
  }
  heat.map = HeatMap(stored, length, shape.rows(), shape.columns(), std::move(cells));
  return heat;
}

std::string text_or_empty(const JsonAt& at) {
  return at.is_null() ? std::string() : at.text();
}

Machine machine_from(const JsonAt& at) {
  return {at["system"].text(),
          at["release"].text(),
          at["architecture"].text(),
          at["processor"].text(),
          at["logical_processors"].get<int>(),
          at["worker_memory_mib"].get<std::uint64_t>()};
}

void read_adapter(RunRecord& record, const JsonAt& at, const std::string& origin) {
  record.adapter.given = at["given"].text();
  record.adapter.path = at["path"].text();
  record.adapter.options = at["options"].text();
  record.adapter.kind = adapter_kind_named(at["kind"].text()).value();
  record.adapter_sha256 = at["sha256"].text();
  record.description =
      description_from_json(canonical_text(at["description"].json()), origin + ": /adapter/description");
  record.unavailable = at["unavailable"].text();
}

void read_options(RunRecord& record, const JsonAt& at, const std::string& origin) {
  record.profile_asked = text_or_empty(at["profile"]);
  record.stages_asked = text_or_empty(at["stages"]);
  record.judging = at["relations_only"].get<bool>() ? Judging::relations_alone : Judging::values_and_relations;
  record.plain = at["plain"].get<bool>();
  record.repeat = at["repeat"].get<int>();
  record.timeout_seconds = at["timeout_seconds"].get<double>();
  RunConditions& how = record.conditions;
  how.case_glob = at["case_glob"].text();
  how.shard = text_or_empty(at["shard"]);
  how.variants = at["variants"].text() == "all" ? Variants::all : Variants::none;
  if (at["strict_protocol"].get<bool>()) record.adapter.strictness = Strictness::everything;
  how.in_process = at["in_process"].get<bool>();
  how.gtest = at["gtest"].get<std::vector<std::string>>();
  how.memory_mib = at["memory_mib"].get<std::uint64_t>();
  how.address_space_mib = at["address_space_mib"].get<std::uint64_t>();
  how.processor_seconds = at["cpu_seconds"].get<double>();
  how.respawns = at["respawns"].get<int>();
  if (!at["limits"].is_null())
    record.limits_text = limits_from_json(canonical_text(at["limits"].json()), origin + ": /options/limits").text;
}

std::string place_of_case(std::size_t number) {
  return fmt::format("/cases/{}", number);
}

// Every report shows the case of an element, a diagnosis or a picture.
void require_known_cases(const RunRecord& record, const std::string& origin) {
  for (std::size_t i = 0; i < record.cases.size(); ++i)
    if (!record.contracts.contains(record.cases[i].contract))
      throw InputError(fmt::format("{}: {}/contract: is not among /contracts", origin, place_of_case(i)));
}

// All but the cases.
RunRecord frame_at(const JsonAt& at, const std::string& origin) {
  RunRecord record;
  record.suite_version = at["suite_version"].text();
  record.started = at["started"].text();
  record.seconds = at["seconds"].get<double>();
  record.command = at["command"].get<std::vector<std::string>>();
  record.machine = machine_from(at["machine"]);
  read_adapter(record, at["adapter"], origin);
  const JsonAt corpus = at["corpus"];
  record.corpus_path = corpus["path"].text();
  record.corpus_suite = corpus["suite"].text();
  record.corpus_digest = corpus["digest"].text();
  record.generator_version = corpus["generator_version"].text();
  read_options(record, at["options"], origin);
  record.demands = demands_from_json(at["demands"]);
  record.known_failures = known_failure_uses_from_json(at["known_failures"]);
  record.interrupted_by = at["interrupted_by"].get<int>();
  for (const auto& [name, contract] : at["contracts"].json().items())
    record.contracts[name] =
        canonical_json(contract_from_json(canonical_text(contract), fmt::format("{}: /contracts/{}", origin, name)));
  for (const JsonAt& one : at["relations"].items()) record.relations.push_back(relation_from_json(one));
  for (const JsonAt& one : at["heat_maps"].items()) record.heat_maps.push_back(heat_from(one));
  if (!at["diagnosis"].is_null()) record.diagnosis = diagnosis_from_json(at["diagnosis"]);
  return record;
}

// The first place where the document, or the part of it at `place`, differs from the record that it describes.
void require_consistency(const Json& document, const Json& again, const std::string& origin, const std::string& place) {
  if (document == again) return;
  const Json difference = Json::diff(again, document);
  throw InputError(
      fmt::format("{}: {}{}: contradicts the rest of the file; only a run.json as `qkcts run` wrote it is read", origin,
                  place, difference.at(0).at("path").get<std::string>()));
}

CaseResult checked_case(const Json& json, const std::string& origin, const std::string& place) {
  require_definition(json, "run", "case", origin, place, LongStrings::admitted);  // what an adapter printed may be long
  CaseResult result = case_from(JsonAt::part(json, origin, place));
  require_consistency(json, case_json(result), origin, place);
  return result;
}

// `parse` hands over the objects under /cases and returns the rest.
RunRecord checked_record(const std::string& name,
                         const std::function<Json(const std::function<void(const Json& item)>& take)>& parse) {
  CaseResults cases;
  const Json document =
      parse([&](const Json& item) { cases.push_back(checked_case(item, name, place_of_case(cases.size()))); });
  if (!document.is_object() || !document.contains("schema"))
    throw InputError(fmt::format("{}: is no run.json of `qkcts run -o`: it has no \"schema\"", name));
  require_schema(document, "run", name, LongStrings::admitted);
  RunRecord record = frame_at(JsonAt(document, name), name);
  record.cases = std::move(cases);
  require_known_cases(record, name);
  require_consistency(document, frame_json(record), name, {});
  return record;
}

}  // namespace

CaseResult case_from_json(const JsonAt& at) {
  return case_from(at);
}

StageHeat heat_from_json(const JsonAt& at) {
  return heat_from(at);
}

RunRecord record_from_json(std::string_view text, std::string_view origin) {
  return checked_record(std::string(origin),
                        [&](const auto& take) { return parse_json_in_parts(text, origin, "cases", take); });
}

RunRecord record_from_frame(const Json& frame, const std::string& origin) {
  require_schema(frame, "run", origin, LongStrings::admitted);
  RunRecord record = frame_at(JsonAt(frame, origin), origin);
  require_consistency(frame, frame_json(record), origin, {});
  return record;
}

RunRecord read_run_record(const std::string& path) {
  constexpr std::uint64_t longest = std::uint64_t{1} << 29;  // 10,000 cases are about 2^27 bytes
  return checked_record(path, [&](const auto& take) { return parse_json_file_in_parts(path, longest, "cases", take); });
}

}  // namespace qkcts
