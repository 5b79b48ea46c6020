// SPDX-License-Identifier: Apache-2.0
#include "vectors/corpus_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "conformance/special_values.hpp"
#include "vectors/case_digest.hpp"
#include "vectors/case_reading.hpp"
#include "vectors/corpus_master.hpp"
#include "vectors/format_version.hpp"
#include "vectors/hdf5_file.hpp"
#include "vectors/relation_reading.hpp"
#include "vectors/schema.hpp"
#include "vectors/slug.hpp"

namespace qkcts {
namespace {

namespace attribute = schema::attribute;

}  // namespace

std::string contents_digest(const std::string& suite, std::uint64_t seed, const CorpusContents& contents) {
  return corpus_digest(suite, seed, contents.contracts, contents.cases, contents.profiles, contents.relations);
}

struct CorpusReader::State {
  explicit State(const std::string& path) : file(path) {}

  Hdf5Input file;
  CorpusInfo info;
  std::map<std::string, Contract> contracts;
  OwnProfiles own_profiles;
  std::vector<std::string> slugs;
  std::vector<Relation> relations;
  CorpusContents contents;
  std::optional<OpenMaster> master;                      // its shards hold the cases then
  std::uint32_t needed_version = schema::first_version;  // of what was found so far

  [[noreturn]] void refuse(const std::string& object, std::string_view reason) const {
    throw InputError(fmt::format("{}: /{}: {}", file.path(), object, reason));
  }

  bool is_master() const {
    const std::vector<StoredMember> root = file.members("");
    return std::any_of(root.begin(), root.end(), [](const auto& member) { return member.name == schema::shards; });
  }

  void read_root() {
    if (!file.has_attribute("", attribute::format) || file.read_text("", attribute::format) != schema::format_name)
      throw InputError(fmt::format("{}: is HDF5, but no qkcts corpus", file.path()));
    const auto version =
        as_array<std::uint32_t>(file.read_numbers("", attribute::format_version, StoredType::uint32, 1))[0];
    if (version < schema::first_version || version > schema::latest_version)
      throw InputError(fmt::format("{}: has format version {}, this program reads versions {} to {}", file.path(),
                                   version, schema::first_version, schema::latest_version));
    info.path = file.path();
    info.format_version = static_cast<int>(version);
    info.suite = file.read_text("", attribute::suite);
    info.generator_version = file.read_text("", attribute::generator_version);
    info.seed = as_array<std::uint64_t>(file.read_numbers("", attribute::seed, StoredType::uint64, 1))[0];
    info.digest = file.read_text("", attribute::digest);
    if (file.has_attribute("", attribute::shard)) {
      info.shard = file.read_text("", attribute::shard);
      info.plan_digest = file.read_text("", attribute::plan_digest);
    }
  }

  void read_single() {
    CaseReading(file, "").expect_members("", {schema::contracts, schema::cases}, {schema::profiles, schema::relations});
    contents.profiles = read_profiles();
    contents.contracts = read_contracts();
    find_cases("", 0, contents.cases);
    relations = read_relations(file);
    contents.relations = relation_digests(relations);
    if (!relations.empty()) needed_version = std::max(needed_version, relation_version);
    check_version();
    std::sort(contents.cases.begin(), contents.cases.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    contents.cases.shrink_to_fit();
  }

  void read_master() {
    master = open_master(file, info);
    contents = master->merged.contents;
    for (const CorpusReader& shard : master->shards)
      info.shards.push_back(std::filesystem::path(shard.info().path).filename().string());
    for (const CorpusReader& shard : master->shards)
      relations.insert(relations.end(), shard.relations().begin(), shard.relations().end());
    std::sort(relations.begin(), relations.end(), [](const auto& a, const auto& b) { return a.slug < b.slug; });
  }

  // Profiles that are not shipped; most files have none.
  std::vector<DigestEntry> read_profiles() {
    std::vector<DigestEntry> digests;
    const std::vector<StoredMember> root = file.members("");
    if (std::none_of(root.begin(), root.end(), [](const auto& member) { return member.name == schema::profiles; }))
      return digests;
    for (const StoredMember& member : file.members(schema::profiles)) {
      const std::string group = fmt::format("{}/{}", schema::profiles, member.name);
      if (!member.is_group || !is_name(member.name) || digests.size() >= 64) refuse(group, "is no profile");
      std::string text = file.read_text(group, attribute::json);
      if (const std::string fault = own_profile_fault(member.name, text); !fault.empty()) refuse(group, fault);
      const std::string digest = own_profile_digest(text);
      if (digest != file.read_text(group, attribute::digest)) refuse(group, "digest does not match");
      digests.push_back({member.name, digest});
      own_profiles.emplace(member.name, std::move(text));
    }
    if (digests.empty()) refuse(schema::profiles, "holds no profile");
    return digests;
  }

  std::vector<DigestEntry> read_contracts() {
    std::vector<DigestEntry> digests;
    if (!own_profiles.empty()) needed_version = own_profile_version;
    for (const StoredMember& member : file.members(schema::contracts)) {
      const std::string group = fmt::format("{}/{}", schema::contracts, member.name);
      if (!member.is_group || !is_name(member.name)) refuse(group, "is no contract");
      const std::string origin = fmt::format("{}: /{}", file.path(), group);
      Contract contract = contract_from_json(file.read_text(group, attribute::json), origin);
      if (contract.name != member.name) refuse(group, "holds a contract of another name");
      const std::string digest = contract_digest(contract);
      if (digest != file.read_text(group, attribute::digest)) refuse(group, "digest does not match");
      digests.push_back({member.name, digest});
      needed_version = std::max(needed_version, format_version_of(contract.terms));
      contracts.emplace(member.name, std::move(contract));
    }
    return digests;
  }

  void check_version() const {
    if (static_cast<std::uint32_t>(info.format_version) != needed_version)
      throw InputError(
          fmt::format("{}: has format version {}, but its contracts, profiles and cases make it version {}",
                      file.path(), info.format_version, needed_version));
  }

  void find_cases(const std::string& slug, int depth, std::vector<DigestEntry>& digests) {
    const std::string group = slug.empty() ? schema::cases : fmt::format("{}/{}", schema::cases, slug);
    if (!slug.empty() && file.has_attribute(group, attribute::contract)) {
      if (digests.size() >= schema::most_cases) refuse(schema::cases, "holds too many cases");
      digests.push_back({slug, file.read_text(group, attribute::digest)});
      if (file.has_attribute(group, attribute::jacobian)) needed_version = separation_version;
      return;
    }
    if (depth >= schema::deepest_slug) refuse(group, "is nested too deeply");
    for (const StoredMember& member : file.members(group)) {
      const std::string inner = slug.empty() ? member.name : slug + "/" + member.name;
      if (!member.is_group || !is_slug(inner)) refuse(fmt::format("{}/{}", schema::cases, inner), "is no case");
      find_cases(inner, depth + 1, digests);
    }
  }

  GoldenCase read_attributes(const CaseReading& reading) const {
    GoldenCase golden;
    const std::string& group = reading.group();
    const std::string name = file.read_text(group, attribute::contract);
    const auto contract = contracts.find(name);
    if (contract == contracts.end()) refuse(group, "names a contract that the file does not hold");
    golden.input.contract = contract->second;
    golden.input.shape = reading.shape();
    golden.input.inputs.format = reading.format();
    if (std::string fault = shape_fault(contract->second.terms, golden.input.shape); !fault.empty())
      refuse(group, fault);
    golden.family = file.read_text(group, attribute::family);
    golden.description = file.read_text(group, attribute::description);
    golden.seed = as_array<std::uint64_t>(file.read_numbers(group, attribute::seed, StoredType::uint64, 1))[0];
    golden.first_position =
        as_array<std::int64_t>(file.read_numbers(group, attribute::first_position, StoredType::int64, 1))[0];
    golden.profiles = file.read_texts(group, attribute::profiles);
    if (golden.profiles.size() > 64 || !std::all_of(golden.profiles.begin(), golden.profiles.end(), is_name))
      refuse(group, "attribute profiles is no list of profile names");
    for (const std::string& profile : golden.profiles) {
      const auto own = own_profiles.find(profile);
      if (own == own_profiles.end()) continue;
      if (profile_named(profile, own_profiles).storage != golden.input.inputs.format)
        refuse(group, fmt::format("is judged by profile {}, which judges another format", profile));
      golden.own_profiles.insert(*own);
    }
    golden.entropy = reading.range(attribute::entropy);
    golden.p_max = reading.range(attribute::p_max);
    golden.score_max = reading.range(attribute::score_max);
    if (file.has_attribute(group, attribute::jacobian)) golden.jacobian = reading.range(attribute::jacobian);
    golden.digest = file.read_text(group, attribute::digest);
    return golden;
  }
};

CorpusReader::CorpusReader(const std::string& path, CorpusKind kind) : state_(std::make_unique<State>(path)) {
  state_->read_root();
  const bool is_master = state_->is_master();
  if (is_master && kind == CorpusKind::single)
    throw InputError(fmt::format("{}: is a master file; only files that hold their cases can be joined", path));
  if (is_master) {
    state_->read_master();
  } else {
    state_->read_single();
  }
  const CorpusContents& contents = state_->contents;
  state_->slugs.reserve(contents.cases.size());
  for (const DigestEntry& entry : contents.cases) state_->slugs.push_back(entry.name);
  if (contents_digest(state_->info.suite, state_->info.seed, contents) != state_->info.digest)
    throw InputError(fmt::format("{}: digest of the corpus does not match: the file was changed", path));
  check_relations(*this);
}

CorpusReader::~CorpusReader() = default;
CorpusReader::CorpusReader(CorpusReader&&) noexcept = default;
CorpusReader& CorpusReader::operator=(CorpusReader&&) noexcept = default;

const CorpusInfo& CorpusReader::info() const {
  return state_->info;
}

const std::vector<std::string>& CorpusReader::slugs() const {
  return state_->slugs;
}

const CorpusContents& CorpusReader::contents() const {
  return state_->contents;
}

const std::vector<Relation>& CorpusReader::relations() const {
  return state_->relations;
}

GoldenCase CorpusReader::outline(const std::string& slug) const {
  if (!std::binary_search(state_->slugs.begin(), state_->slugs.end(), slug))
    throw InputError(fmt::format("{}: holds no case {}; `qkcts inspect {} --names` lists them", state_->info.path, slug,
                                 state_->info.path));
  if (state_->master) return state_->master->shards[state_->master->merged.cases.at(slug)].outline(slug);
  GoldenCase golden = state_->read_attributes(CaseReading(state_->file, fmt::format("{}/{}", schema::cases, slug)));
  golden.input.slug = slug;
  const StageSet stages = stages_of(golden.input.contract.terms);
  for (const qkcts_stage stage : all_stages) golden.stages[stage].present = (stages & bit(stage)) != 0;
  return golden;
}

GoldenCase CorpusReader::read(const std::string& slug) const {
  GoldenCase golden = outline(slug);
  if (state_->master) return state_->master->shards[state_->master->merged.cases.at(slug)].read(slug);
  CaseReading reading(state_->file, fmt::format("{}/{}", schema::cases, slug));
  Case& c = golden.input;
  const std::vector<std::string> members =
      golden.jacobian ? reading.expect_members(reading.group(), {schema::inputs, schema::stages}, {schema::separation})
                      : reading.expect_members(reading.group(), {schema::inputs, schema::stages});

  const std::vector<InputRequirement> needs = required_inputs(c.contract.terms, c.shape, c.inputs.format);
  std::vector<std::string> names;
  names.reserve(needs.size());
  for (const InputRequirement& need : needs) names.emplace_back(input_name(need.input));
  reading.expect_members(reading.group() + "/" + schema::inputs, names);
  for (const InputRequirement& need : needs) c.inputs.set(need.input, reading.input(need, c.shape));
  if (std::string fault = case_fault(c); !fault.empty()) reading.refuse(reading.group(), fault);
  if (!golden.jacobian && has_special_values(c))
    reading.refuse(reading.group(), "holds NaN or infinities, which need the statistic jacobian (format version 4)");
  if (!c.inputs.has(Input::cos) && golden.first_position != 0)
    reading.refuse(reading.group(), "attribute first_position is not 0, but there are no tables");

  names.clear();
  for (const qkcts_stage stage : all_stages)
    if (golden.stages[stage].present) names.emplace_back(stage_name(stage));
  reading.expect_members(reading.group() + "/" + schema::stages, names);
  for (const qkcts_stage stage : all_stages)
    if (golden.stages[stage].present) golden.stages[stage] = reading.stage(stage, c, golden.profiles.size());
  if (std::find(members.begin(), members.end(), schema::separation) != members.end())
    golden.separation = reading.separation(golden);

  if (case_digest(golden) != golden.digest) reading.refuse(reading.group(), "digest does not match: it was changed");
  return golden;
}

}  // namespace qkcts
