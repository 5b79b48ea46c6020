// SPDX-License-Identifier: Apache-2.0
#include "harness/run_journal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

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

Json head_json(const RunRecord& record) {
  RunRecord empty = record;
  empty.cases.clear();
  empty.relations.clear();
  empty.contracts.clear();
  empty.heat_maps.clear();
  Json head = identity_of(to_json(empty));
  head["schema"] = schema;
  head["started"] = record.started;
  return head;
}

std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

void require_same_run(const Json& then, const RunRecord& head, const std::string& path) {
  const Json before = identity_of(then), now = identity_of(to_json(head));
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
    CaseResult result = case_from_json(at["case"]);
    run.cases.insert_or_assign(result.slug, std::move(result));
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

JournaledRun read_lines(const std::string& path, const RunRecord& head) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) throw InputError(fmt::format("{}: cannot be read", path));
  const std::string text = content.str();
  JournaledRun run;
  std::size_t number = 0;
  for (std::size_t end = 0; (end = text.find('\n', run.bytes)) != std::string::npos; run.bytes = end + 1) {
    const std::string origin = fmt::format("{}: line {}", path, ++number);
    const Json line = parse_json(text.substr(run.bytes, end - run.bytes), origin);
    try {
      if (number > 1) {
        take_line(run, JsonAt(line, origin));
        continue;
      }
      if (line.value("schema", "") != schema)
        throw InputError(fmt::format("{}: is no journal of `qkcts run`; remove it to begin anew", origin));
      require_same_run(line, head, path);
      run.started = line.at("started").get<std::string>();
    } catch (const UsageError&) {
      throw;
    } catch (const InputError&) {
      throw;
    } catch (const std::exception& error) {
      throw InputError(fmt::format("{}: was changed ({}); remove it to begin anew", origin, error.what()));
    }
  }
  if (number == 0 && !text.empty() && file_kind(path) != FileKind::journal)
    throw InputError(fmt::format("{}: is no journal of `qkcts run`; remove it to begin anew", path));
  return run;
}

JournaledRun read_report(const std::string& path, const RunRecord& head) {
  RunRecord record = read_run_record(path);
  require_same_run(to_json(record), head, path);
  JournaledRun run;
  run.started = record.started;
  run.seconds = record.seconds;
  run.contracts = std::move(record.contracts);
  run.heat_maps = std::move(record.heat_maps);
  for (CaseResult& result : record.cases)
    if (is_finding(result.verdict)) run.cases.emplace(result.slug, std::move(result));
  for (RelationResult& result : record.relations)
    if (is_finding(result.verdict)) run.relations.emplace(result.slug, std::move(result));
  return run;
}

}  // namespace

std::string journal_path(const std::string& folder) {
  return folder + "/run.part";
}

JournaledRun journaled_run(const std::string& folder, const RunRecord& head) {
  std::error_code error;
  require_replaceable(journal_path(folder));  // opening a pipe would wait
  if (std::filesystem::exists(journal_path(folder), error)) return read_lines(journal_path(folder), head);
  const std::string report = folder + "/run.json";
  if (std::filesystem::exists(report, error)) return read_report(report, head);
  return {};
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

RunJournal::RunJournal(const std::string& folder, const RunRecord& head, const JournaledRun* known)
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
    return;
  }
  append(head_json(head));
  if (known == nullptr) return;
  // What was read from a report goes into the journal, so that one file holds all of it.
  for (const auto& [name, text] : known->contracts) append({{"contract", {{"name", name}, {"text", text}}}});
  contracts_ = known->contracts;
  for (const auto& [slug, result] : known->cases) append({{"case", case_json(result)}});
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
