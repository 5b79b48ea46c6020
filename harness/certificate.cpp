// SPDX-License-Identifier: Apache-2.0
#include "harness/certificate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include <fnmatch.h>

#include "harness/value_text.hpp"

namespace qkcts {
namespace {

// Below this many elements chance alone may leave none that is rounded the other way.
constexpr std::uint64_t elements_that_tell = 1000;

struct SuiteTally {
  std::map<Verdict, std::size_t> verdicts;
  std::size_t cases = 0;

  bool conforms() const {
    if (!verdicts.contains(Verdict::pass)) return false;
    return std::all_of(verdicts.begin(), verdicts.end(), [](const auto& entry) {
      const Verdict v = entry.first;
      return v == Verdict::pass || v == Verdict::mistrusted || v == Verdict::domain;
    });
  }
  std::string text() const {
    std::vector<std::string> parts;
    for (auto entry = verdicts.rbegin(); entry != verdicts.rend(); ++entry)
      parts.push_back(fmt::format("{} {}", entry->second, verdict_name(entry->first)));
    return parts.empty() ? "no case" : fmt::format("{}", fmt::join(parts, ", "));
  }
};

std::map<std::string, SuiteTally> tallies(const RunRecord& record, const SuiteOfCase& suites) {
  std::map<std::string, SuiteTally> tally;
  for (const CaseResult& result : record.cases) {
    SuiteTally& of_suite = tally[suites.at(result.slug)];
    ++of_suite.cases;
    ++of_suite.verdicts[result.verdict];
  }
  return tally;
}

bool same_bits_always(const RunRecord& record) {
  for (const CaseResult& result : record.cases)
    for (const StageResult& stage : result.stages)
      if (stage.differing_calls > 0 || stage.verdict == Verdict::not_repeatable) return false;
  return true;
}

// A level stands on those below it, and each of them on the fresh part.
Json levels_json(const RunRecord& record, const std::map<std::string, SuiteTally>& tally) {
  const auto tally_of = [&](const std::string& suite) {
    const auto found = tally.find(suite);
    return found == tally.end() ? SuiteTally() : found->second;
  };
  const SuiteTally fresh = tally_of(fresh_suite);
  bool reached = fresh.conforms() && exit_code(record) == 0;
  const std::string otherwise = exit_code(record) == 0 ? "the fresh part does not conform: " + fresh.text()
                                                       : std::string("the run as a whole does not conform");
  Json levels = Json::array();
  for (const char* const suite : {"core", "edge", "robust"}) {
    const SuiteTally of_suite = tally_of(suite);
    const bool below = reached;
    reached = reached && of_suite.conforms();
    levels.push_back(
        {{"level", suite},
         {"reached", reached},
         {"detail", of_suite.cases == 0            ? "this suite was not run"
                    : below || reached             ? of_suite.text()
                    : suite == std::string("core") ? of_suite.text() + "; " + otherwise
                                                   : of_suite.text() + "; the level below is not reached"}});
  }
  const bool claimed = record.description.bitwise_repeatable == Claim::made;
  const bool observed = same_bits_always(record);
  const std::string calls = fmt::format("{} calls of each case", 2 * record.repeat);
  levels.push_back({{"level", "repeatable"},
                    {"reached", reached && claimed && observed},
                    {"detail", !observed ? "other bits on another call"
                               : claimed ? "claimed, and the same bits in " + calls
                                         : "the same bits in " + calls + ", but describe() does not claim it"}});
  return levels;
}

// "Every element correctly rounded": outputs of a reference, not of a kernel, look like that.
Json suspicions_json(const RunRecord& record) {
  struct Seen {
    std::uint64_t elements = 0;
    double max_ulp = 0;
  };
  std::map<Format, Seen> seen;
  for (const CaseResult& result : record.cases)
    for (const StageResult& stage : result.stages) {
      if (!stage.judgement || result.format == Format::binary64) continue;
      Seen& of_format = seen[result.format];
      of_format.elements += stage.judgement->counts.judged;
      of_format.max_ulp = std::max(of_format.max_ulp, stage.judgement->max_ulp);
    }
  Json list = Json::array();
  for (const auto& [format, of_format] : seen)
    if (of_format.elements >= elements_that_tell && of_format.max_ulp <= 0.5)
      list.push_back(fmt::format(
          "all {} judged elements of {} are correctly rounded: no kernel with arithmetic of that width does "
          "so; ask for a run in your presence",
          of_format.elements, parameters(format).name));
  return list;
}

template <class Name>
std::vector<std::string> names_of(const CaseResults& results, const Name& name) {
  std::set<std::string> names;
  for (const CaseResult& result : results)
    if (const std::string text = name(result); !text.empty()) names.insert(text);
  return {names.begin(), names.end()};
}

Json scope_json(const RunRecord& record, const CertificateTerms& terms) {
  std::map<std::string, std::size_t> cases_of;
  for (const CaseResult& result : record.cases) ++cases_of[result.contract];
  Json contracts = Json::array();
  for (const auto& [name, cases] : cases_of) contracts.push_back({{"contract", name}, {"cases", cases}});
  Json profiles = Json::object();
  for (const CaseResult& result : record.cases)
    if (!result.profile.empty()) profiles[std::string(parameters(result.format).name)] = result.profile;
  std::vector<std::string> stages, suites;
  for (const qkcts_stage stage : all_stages)
    if ((record.description.stages & bit(stage)) != 0) stages.emplace_back(stage_name(stage));
  for (const CertifiedCorpus& corpus : terms.corpora) suites.push_back(corpus.suite);
  return {
      {"contracts", std::move(contracts)},
      {"formats", names_of(record.cases, [](const CaseResult& r) { return std::string(parameters(r.format).name); })},
      {"profiles", std::move(profiles)},
      {"stages", stages},
      {"suites", suites},
      {"adapter", record.description.name},
      {"version", record.description.version},
      {"implementations", names_of(record.cases, [](const CaseResult& r) { return r.implementation; })}};
}

std::string listed(const Json& names, std::size_t most, std::string_view many) {
  if (names.size() > most) return fmt::format("{} {}", names.size(), many);
  std::vector<std::string> texts;
  for (const Json& name : names)
    texts.push_back(name.is_object() ? name.at("contract").get<std::string>() : name.get<std::string>());
  return texts.empty() ? fmt::format("no {}", many) : fmt::format("{}", fmt::join(texts, ", "));
}

std::string highest_level(const Json& levels) {
  std::string highest = "no level";
  for (const Json& level : levels)
    if (level.at("reached").get<bool>()) highest = "level " + level.at("level").get<std::string>();
  return highest;
}

std::string title_of(const Json& scope, const Json& levels, std::size_t known) {
  std::vector<std::string> profiles;
  for (const auto& [format, profile] : scope.at("profiles").items()) profiles.push_back(profile.get<std::string>());
  std::string title = fmt::format(
      "{} {}: {}; {} x {} x {} x {} x {}", scope.at("adapter").get<std::string>(),
      scope.at("version").get<std::string>(), highest_level(levels), listed(scope.at("contracts"), 3, "contracts"),
      listed(scope.at("formats"), 4, "formats"), fmt::join(profiles, ", "), listed(scope.at("suites"), 9, "suites"),
      listed(scope.at("implementations"), 2, "implementations"));
  if (known > 0) title += fmt::format("; except {}", counted(known, "known failure", "known failures"));
  return title;
}

}  // namespace

bool in_scope(const CertificateTerms& terms, const AdapterDescription& description, const GoldenCase& outline) {
  if (terms.contracts.empty() && terms.formats.empty()) return unsupported_reason(description, outline.input).empty();
  const auto admits = [](const std::vector<std::string>& globs, std::string_view name) {
    return globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
             return fnmatch(glob.c_str(), std::string(name).c_str(), 0) == 0;
           });
  };
  return admits(terms.contracts, outline.input.contract.name) &&
         admits(terms.formats, parameters(outline.input.inputs.format).name);
}

Json certificate_claims(const RunRecord& record, const CertificateTerms& terms, const SuiteOfCase& suites) {
  const std::map<std::string, SuiteTally> tally = tallies(record, suites);
  Json counts = Json::object();
  for (const auto& [suite, of_suite] : tally) {
    Json& verdicts = counts[suite] = Json::object();
    for (const auto& [verdict, cases] : of_suite.verdicts) verdicts[std::string(verdict_name(verdict))] = cases;
  }
  std::size_t known = 0;
  for (const CaseResult& result : record.cases) known += result.verdict == Verdict::xfail ? 1 : 0;
  const Json scope = scope_json(record, terms), levels = levels_json(record, tally);
  return {{"title", title_of(scope, levels, known)},
          {"conforms", exit_code(record) == 0},
          {"levels", levels},
          {"scope", scope},
          {"cases", counts},
          {"suspicious", suspicions_json(record)},
          {"known_failures", known_failures_json(record.known_failures)},
          {"unmet_demands", unmet_demands(record)}};
}

}  // namespace qkcts
