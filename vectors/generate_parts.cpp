// SPDX-License-Identifier: Apache-2.0
#include "vectors/generate_parts.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "conformance/file.hpp"
#include "conformance/json.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/corpus_writer.hpp"
#include "vectors/relation.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;

constexpr const char* suite_of_parts = "part";

std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    files.push_back(at->path());
  return files;
}

bool is_ours(const std::string& name) {
  if (name == "lock" || name == "whole.h5" || name.compare(0, 11, "origin.json") == 0) return true;
  const std::size_t digits = name.find_first_not_of("0123456789");
  return digits > 0 && digits != std::string::npos && (name[digits] == '.');
}

// A write that a kill cut short.
bool is_unfinished(const std::string& name) {
  return name == "whole.h5" || name.find(".partial.") != std::string::npos;
}

Json json_of(const PartsOrigin& origin) {
  return {{"program", origin.program}, {"plan", origin.plan_digest}, {"shard", origin.shard}};
}

// Which of the things that must be the same is not.
std::string foreign(const std::string& folder, const PartsOrigin& origin) {
  const std::string path = folder + "/origin.json";
  const Json found = parse_json(read_text_file(path), path);
  const Json wanted = json_of(origin);
  if (!found.is_object()) return "of something else";
  if (found.value("program", Json()) != wanted["program"]) return "of another version of this program";
  if (found.value("plan", Json()) != wanted["plan"]) return "of another plan, or of other options or another seed";
  if (found.value("shard", Json()) != wanted["shard"]) return "of another shard";
  return {};
}

// What stands beside a case, or in place of one.
Json note_of(const PlannedCase& planned, const CaseOutcome& outcome) {
  Json dropped = Json::array();
  for (const DroppedProfile& d : outcome.dropped)
    dropped.push_back({{"profile", d.profile}, {"stage", d.stage}, {"share", d.share}});
  Json relations = Json::array();
  for (const Relation& relation : outcome.relations)
    relations.push_back({{"slug", relation.slug}, {"text", relation_text(relation)}});
  return {{"slug", planned.slug},       {"evidence", outcome.golden.has_value()},
          {"refusal", outcome.refusal}, {"dropped", dropped},
          {"relations", relations},     {"says_nothing", outcome.says_nothing}};
}

// False if the note is not of that case, or is damaged.
bool read_note(const std::string& path, const PlannedCase& planned, CaseOutcome& outcome, bool& has_evidence) {
  try {
    const Json note = parse_json(read_text_file(path), path);
    if (note.at("slug") != planned.slug) return false;
    outcome.refusal = note.at("refusal").get<std::string>();
    for (const Json& d : note.at("dropped"))
      outcome.dropped.push_back({planned.slug, d.at("profile").get<std::string>(), d.at("stage").get<std::string>(),
                                 d.at("share").get<double>()});
    for (const Json& r : note.at("relations"))
      outcome.relations.push_back(
          relation_from_text(r.at("slug").get<std::string>(), r.at("text").get<std::string>(), path));
    outcome.says_nothing = note.at("says_nothing").get<std::vector<std::string>>();
    has_evidence = note.at("evidence").get<bool>();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Beside evidence: from what is planned or from what the note itself would say.
bool needs_note(const PlannedCase& planned, const CaseOutcome& outcome) {
  return !planned.relations.empty() || !outcome.dropped.empty();
}

std::size_t wanted_profiles(const PlannedCase& planned) {
  return planned.profiles.empty() ? profiles_for(planned.format).size() : planned.profiles.size();
}

}  // namespace

CaseParts::CaseParts(std::string folder, const PartsOrigin& origin) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directory(folder_, error);
  if (!fs::is_directory(folder_, error)) throw WriteError(fmt::format("{}: cannot be made a folder", folder_));
  for (const fs::path& path : files_in(folder_))
    if (!is_ours(path.filename().string()))
      throw InputError(fmt::format("{}: holds {}, so it is no folder of unfinished cases; move it away", folder_,
                                   path.filename().string()));
  lock_ = ::open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) throw WriteError(fmt::format("{}: cannot be written: {}", folder_, std::strerror(errno)));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(lock_);
    throw WriteError(fmt::format("{}: another program is at work there", folder_));
  }
  try {
    for (const fs::path& path : files_in(folder_))
      if (is_unfinished(path.filename().string())) ::unlink(path.c_str());
    if (!fs::exists(folder_ + "/origin.json", error)) {
      write_file_atomically(folder_ + "/origin.json", canonical_text(json_of(origin)) + "\n");
    } else if (const std::string fault = foreign(folder_, origin); !fault.empty()) {
      throw InputError(fmt::format("{}: holds cases {}; remove it to begin anew", folder_, fault));
    }
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

CaseParts::~CaseParts() {
  if (lock_ >= 0) ::close(lock_);
}

std::string CaseParts::file(std::size_t index, const char* ending) const {
  return fmt::format("{}/{:06}{}", folder_, index, ending);
}

std::optional<CaseOutcome> CaseParts::load(std::size_t index, const PlannedCase& planned) const {
  CaseOutcome outcome;
  outcome.resumed = true;
  const std::string note = file(index, ".json"), corpus = file(index, ".h5");
  std::error_code error;
  const bool has_note = fs::exists(note, error);
  bool has_evidence = true;
  if (has_note && !read_note(note, planned, outcome, has_evidence)) return std::nullopt;
  if (!has_evidence) return outcome;
  if (!fs::exists(corpus, error) || has_note != needs_note(planned, outcome)) return std::nullopt;
  try {
    const CorpusReader reader(corpus);
    if (reader.slugs() != std::vector<std::string>{planned.slug}) return std::nullopt;
    outcome.golden = reader.read(planned.slug);
  } catch (const InputError&) {
    return std::nullopt;
  }
  // The note is written first; a power cut may still have lost it.
  if (outcome.golden->profiles.size() + outcome.dropped.size() != wanted_profiles(planned)) return std::nullopt;
  outcome.golden->input.contract = planned.contract;
  return outcome;
}

void CaseParts::keep(std::size_t index, const PlannedCase& planned, CaseOutcome& outcome) const {
  if (needs_note(planned, outcome) || !outcome.golden)
    write_file_atomically(file(index, ".json"), canonical_text(note_of(planned, outcome)) + "\n");
  if (!outcome.golden) return;
  CorpusWriter writer(file(index, ".h5"), {suite_of_parts, "", 0});
  writer.add(*outcome.golden);
  writer.finish();
}

void remove_parts(const std::string& folder) {
  for (const fs::path& path : files_in(folder))
    if (is_ours(path.filename().string())) ::unlink(path.c_str());
  ::rmdir(folder.c_str());
}

}  // namespace qkcts
