// SPDX-License-Identifier: Apache-2.0
#include "vectors/corpus_writer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include "vectors/case_digest.hpp"
#include "vectors/file_replacement.hpp"
#include "vectors/format_version.hpp"
#include "vectors/hdf5_file.hpp"
#include "vectors/layout.hpp"
#include "vectors/named_axes.hpp"
#include "vectors/schema.hpp"
#include "vectors/slug.hpp"

namespace qkcts {
namespace {

namespace attribute = schema::attribute;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <class T>
bool all_zero(const std::vector<T>& values) {
  return std::all_of(values.begin(), values.end(), [](T value) { return value == T{}; });
}

std::vector<std::byte> narrowed(const std::vector<std::uint64_t>& patterns, std::size_t size) {
  std::vector<std::byte> bytes(patterns.size() * size);
  for (std::size_t i = 0; i < patterns.size(); ++i) std::memcpy(bytes.data() + i * size, &patterns[i], size);
  return bytes;
}

}  // namespace

struct CorpusWriter::State {
  State(const std::string& where, const std::string& temporary, const CorpusHeader& head)
      : target(where, temporary), header(head) {}

  FileReplacement target;
  const std::string& path = target.path();
  CorpusHeader header;
  std::unique_ptr<Hdf5Output> file;
  std::map<std::string, std::string> contracts;  // name -> digest
  std::map<std::string, std::string> cases;      // slug -> digest
  std::map<std::string, std::string> profiles;   // those that are not shipped: name -> digest
  std::map<std::string, Relation> relations;     // written at the end
  std::set<std::string> groups;
  std::uint32_t version = schema::first_version;

  void make_group(const std::string& group) {
    if (group.empty() || !groups.insert(group).second) return;
    const std::size_t slash = group.rfind('/');
    if (slash != std::string::npos) make_group(group.substr(0, slash));
    file->create_group(group);
  }

  bool lies_inside_a_case(const std::string& slug) const {
    for (std::size_t slash = slug.find('/'); slash != std::string::npos; slash = slug.find('/', slash + 1))
      if (cases.count(slug.substr(0, slash)) != 0) return true;
    return false;
  }

  void write_dataset(const std::string& name, StoredType type, std::string_view format, const StageLayout& layout,
                     std::span<const std::byte> bytes) {
    write_named_axes(*file, name, type, format, layout, bytes);
  }

  void write_head() {
    file->write_text("", attribute::format, schema::format_name);
    file->write_numbers("", attribute::format_version, StoredType::uint32, std::as_bytes(std::span(&version, 1)));
    file->write_text("", attribute::generator_version, header.generator_version);
    file->write_text("", attribute::precision_policy, schema::precision_policy);
    file->write_text("", attribute::suite, header.suite);
    file->write_numbers("", attribute::seed, StoredType::uint64, std::as_bytes(std::span(&header.seed, 1)));
    if (!header.shard.empty()) {
      file->write_text("", attribute::shard, header.shard);
      file->write_text("", attribute::plan_digest, header.plan_digest);
    }
    make_group(schema::contracts);
    make_group(schema::cases);
  }

  void write_contract(const Contract& contract) {
    const std::string digest = contract_digest(contract);
    const auto [known, is_new] = contracts.emplace(contract.name, digest);
    if (!is_new) {
      if (known->second != digest)
        throw InputError(fmt::format("{}: two different contracts are named {}", path, contract.name));
      return;
    }
    version = std::max(version, format_version_of(contract.terms));
    const std::string group = fmt::format("{}/{}", schema::contracts, contract.name);
    make_group(group);
    file->write_text(group, attribute::json, canonical_json(contract));
    file->write_text(group, attribute::digest, digest);
  }

  void write_profile(const std::string& name, const std::string& text) {
    const std::string digest = own_profile_digest(text);
    const auto [known, is_new] = profiles.emplace(name, digest);
    if (!is_new) {
      if (known->second != digest) throw InputError(fmt::format("{}: two different profiles are named {}", path, name));
      return;
    }
    if (const std::string fault = own_profile_fault(name, text); !fault.empty())
      throw InputError(fmt::format("{}: profile {}: {}", path, name, fault));
    version = std::max(version, own_profile_version);
    const std::string group = fmt::format("{}/{}", schema::profiles, name);
    make_group(group);
    file->write_text(group, attribute::json, text);
    file->write_text(group, attribute::digest, digest);
  }

  void write_stage(const std::string& group, qkcts_stage stage, const GoldenStage& golden, const Case& c) {
    const ProvenStage& values = golden.values;
    const Format format = stage_format(stage, c.inputs.format);
    const StageLayout layout = stage_layout(stage, c.shape, values.rows.size());
    make_group(group);
    file->write_text(group, attribute::format, parameters(format).name);
    if (values.rows.size() != static_cast<std::uint64_t>(row_count(stage, c.shape)))
      write_dataset(group + "/" + schema::rows, StoredType::uint32, "uint32",
                    {{values.rows.size()}, {std::string(schema::rows_dimension)}}, bytes_of(values.rows));
    const ElementType type = element_type(format);
    write_dataset(group + "/" + schema::expected, stored_type(type), parameters(format).name, layout,
                  narrowed(values.expected, element_size(type)));
    write_dataset(group + "/" + schema::value_hi, StoredType::binary64, "binary64", layout, bytes_of(values.hi));
    write_dataset(group + "/" + schema::value_lo, StoredType::int16, "int16", layout, bytes_of(values.lo));
    if (!all_zero(values.rule))
      write_dataset(group + "/" + schema::rule, StoredType::uint8, "uint8", layout, bytes_of(values.rule));
    std::vector<float> budgets;
    std::vector<Trust> trust;
    for (const StageBudget& budget : golden.budgets) {
      budgets.insert(budgets.end(), budget.delta.begin(), budget.delta.end());
      trust.insert(trust.end(), budget.trust.begin(), budget.trust.end());
    }
    const StageLayout profiled = per_profile(layout, golden.budgets.size());
    write_dataset(group + "/" + schema::budget, StoredType::binary32, "binary32", profiled, bytes_of(budgets));
    if (!all_zero(trust))
      write_dataset(group + "/" + schema::trust, StoredType::uint8, "uint8", profiled, bytes_of(trust));
  }

  void write_separation(const std::string& group, const GoldenCase& golden) {
    const SeparationRecord& record = golden.separation;
    const StageLayout layout =
        separation_layout(record.neighbours.size(), stages_of(golden.input.contract.terms), golden.profiles.size());
    make_group(group);
    file->write_texts(group, attribute::neighbours, record.neighbours);
    write_dataset(fmt::format("{}/{}", group, schema::separation_value), StoredType::binary32, "binary32", layout,
                  bytes_of(record.values));
    write_dataset(fmt::format("{}/{}", group, schema::separation_place), StoredType::uint32, "uint32",
                  with_coordinates(layout), bytes_of(record.places));
  }

  std::vector<DigestEntry> write_relations() {
    std::vector<DigestEntry> digests;
    for (const auto& [slug, relation] : relations) {
      for (const std::string& name : relation.cases)
        if (cases.count(name) == 0)
          throw InputError(fmt::format("{}: relation {} names {}, which is no case", path, slug, name));
      const std::string group = fmt::format("{}/{}", schema::relations, slug);
      const std::string text = relation_text(relation);
      digests.push_back({slug, relation_digest(text)});
      make_group(group);
      file->write_text(group, attribute::json, text);
      file->write_text(group, attribute::digest, digests.back().digest);
    }
    if (!relations.empty()) version = std::max(version, relation_version);
    return digests;
  }

  void write_range(const std::string& group, const char* name, const Range& range) {
    const std::array<double, 3> values{range.min, range.median, range.max};
    file->write_numbers(group, name, StoredType::binary64, std::as_bytes(std::span(values)));
  }

  void write_case_attributes(const std::string& group, const GoldenCase& golden) {
    const qkcts_shape& s = golden.input.shape;
    const std::array<std::int64_t, 7> shape{s.batch, s.q_heads, s.kv_heads, s.q_len, s.k_len, s.head_dim, s.v_head_dim};
    file->write_text(group, attribute::contract, golden.input.contract.name);
    file->write_text(group, attribute::format, parameters(golden.input.inputs.format).name);
    file->write_text(group, attribute::family, golden.family);
    file->write_text(group, attribute::description, golden.description);
    file->write_numbers(group, attribute::shape, StoredType::int64, std::as_bytes(std::span(shape)));
    file->write_numbers(group, attribute::seed, StoredType::uint64, std::as_bytes(std::span(&golden.seed, 1)));
    file->write_numbers(group, attribute::first_position, StoredType::int64,
                        std::as_bytes(std::span(&golden.first_position, 1)));
    file->write_texts(group, attribute::profiles, golden.profiles);
    write_range(group, attribute::entropy, golden.entropy);
    write_range(group, attribute::p_max, golden.p_max);
    write_range(group, attribute::score_max, golden.score_max);
    if (golden.jacobian) write_range(group, attribute::jacobian, *golden.jacobian);
    file->write_text(group, attribute::digest, golden.digest);
  }
};

CorpusWriter::CorpusWriter(const std::string& path, const CorpusHeader& header, const std::string& temporary)
    : state_(std::make_unique<State>(path, temporary, header)) {
  state_->file = std::make_unique<Hdf5Output>(state_->target.temporary(), path);
  state_->write_head();
}

CorpusWriter::~CorpusWriter() = default;

void CorpusWriter::add(GoldenCase& golden) {
  const Case& c = golden.input;
  if (!is_slug(c.slug)) throw InputError(fmt::format("{}: {} is no valid slug", state_->path, c.slug));
  const std::string group = fmt::format("{}/{}", schema::cases, c.slug);
  if (golden.profiles.empty()) throw InputError(fmt::format("{}: case {} has no profile", state_->path, c.slug));
  if (state_->groups.count(group) != 0 || state_->lies_inside_a_case(c.slug))
    throw InputError(fmt::format("{}: case {} exists already, or another one lies inside it", state_->path, c.slug));
  if (!golden.jacobian && !golden.separation.neighbours.empty())
    throw InputError(fmt::format("{}: case {} has separations without jacobian", state_->path, c.slug));
  golden.digest = case_digest(golden);
  state_->write_contract(c.contract);
  for (const auto& [name, text] : golden.own_profiles)
    if (std::find(golden.profiles.begin(), golden.profiles.end(), name) != golden.profiles.end())
      state_->write_profile(name, text);
  state_->make_group(group);
  state_->write_case_attributes(group, golden);
  state_->make_group(group + "/" + schema::inputs);
  for (std::size_t i = 0; i < input_count; ++i)
    if (c.inputs.tensors[i])
      write_input(*state_->file, group + "/" + schema::inputs, static_cast<Input>(i), *c.inputs.tensors[i]);
  for (const qkcts_stage stage : all_stages)
    if (golden.stages[stage].present)
      state_->write_stage(fmt::format("{}/{}/{}", group, schema::stages, stage_name(stage)), stage,
                          golden.stages[stage], c);
  if (!golden.separation.neighbours.empty())
    state_->write_separation(fmt::format("{}/{}", group, schema::separation), golden);
  if (golden.jacobian) state_->version = std::max(state_->version, separation_version);
  state_->cases.emplace(c.slug, golden.digest);
}

void CorpusWriter::add(const Relation& relation) {
  if (!is_slug(relation.slug)) throw InputError(fmt::format("{}: {} is no valid slug", state_->path, relation.slug));
  if (!state_->relations.emplace(relation.slug, relation).second)
    throw InputError(fmt::format("{}: relation {} exists already", state_->path, relation.slug));
}

std::string CorpusWriter::finish() {
  std::vector<DigestEntry> contracts, cases, profiles;
  for (const auto& [name, digest] : state_->contracts) contracts.push_back({name, digest});
  for (const auto& [slug, digest] : state_->cases) cases.push_back({slug, digest});
  for (const auto& [name, digest] : state_->profiles) profiles.push_back({name, digest});
  const std::vector<DigestEntry> relations = state_->write_relations();
  std::string digest = corpus_digest(state_->header.suite, state_->header.seed, contracts, cases, profiles, relations);
  state_->file->write_text("", attribute::digest, digest);
  if (state_->version != schema::first_version)
    state_->file->overwrite_numbers("", attribute::format_version, StoredType::uint32,
                                    std::as_bytes(std::span(&state_->version, 1)));
  state_->file->close();
  state_->target.commit();
  return digest;
}

}  // namespace qkcts
