// SPDX-License-Identifier: Apache-2.0
#include "harness/relation_session.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fnmatch.h>

#include "harness/relation_judgement.hpp"

namespace qkcts {

RelationSession::RelationSession(const CorpusReader& corpus, const std::string& glob,
                                 const std::vector<std::string_view>& slugs)
    : corpus_(corpus) {
  const auto selected = [&](const std::string& slug) { return std::binary_search(slugs.begin(), slugs.end(), slug); };
  for (const Relation& relation : corpus.relations())
    if (fnmatch(glob.c_str(), relation.slug.c_str(), 0) == 0 ||
        std::all_of(relation.cases.begin(), relation.cases.end(), selected))
      relations_.push_back(relation);
  begin_round();
}

void RelationSession::begin_round() {
  waiting_.clear();
  kept_.clear();
  for (const Relation& relation : relations_)
    for (const std::string& slug : relation.cases) ++waiting_[slug];
}

void RelationSession::keep_if(const std::function<bool(const Relation&)>& wanted) {
  std::erase_if(relations_, [&](const Relation& relation) { return !wanted(relation); });
  begin_round();
}

void RelationSession::skip(const std::string& slug) {
  for (const Relation& relation : relations_)
    if (relation.slug == slug) release(relation);
}

bool RelationSession::needs(const std::string& slug) const {
  const auto waiting = waiting_.find(slug);
  return waiting != waiting_.end() && waiting->second > 0;
}

void RelationSession::keep(const CaseResult& result, KeptOutputs outputs) {
  kept_[result.slug] = {result.verdict, result.detail, result.profile, std::move(outputs)};
}

RelationResult RelationSession::judged(const Relation& relation, const AdapterDescription& description) const {
  std::vector<GoldenCase> golden;
  for (const std::string& slug : relation.cases) golden.push_back(corpus_.read(slug));
  std::vector<RelationRun> runs;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    const Kept& kept = kept_.at(relation.cases[i]);
    runs.push_back({golden[i], kept.outputs.outputs, kept.outputs.restless, kept.profile});
  }
  return judge_relation(relation, description, runs);
}

RelationResult RelationSession::judge(const std::string& slug, const AdapterDescription& description,
                                      const RunCase& run_case) {
  const Relation& relation =
      *std::find_if(relations_.begin(), relations_.end(), [&](const Relation& r) { return r.slug == slug; });
  RelationResult result;
  result.slug = relation.slug;
  result.kind = relation.kind;
  result.rule = row(relation.kind).rule;
  result.cases = relation.cases;
  // Without the outputs of a case there is nothing to judge, and what kept them away is the verdict.
  result.verdict = Verdict::pass;
  for (const std::string& name : relation.cases) {
    if (kept_.find(name) == kept_.end()) run_case(name);
    const Kept& kept = kept_.at(name);
    if (kept.outputs.filled || (result.verdict != Verdict::pass && kept.verdict < result.verdict)) continue;
    result.verdict = kept.verdict;
    result.detail = fmt::format("{}: {}", name, kept.detail);
  }
  if (result.verdict == Verdict::pass) result = judged(relation, description);
  release(relation);
  return result;
}

void RelationSession::release(const Relation& relation) {
  for (const std::string& slug : relation.cases)
    if (--waiting_[slug] <= 0) kept_.erase(slug);
}

}  // namespace qkcts
