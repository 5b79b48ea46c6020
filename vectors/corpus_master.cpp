// SPDX-License-Identifier: Apache-2.0
#include "vectors/corpus_master.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "vectors/case_digest.hpp"
#include "vectors/format_version.hpp"
#include "vectors/schema.hpp"
#include "vectors/slug.hpp"

namespace qkcts {
namespace {

namespace attribute = schema::attribute;
using Entries = std::vector<DigestEntry> CorpusContents::*;

[[noreturn]] void refuse(const Hdf5Input& file, const std::string& object, std::string_view reason) {
  throw InputError(fmt::format("{}: /{}: {}", file.path(), object, reason));
}

std::string name_of(const CorpusReader& shard) {
  return std::filesystem::path(shard.info().path).filename().string();
}

// Contracts and profiles may stand in several shards, and then say the same there.
void merge_named(const std::vector<CorpusReader>& shards, Entries entries, const char* kind, MergedShards& merged,
                 Homes& homes) {
  std::map<std::string, std::string> digests;
  for (std::size_t i = 0; i < shards.size(); ++i)
    for (const DigestEntry& entry : shards[i].contents().*entries) {
      const auto [known, is_new] = digests.emplace(entry.name, entry.digest);
      if (!is_new && known->second != entry.digest)
        throw InputError(fmt::format("{}: {} {} is another one in {}", shards[i].info().path, kind, entry.name,
                                     name_of(shards[homes[entry.name]])));
      homes.emplace(entry.name, i);
    }
  for (const auto& [name, digest] : digests) (merged.contents.*entries).push_back({name, digest});
}

// Cases and relations stand in one shard each.
void merge_unique(const std::vector<CorpusReader>& shards, Entries entries, const char* kind, MergedShards& merged,
                  Homes& homes) {
  std::vector<DigestEntry>& all = merged.contents.*entries;
  for (std::size_t i = 0; i < shards.size(); ++i)
    for (const DigestEntry& entry : shards[i].contents().*entries) {
      const auto [known, is_new] = homes.emplace(entry.name, i);
      if (!is_new)
        throw InputError(fmt::format("{}: {} {} stands in {} too", shards[i].info().path, kind, entry.name,
                                     name_of(shards[known->second])));
      all.push_back(entry);
    }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  // "/" sorts before every other character of a slug, so what lies inside another follows it.
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].name.compare(0, all[i - 1].name.size() + 1, all[i - 1].name + "/") == 0)
      throw InputError(fmt::format("{} {} lies inside {}", kind, all[i].name, all[i - 1].name));
}

void expect_link(const Hdf5Input& file, const std::string& path, const StoredLink& link, const Homes& homes,
                 const std::string& name, const OpenMaster& master) {
  const auto home = homes.find(name);
  if (link.file.empty() || home == homes.end()) refuse(file, path, "is no link to what a shard holds");
  if (link.file != name_of(master.shards[home->second]) || link.object != "/" + path)
    refuse(file, path, "links to something else than what the shards hold under that name");
}

std::size_t count_nested_links(const Hdf5Input& file, const char* root, const std::string& slug, int depth,
                               const Homes& homes, const OpenMaster& master) {
  const std::string group = slug.empty() ? root : fmt::format("{}/{}", root, slug);
  if (depth >= schema::deepest_slug) refuse(file, group, "is nested too deeply");
  std::size_t count = 0;
  for (const StoredLink& link : file.links(group)) {
    const std::string inner = slug.empty() ? link.name : slug + "/" + link.name;
    const std::string path = fmt::format("{}/{}", root, inner);
    if (link.is_group) {
      if (!is_slug(inner)) refuse(file, path, "has no valid name");
      count += count_nested_links(file, root, inner, depth + 1, homes, master);
    } else {
      expect_link(file, path, link, homes, inner, master);
      ++count;
    }
  }
  return count;
}

void check_links(const Hdf5Input& file, const char* group, const Homes& homes, const OpenMaster& master) {
  if (count_nested_links(file, group, "", 0, homes, master) != homes.size())
    refuse(file, group, "does not link to all that the shards hold");
}

void check_members(const Hdf5Input& file, const OpenMaster& master) {
  std::vector<std::string> wanted = {schema::cases, schema::contracts, schema::shards};
  if (!master.merged.profiles.empty()) wanted.emplace_back(schema::profiles);
  if (!master.merged.relations.empty()) wanted.emplace_back(schema::relations);
  std::sort(wanted.begin(), wanted.end());
  std::vector<std::string> found;
  for (const StoredMember& member : file.members("")) found.push_back(member.name);
  if (found != wanted) refuse(file, "", "has other groups than a master of these shards");
}

CorpusReader open_shard(const Hdf5Input& file, const CorpusInfo& info, const std::string& group) {
  const std::string where = fmt::format("{}: /{}", file.path(), group);
  const std::string name = file.read_text(group, attribute::file);
  CorpusReader shard(shard_path(info.path, name, where), CorpusKind::single);
  const CorpusInfo& found = shard.info();
  if (found.digest != file.read_text(group, attribute::digest))
    throw InputError(
        fmt::format("{}: {} was changed after it was joined: its digest is {}", where, name, found.digest));
  const bool several = info.suite.find('+') != std::string::npos;
  const bool belongs = several ? is_part_of_suite(info.suite, found.suite) && info.seed == 0
                               : found.suite == info.suite && found.seed == info.seed;
  if (!belongs || found.generator_version != info.generator_version)
    throw InputError(fmt::format("{}: {} is of another suite, seed or generator than the master", where, name));
  return shard;
}

}  // namespace

bool is_part_of_suite(const std::string& suites, const std::string& suite) {
  return ("+" + suites + "+").find("+" + suite + "+") != std::string::npos;
}

std::string shard_path(const std::string& master, const std::string& name, const std::string& where) {
  namespace fs = std::filesystem;
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    throw InputError(fmt::format("{}: \"{}\" is no name of a file beside the master", where, name));
  std::error_code error;
  const bool is_link = fs::is_symlink(fs::symlink_status(master, error));
  const fs::path folder = (is_link ? fs::canonical(master, error) : fs::path(master)).parent_path();
  std::string path = (folder / name).string();
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0)
    throw InputError(fmt::format("{}: {}: cannot be opened: {}", where, path, std::strerror(errno)));
  if (S_ISLNK(status.st_mode)) throw InputError(fmt::format("{}: {} is a symbolic link", where, path));
  if (!S_ISREG(status.st_mode)) throw InputError(fmt::format("{}: {} is no regular file", where, path));
  return path;
}

std::uint32_t master_version(const std::vector<CorpusReader>& shards) {
  std::uint32_t version = first_master_version;
  for (const CorpusReader& shard : shards)
    version = std::max(version, static_cast<std::uint32_t>(shard.info().format_version));
  return version;
}

MergedShards merged_shards(const std::vector<CorpusReader>& shards) {
  MergedShards merged;
  merge_named(shards, &CorpusContents::contracts, "contract", merged, merged.contracts);
  merge_named(shards, &CorpusContents::profiles, "profile", merged, merged.profiles);
  merge_unique(shards, &CorpusContents::cases, "case", merged, merged.cases);
  merge_unique(shards, &CorpusContents::relations, "relation", merged, merged.relations);
  if (merged.cases.size() > schema::most_cases)
    throw InputError(fmt::format("the shards hold more than {} cases", schema::most_cases));
  return merged;
}

OpenMaster open_master(const Hdf5Input& file, const CorpusInfo& info) {
  OpenMaster master;
  for (const StoredMember& member : file.members(schema::shards)) {
    const std::string group = fmt::format("{}/{}", schema::shards, member.name);
    if (!member.is_group || master.shards.size() >= schema::most_shards) refuse(file, group, "is no shard");
    master.shards.push_back(open_shard(file, info, group));
  }
  if (master.shards.empty()) refuse(file, schema::shards, "holds no shard");
  if (static_cast<std::uint32_t>(info.format_version) != master_version(master.shards))
    throw InputError(fmt::format("{}: has format version {}, but its shards make it version {}", file.path(),
                                 info.format_version, master_version(master.shards)));
  try {
    master.merged = merged_shards(master.shards);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: /{}: {}", file.path(), schema::shards, error.what()));
  }
  check_members(file, master);
  check_links(file, schema::contracts, master.merged.contracts, master);
  if (!master.merged.profiles.empty()) check_links(file, schema::profiles, master.merged.profiles, master);
  if (!master.merged.relations.empty()) check_links(file, schema::relations, master.merged.relations, master);
  check_links(file, schema::cases, master.merged.cases, master);
  return master;
}

}  // namespace qkcts
