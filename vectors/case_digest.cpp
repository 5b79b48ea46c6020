// SPDX-License-Identifier: Apache-2.0
#include "vectors/case_digest.hpp"

#include <bit>
#include <span>

#include "conformance/digest.hpp"
#include "vectors/schema.hpp"

namespace qkcts {
namespace {

template <class T>
void add_array(Sha256& hash, const std::vector<T>& values) {
  hash.update_field(std::as_bytes(std::span(values)));
}

void add_range(Sha256& hash, const Range& range) {
  for (const double value : {range.min, range.median, range.max})
    hash.update_number(std::bit_cast<std::uint64_t>(value));
}

void add_stage(Sha256& hash, qkcts_stage stage, const GoldenStage& golden, Format storage) {
  hash.update_field(stage_name(stage));
  hash.update_field(parameters(stage_format(stage, storage)).name);
  add_array(hash, golden.values.rows);
  add_array(hash, golden.values.expected);  // 8 bytes an element, whatever the format
  add_array(hash, golden.values.hi);
  add_array(hash, golden.values.lo);
  add_array(hash, golden.values.rule);
  hash.update_number(golden.budgets.size());
  for (const StageBudget& budget : golden.budgets) {
    add_array(hash, budget.delta);
    add_array(hash, budget.trust);
  }
}

void add_separation(Sha256& hash, const SeparationRecord& record) {
  hash.update_number(record.neighbours.size());
  for (const std::string& name : record.neighbours) hash.update_field(name);
  add_array(hash, record.values);
  add_array(hash, record.places);
}

// Nothing for an empty list.
void add_named_list(Sha256& hash, std::string_view name, const std::vector<DigestEntry>& list) {
  if (list.empty()) return;
  hash.update_field(name);
  hash.update_number(list.size());
  for (const DigestEntry& entry : list) {
    hash.update_field(entry.name);
    hash.update_field(entry.digest);
  }
}

std::string text_digest(const std::string& text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

}  // namespace

void add_tensor(Sha256& hash, std::string_view name, const Tensor& tensor) {
  hash.update_field(name);
  hash.update_field(element_type_name(tensor.type));
  hash.update_number(tensor.shape.size());
  for (const std::int64_t extent : tensor.shape) hash.update_number(static_cast<std::uint64_t>(extent));
  hash.update_field(std::span<const std::byte>(tensor.bytes));
}

std::string case_digest(const GoldenCase& golden) {
  const Case& c = golden.input;
  Sha256 hash;
  hash.update_field(golden.jacobian ? "qkcts-case 2" : "qkcts-case 1");
  hash.update_field(c.slug);
  hash.update_field(c.contract.name);
  hash.update_field(contract_digest(c.contract));
  hash.update_field(golden.family);
  hash.update_field(golden.description);
  hash.update_number(golden.seed);
  for (const std::int64_t extent : {c.shape.batch, c.shape.q_heads, c.shape.kv_heads, c.shape.q_len, c.shape.k_len,
                                    c.shape.head_dim, c.shape.v_head_dim})
    hash.update_number(static_cast<std::uint64_t>(extent));
  hash.update_number(static_cast<std::uint64_t>(golden.first_position));
  hash.update_field(parameters(c.inputs.format).name);
  hash.update_number(golden.profiles.size());
  for (const std::string& profile : golden.profiles) hash.update_field(profile);
  add_range(hash, golden.entropy);
  add_range(hash, golden.p_max);
  add_range(hash, golden.score_max);
  if (golden.jacobian) add_range(hash, *golden.jacobian);
  for (std::size_t i = 0; i < input_count; ++i)
    if (c.inputs.tensors[i]) add_tensor(hash, input_name(static_cast<Input>(i)), *c.inputs.tensors[i]);
  for (const qkcts_stage stage : all_stages)
    if (golden.stages[stage].present) add_stage(hash, stage, golden.stages[stage], c.inputs.format);
  if (golden.jacobian) add_separation(hash, golden.separation);
  return hash.finish();
}

std::string corpus_digest(const std::string& suite, std::uint64_t seed, const std::vector<DigestEntry>& contracts,
                          const std::vector<DigestEntry>& cases, const std::vector<DigestEntry>& profiles,
                          const std::vector<DigestEntry>& relations) {
  Sha256 hash;
  hash.update_field(relations.empty() ? "qkcts-corpus 1" : "qkcts-corpus 2");
  hash.update_field(suite);
  hash.update_number(seed);
  for (const auto* list : {&contracts, &cases}) {
    hash.update_number(list->size());
    for (const DigestEntry& entry : *list) {
      hash.update_field(entry.name);
      hash.update_field(entry.digest);
    }
  }
  add_named_list(hash, "profiles", profiles);
  add_named_list(hash, "relations", relations);
  return hash.finish();
}

std::string own_profile_digest(const std::string& text) {
  return text_digest(text);
}

std::string relation_digest(const std::string& text) {
  return text_digest(text);
}

}  // namespace qkcts
