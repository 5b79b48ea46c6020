// SPDX-License-Identifier: Apache-2.0
#include "harness/run_selection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include <fnmatch.h>

#include "conformance/further_profiles.hpp"
#include "harness/adapter_error.hpp"
#include "harness/usage_error.hpp"

namespace qkcts {
namespace {

// A profile that nobody can judge by is said before anything runs; otherwise the cases of its format would say nothing.
void require_profiles(const std::map<Format, std::set<std::string>>& held, const RunRequest& request,
                      const AdapterDescription& description) {
  const auto known = [&](const std::string& name, Format format) {
    const auto entry = held.find(format);
    return is_shipped_profile(name, format) || (entry != held.end() && entry->second.contains(name));
  };
  for (const Format format : description.formats) {
    const std::string& name = description.profile.at(format);
    if (known(name, format)) continue;
    std::vector<std::string> names;
    for (const Profile& profile : selectable_profiles(format)) names.push_back(profile.name);
    throw AdapterError(fmt::format("{}: describe() names profile '{}' for {}, which does not exist; there are: {}",
                                   request.adapter.given, name, parameters(format).name, fmt::join(names, ", ")));
  }
  if (!request.options.profile || held.empty()) return;
  std::set<std::string> judging;
  for (const auto& [format, names] : held) {
    if (known(*request.options.profile, format)) return;
    judging.insert(names.begin(), names.end());
    for (const Profile& profile : selectable_profiles(format)) judging.insert(profile.name);
  }
  throw UsageError(
      fmt::format("--profile {}: no profile of that name judges the formats of these cases; those that do: {}",
                  *request.options.profile, fmt::join(judging, ", ")));
}

}  // namespace

std::vector<std::string_view> selected_slugs(const CorpusReader& corpus, const RunRequest& request) {
  std::vector<std::string_view> slugs;
  for (const std::string& slug : corpus.slugs()) {
    const bool named = !request.only || request.only->contains(slug);
    if (named && fnmatch(request.case_glob.c_str(), slug.c_str(), 0) == 0) slugs.push_back(slug);
  }
  return slugs;
}

std::vector<std::string_view> shared_out(std::vector<std::string_view> slugs, const CaseShare& share,
                                         RelationSession& relations) {
  if (share.count == 1) return slugs;
  std::vector<std::string_view> mine;
  for (std::size_t i = share.index - 1; i < slugs.size(); i += share.count) mine.push_back(slugs[i]);
  std::uint32_t others = 0;  // relations of cases that were not selected: dealt out in turn
  relations.keep_if([&](const Relation& relation) {
    const std::string& last = *std::max_element(relation.cases.begin(), relation.cases.end());
    if (std::binary_search(slugs.begin(), slugs.end(), last)) return std::binary_search(mine.begin(), mine.end(), last);
    return others++ % share.count == share.index - 1;
  });
  return mine;
}

std::vector<std::string> all_names(const CorpusReader& corpus) {
  std::vector<std::string> names = corpus.slugs();
  for (const Relation& relation : corpus.relations()) names.push_back(relation.slug);
  return names;
}

std::vector<TestGroup> stage_tests(const CorpusReader& corpus, const std::vector<std::string_view>& slugs,
                                   const std::vector<Relation>& relations, const RunRequest& request,
                                   const AdapterDescription& description) {
  std::multimap<std::string_view, std::string_view> relations_after;
  for (const Relation& relation : relations)
    relations_after.emplace(*std::max_element(relation.cases.begin(), relation.cases.end()), relation.slug);
  std::vector<TestGroup> tests;
  tests.reserve(slugs.size() + relations.size());
  std::map<Format, std::set<std::string>> held;
  for (const std::string_view slug : slugs) {
    const GoldenCase golden = corpus.outline(std::string(slug));
    held[golden.input.inputs.format].insert(golden.profiles.begin(), golden.profiles.end());
    StageSet stages = 0;
    for (const qkcts_stage stage : all_stages)
      if (golden.stages[stage].present) stages |= bit(stage);
    if (stages != 0) tests.push_back({slug, stages});
    const auto [first, last] = relations_after.equal_range(slug);
    for (auto entry = first; entry != last; ++entry) tests.push_back({entry->second, 0});
    relations_after.erase(first, last);
  }
  for (const auto& [slug, relation] : relations_after) tests.push_back({relation, 0});
  if (request.options.judging == Judging::values_and_relations) require_profiles(held, request, description);
  return tests;
}

}  // namespace qkcts
