// SPDX-License-Identifier: Apache-2.0
#include "vectors/corpus_join.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <span>

#include <fmt/format.h>

#include "conformance/file.hpp"
#include "vectors/case_digest.hpp"
#include "vectors/corpus_master.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/file_replacement.hpp"
#include "vectors/schema.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;
namespace attribute = schema::attribute;

std::string file_name(const std::string& path) {
  return fs::path(path).filename().string();
}

void require_beside(const std::string& path, const std::string& master) {
  const auto folder = [](const std::string& file) {
    const fs::path parent = fs::path(file).parent_path();
    std::error_code error;
    return fs::canonical(parent.empty() ? fs::path(".") : parent, error);
  };
  if (folder(path) != folder(master))
    throw InputError(fmt::format("{}: must lie in the folder of {}, for a master file opens no others", path, master));
}

// Suites of a release come of one program, and none of them is a part of a plan.
void require_whole_suites(const std::vector<CorpusReader>& shards) {
  const CorpusInfo& first = shards.front().info();
  for (const CorpusReader& shard : shards) {
    const CorpusInfo& info = shard.info();
    if (!info.shard.empty()) throw InputError(fmt::format("{}: is shard {} of a plan", info.path, info.shard));
    if (info.generator_version != first.generator_version)
      throw InputError(fmt::format("{}: generator is {}, that of {} is {}", info.path, info.generator_version,
                                   first.path, first.generator_version));
  }
}

// "core+edge", each suite once, in the order of the files.
std::string suites_text(const std::vector<CorpusReader>& shards) {
  std::string text;
  for (const CorpusReader& shard : shards) {
    if (is_part_of_suite(text, shard.info().suite)) continue;
    text += fmt::format("{}{}", text.empty() ? "" : "+", shard.info().suite);
  }
  return text;
}

void require_one_origin(const std::vector<CorpusReader>& shards) {
  const CorpusInfo& first = shards.front().info();
  for (const CorpusReader& shard : shards) {
    const CorpusInfo& info = shard.info();
    const auto refuse = [&](const char* what, const auto& mine, const auto& other) {
      throw InputError(fmt::format("{}: {} is {}, that of {} is {}", info.path, what, mine, first.path, other));
    };
    if (info.suite != first.suite) refuse("suite", info.suite, first.suite);
    if (info.seed != first.seed) refuse("seed", info.seed, first.seed);
    if (info.generator_version != first.generator_version)
      refuse("generator", info.generator_version, first.generator_version);
    if (info.plan_digest != first.plan_digest) refuse("plan", info.plan_digest, first.plan_digest);
  }
}

// Files that call themselves shards are all of the shards of a plan.
void require_every_shard(const std::vector<CorpusReader>& shards) {
  const std::string& first = shards.front().info().shard;
  if (first.empty()) return;
  std::uint32_t count = 0;
  const std::size_t slash = std::min(first.find('/'), first.size());
  std::from_chars(first.data() + std::min(slash + 1, first.size()), first.data() + first.size(), count);
  if (count < 1 || count > schema::most_shards)
    throw InputError(fmt::format("{}: /: attribute shard is no I/N", shards.front().info().path));
  std::set<std::string> found;
  for (const CorpusReader& shard : shards) found.insert(shard.info().shard);
  for (std::uint32_t i = 1; i <= count; ++i) {
    const std::string wanted = fmt::format("{}/{}", i, count);
    if (found.count(wanted) == 0) throw InputError(fmt::format("shard {} is missing", wanted));
  }
  if (shards.size() != count)
    throw InputError(fmt::format("{} files for {} shards: one is given twice", shards.size(), count));
}

class MasterWriting {
 public:
  MasterWriting(Hdf5Output& file, const std::vector<CorpusReader>& shards) : file_(file), shards_(shards) {}

  void write(const CorpusInfo& info, const MergedShards& merged, const std::string& digest) {
    const std::uint32_t version = master_version(shards_);
    file_.write_text("", attribute::format, schema::format_name);
    file_.write_numbers("", attribute::format_version, StoredType::uint32, std::as_bytes(std::span(&version, 1)));
    file_.write_text("", attribute::generator_version, info.generator_version);
    file_.write_text("", attribute::precision_policy, schema::precision_policy);
    file_.write_text("", attribute::suite, info.suite);
    file_.write_numbers("", attribute::seed, StoredType::uint64, std::as_bytes(std::span(&info.seed, 1)));
    file_.write_text("", attribute::digest, digest);
    make_group(schema::shards);
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      const std::string group = fmt::format("{}/{:04}", schema::shards, i + 1);
      make_group(group);
      file_.write_text(group, attribute::file, file_name(shards_[i].info().path));
      file_.write_text(group, attribute::digest, shards_[i].info().digest);
    }
    link_all(schema::contracts, merged.contracts);
    if (!merged.profiles.empty()) link_all(schema::profiles, merged.profiles);
    if (!merged.relations.empty()) link_all(schema::relations, merged.relations);
    link_all(schema::cases, merged.cases);
  }

 private:
  void make_group(const std::string& group) {
    if (!groups_.insert(group).second) return;
    const std::size_t slash = group.rfind('/');
    if (slash != std::string::npos) make_group(group.substr(0, slash));
    file_.create_group(group);
  }

  void link_all(const char* group, const Homes& homes) {
    make_group(group);
    for (const auto& [name, home] : homes) {
      const std::string path = fmt::format("{}/{}", group, name);
      make_group(path.substr(0, path.rfind('/')));
      file_.link_external(path, file_name(shards_[home].info().path), "/" + path);
    }
  }

  Hdf5Output& file_;
  const std::vector<CorpusReader>& shards_;
  std::set<std::string> groups_;
};

}  // namespace

JoinReport join_corpora(std::vector<std::string> paths, const std::string& master, JoinOf kind) {
  if (paths.empty() || paths.size() > schema::most_shards)
    throw InputError(fmt::format("{} files to join; 1 to {} can be", paths.size(), schema::most_shards));
  std::sort(paths.begin(), paths.end(),
            [](const std::string& a, const std::string& b) { return file_name(a) < file_name(b); });
  FileReplacement target(master);
  std::vector<CorpusReader> shards;
  for (const std::string& path : paths) {
    require_beside(path, master);
    if (file_name(path) == file_name(master))
      throw InputError(fmt::format("{}: would be replaced by its own master", path));
    shards.emplace_back(shard_path(path, file_name(path), path), CorpusKind::single);
  }
  CorpusInfo info = shards.front().info();
  if (kind == JoinOf::several_suites) {
    require_whole_suites(shards);
    info.suite = suites_text(shards);
    info.seed = 0;
  } else {
    require_one_origin(shards);
    require_every_shard(shards);
  }
  const MergedShards merged = merged_shards(shards);
  JoinReport report{merged.contents.cases.size(), contents_digest(info.suite, info.seed, merged.contents)};
  {
    Hdf5Output file(target.temporary(), master);
    MasterWriting(file, shards).write(info, merged, report.digest);
    file.close();
  }
  target.commit();
  return report;
}

}  // namespace qkcts
