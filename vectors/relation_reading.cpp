// SPDX-License-Identifier: Apache-2.0
#include "vectors/relation_reading.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "vectors/corpus_reader.hpp"
#include "vectors/schema.hpp"
#include "vectors/slug.hpp"

namespace qkcts {
namespace {

namespace attribute = schema::attribute;

[[noreturn]] void refuse(const Hdf5Input& file, const std::string& object, std::string_view reason) {
  throw InputError(fmt::format("{}: /{}: {}", file.path(), object, reason));
}

void find_relations(const Hdf5Input& file, const std::string& slug, int depth, std::vector<Relation>& relations) {
  const std::string group = slug.empty() ? schema::relations : fmt::format("{}/{}", schema::relations, slug);
  if (!slug.empty() && file.has_attribute(group, attribute::json)) {
    if (relations.size() >= schema::most_cases) refuse(file, schema::relations, "holds too many relations");
    if (!file.members(group).empty()) refuse(file, group, "holds something inside");
    const std::string text = file.read_text(group, attribute::json);
    if (relation_digest(text) != file.read_text(group, attribute::digest)) refuse(file, group, "digest does not match");
    relations.push_back(relation_from_text(slug, text, fmt::format("{}: /{}", file.path(), group)));
    return;
  }
  if (depth >= schema::deepest_slug) refuse(file, group, "is nested too deeply");
  for (const StoredMember& member : file.members(group)) {
    const std::string inner = slug.empty() ? member.name : slug + "/" + member.name;
    if (!member.is_group || !is_slug(inner))
      refuse(file, fmt::format("{}/{}", schema::relations, inner), "is no relation");
    find_relations(file, inner, depth + 1, relations);
  }
}

}  // namespace

std::vector<Relation> read_relations(const Hdf5Input& file) {
  std::vector<Relation> relations;
  const std::vector<StoredMember> root = file.members("");
  if (std::none_of(root.begin(), root.end(), [](const auto& member) { return member.name == schema::relations; }))
    return relations;
  find_relations(file, "", 0, relations);
  if (relations.empty()) refuse(file, schema::relations, "holds no relation");
  std::sort(relations.begin(), relations.end(), [](const auto& a, const auto& b) { return a.slug < b.slug; });
  return relations;
}

std::vector<DigestEntry> relation_digests(const std::vector<Relation>& relations) {
  std::vector<DigestEntry> digests;
  digests.reserve(relations.size());
  for (const Relation& relation : relations)
    digests.push_back({relation.slug, relation_digest(relation_text(relation))});
  return digests;
}

void check_relations(const CorpusReader& corpus) {
  for (const Relation& relation : corpus.relations()) {
    const auto refused = [&](std::string_view reason) {
      return InputError(fmt::format("{}: /{}/{}: {}", corpus.info().path, schema::relations, relation.slug, reason));
    };
    std::vector<GoldenCase> outlines;
    for (const std::string& slug : relation.cases) {
      if (!std::binary_search(corpus.slugs().begin(), corpus.slugs().end(), slug))
        throw refused("names a case that is not there");
      outlines.push_back(corpus.outline(slug));
    }
    std::vector<RelationCase> cases;
    for (const GoldenCase& golden : outlines)
      cases.push_back({golden.input.contract.terms, golden.input.shape, golden.input.inputs.format});
    if (const std::string fault = relation_fault(relation, cases); !fault.empty()) throw refused(fault);
  }
}

}  // namespace qkcts
