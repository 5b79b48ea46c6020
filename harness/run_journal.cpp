// SPDX-License-Identifier: Apache-2.0
#include "harness/run_journal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "conformance/file.hpp"
#include "harness/file_kind.hpp"
#include "harness/relation_report.hpp"
#include "harness/run_json_parts.hpp"
#include "harness/usage_error.hpp"

namespace qkcts {
namespace {

constexpr std::string_view schema = "qkcts-run-part/1";

// What has to be the same for the findings of two runs to be those of one. Paths are not in it: files may be moved.
Json identity_of(const Json& run) {
  const Json& adapter = run.at("adapter");
  return {{"suite_version", run.at("suite_version")},
          {"adapter",
           {{"sha256", adapter.at("sha256")},
            {"options", adapter.at("options")},
            {"kind", adapter.at("kind")},
            {"description", adapter.at("description")},
            {"unavailable", adapter.at("unavailable")}}},
          {"corpus", {{"digest", run.at("corpus").at("digest")}}},
          {"options", run.at("options")}};
}

Json frame_line(const RunRecord& record, std::size_t cases) {
  return {{"run", frame_json(record)}, {"cases", cases}};
}

Json head_json(const RunRecord& record, std::size_t cases) {
  Json head = frame_line(record, cases);
  head.update(identity_of(head.at("run")));
  head["schema"] = schema;
  head["started"] = record.started;
  return head;
}

StageSet stages_asked(const RunRecord& record) {
  if (record.stages_asked.empty()) return ~StageSet{0};
  StageSet asked = 0;
  for (const qkcts_stage stage : all_stages)
    if (fmt::format(",{},", record.stages_asked).find(fmt::format(",{},", stage_name(stage))) != std::string::npos)
      asked |= bit(stage);
  return asked;
}

std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

void require_same_run(const Json& then, const RunRecord& head, const std::string& path) {
  const Json before = identity_of(then), now = identity_of(frame_json(head));
  if (before == now) return;
  const Json::json_pointer place(Json::diff(before, now).at(0).at("path").get<std::string>());
  const auto at = [&](const Json& document) {
    return document.contains(place) ? shown(document.at(place)) : "nothing";
  };
  throw UsageError(fmt::format(
      "--resume: {} is of another run: {} was {} and is {}; repeat that run, or leave --resume out to begin anew", path,
      place.to_string(), at(before), at(now)));
}

// Left out: what was not run, and what a list of known failures has marked.
bool is_finding(Verdict verdict) {
  return verdict != Verdict::not_run && verdict != Verdict::xfail && verdict != Verdict::xpass;
}

void take_line(JournaledRun& run, const JsonAt& at) {
  if (at.has("contract")) {
    const JsonAt contract = at["contract"];
    run.contracts[contract["name"].text()] = contract["text"].text();
  }
  if (at.has("case")) {
    run.put(case_from_json(at["case"]));
  }
  if (at.has("relation")) {
    RelationResult result = relation_from_json(at["relation"]);
    run.relations.insert_or_assign(result.slug, std::move(result));
  }
  if (at.has("heat")) {
    StageHeat heat = heat_from_json(at["heat"]);
    std::erase_if(run.heat_maps, [&](const StageHeat& other) { return other.stage == heat.stage; });
    // In order of evaluation, as in a record.
    const auto order = [](qkcts_stage stage) { return std::find(all_stages.begin(), all_stages.end(), stage); };
    const auto place = std::find_if(run.heat_maps.begin(), run.heat_maps.end(),
                                    [&](const StageHeat& other) { return order(other.stage) > order(heat.stage); });
    run.heat_maps.insert(place, std::move(heat));
  }
  if (at.has("seconds")) run.seconds = at["seconds"].get<double>();
}

// `take_head` sees the first line, once it is known that it is that of a journal, and `take_frame` those with which a
// run went on.
JournaledRun read_lines(const std::string& path, const std::function<void(const Json& head)>& take_head,
                        const std::function<void(const Json& line)>& take_frame) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: cannot be read", path));
  JournaledRun run;
  std::size_t number = 0;
  std::string text;
  while (std::getline(file, text) && !file.eof()) {  // what has no end is the rest that a kill left
    const std::string origin = fmt::format("{}: line {}", path, ++number);
    const Json line = parse_json(text, origin);
    try {
      if (number > 1) {
        if (line.contains("run")) take_frame(line);
        take_line(run, JsonAt(line, origin));
      } else {
        if (line.value("schema", "") != schema)
          throw InputError(fmt::format("{}: is no journal of `qkcts run`; remove it to begin anew", origin));
        take_head(line);
        run.started = line.at("started").get<std::string>();
      }
      run.bytes += text.size() + 1;
    } catch (const UsageError&) {
      throw;
    } catch (const InputError&) {
      throw;
    } catch (const std::exception& error) {
      throw InputError(fmt::format("{}: was changed ({}); remove it to begin anew", origin, error.what()));
    }
  }
  if (file.bad()) throw InputError(fmt::format("{}: cannot be read", path));
  if (number == 0 && !text.empty() && file_kind(path) != FileKind::journal)
    throw InputError(fmt::format("{}: is no journal of `qkcts run`; remove it to begin anew", path));
  return run;
}

JournaledRun read_report(const std::string& path, const RunRecord& head) {
  RunRecord record = read_run_record(path);
  require_same_run(frame_json(record), head, path);
  JournaledRun run;
  run.started = record.started;
  run.seconds = record.seconds;
  run.contracts = std::move(record.contracts);
  run.heat_maps = std::move(record.heat_maps);
  for (CaseResult& result : record.cases)
    if (is_finding(result.verdict)) run.put(std::move(result));
  for (RelationResult& result : record.relations)
    if (is_finding(result.verdict)) run.relations.emplace(result.slug, std::move(result));
  return run;
}

}  // namespace

void JournaledRun::put(CaseResult result) {
  const auto [place, is_new] = place_of_case.try_emplace(result.slug, cases.size());
  if (is_new) {
    cases.push_back(std::move(result));
  } else {
    cases[place->second] = std::move(result);
  }
}

std::string journal_path(const std::string& folder) {
  return folder + "/run.part";
}

JournaledRun journaled_run(const std::string& folder, const RunRecord& head) {
  std::error_code error;
  require_replaceable(journal_path(folder));  // opening a pipe would wait
  if (std::filesystem::exists(journal_path(folder), error))
    return read_lines(
        journal_path(folder), [&](const Json& then) { require_same_run(then, head, journal_path(folder)); },
        [](const Json&) {});
  const std::string report = folder + "/run.json";
  if (std::filesystem::exists(report, error)) return read_report(report, head);
  return {};
}

RunRecord read_partial_run(const std::string& path) {
  RunRecord record;
  const auto take_frame = [&](const Json& line) {
    if (!line.contains("run") || !line.contains("cases"))
      throw InputError(
          fmt::format("{}: was begun by an older qkcts: `qkcts run --resume` makes a run.json of it", path));
    record = record_from_frame(line.at("run"), fmt::format("{}: /run", path));
    record.planned_cases = line.at("cases").get<std::size_t>();
  };
  JournaledRun run = read_lines(path, take_frame, take_frame);
  if (!record.planned_cases) throw InputError(fmt::format("{}: was cut off before its first line ends", path));
  record.seconds = run.seconds;
  record.started = run.started;
  record.contracts = std::move(run.contracts);
  record.heat_maps = std::move(run.heat_maps);
  record.cases = std::move(run.cases);
  for (const CaseResult& result : record.cases)
    if (!record.contracts.contains(result.contract))
      throw InputError(fmt::format("{}: holds case {} without its contract", path, result.slug));
  for (auto& [slug, result] : run.relations) record.relations.push_back(std::move(result));
  for (CaseResult& result : record.cases) apply_known_failures(result, record.known_failures, stages_asked(record));
  for (RelationResult& result : record.relations) apply_known_failures(result, record.known_failures);
  return record;
}

bool nothing_is_left(const RunRecord& record) {
  if (!record.unavailable.empty()) return true;
  const auto ran = [](const auto& result) { return result.verdict != Verdict::not_run; };
  return std::all_of(record.cases.begin(), record.cases.end(), ran) &&
         std::all_of(record.relations.begin(), record.relations.end(), ran);
}

void remove_journal(const std::string& folder) {
  unlink(journal_path(folder).c_str());
}

RunJournal::RunJournal(const std::string& folder, const RunRecord& head, std::size_t cases, const JournaledRun* known)
    : path_(journal_path(folder)) {
  require_replaceable(path_);
  const bool goes_on = known != nullptr && known->bytes > 0;
  // A new one is a new file: what is there may be another name of a file that is somebody's, or a link to one.
  if (!goes_on && unlink(path_.c_str()) != 0 && errno != ENOENT)
    throw WriteError(fmt::format("{}: cannot be replaced: {}", path_, std::strerror(errno)));
  file_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_APPEND | (goes_on ? 0 : O_CREAT | O_EXCL | O_NOFOLLOW), 0644);
  if (file_ < 0) throw WriteError(fmt::format("{}: {}", path_, std::strerror(errno)));
  if (known != nullptr) seconds_before_ = known->seconds;
  if (goes_on) {
    if (ftruncate(file_, static_cast<off_t>(known->bytes)) != 0)
      throw WriteError(fmt::format("{}: {}", path_, std::strerror(errno)));
    contracts_ = known->contracts;
    for (const StageHeat& heat : known->heat_maps) heat_[heat.stage] = heat.slug;
    append(frame_line(head, cases));  // known failures and demands may be others than those it began with
    return;
  }
  append(head_json(head, cases));
  if (known == nullptr) return;
  // What was read from a report goes into the journal, so that one file holds all of it.
  for (const auto& [name, text] : known->contracts) append({{"contract", {{"name", name}, {"text", text}}}});
  contracts_ = known->contracts;
  for (const CaseResult& result : known->cases) append({{"case", case_json(result)}});
  for (const auto& [slug, result] : known->relations) append({{"relation", relation_json(result)}});
  for (const StageHeat& heat : known->heat_maps) {
    append({{"heat", heat_json(heat)}});
    heat_[heat.stage] = heat.slug;
  }
}

RunJournal::~RunJournal() {
  close(file_);
}

void RunJournal::add(const RunRecord& record, const CaseResult& result) {
  if (result.verdict == Verdict::not_run) return;
  const auto contract = record.contracts.find(result.contract);
  if (contract != record.contracts.end() && contracts_.insert(*contract).second)
    append({{"contract", {{"name", contract->first}, {"text", contract->second}}}});
  for (const StageHeat& heat : record.heat_maps) {
    if (heat.slug != result.slug || heat_[heat.stage] == heat.slug) continue;
    append({{"heat", heat_json(heat)}});
    heat_[heat.stage] = heat.slug;
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  append({{"case", case_json(result)}, {"seconds", seconds_before_ + passed.count()}});
}

void RunJournal::add(const RelationResult& result) {
  if (result.verdict != Verdict::not_run) append({{"relation", relation_json(result)}});
}

// In one call of write(), so that a kill leaves whole lines, or one that is cut off and has no end.
void RunJournal::append(const Json& line) {
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t put = ::write(file_, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0)
      throw WriteError(fmt::format("{}: {}; what was judged stays in it: make room, then go on with --resume", path_,
                                   std::strerror(errno)));
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace qkcts
