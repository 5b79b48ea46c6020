// SPDX-License-Identifier: Apache-2.0
#include "harness/known_failures.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <fnmatch.h>

namespace qkcts {
namespace {

bool matches(const KnownFailure& entry, const std::string& slug) {
  return fnmatch(entry.cases.c_str(), slug.c_str(), 0) == 0;
}

std::string excuse_text(const KnownFailure& entry) {
  return fmt::format("known until {}: {} ({})", entry.expires, entry.reason, entry.link);
}

std::string surprise_text(const KnownFailure& entry) {
  return fmt::format("passes, but is listed as a known failure ({}); take the entry out", entry.link);
}

bool holds_for(const KnownFailureUse& use, const std::string& slug) {
  return use.state == KnownFailureState::holds && matches(use.entry, slug);
}

bool covers(const KnownFailure& entry, qkcts_stage stage) {
  return entry.stages == 0 || (entry.stages & bit(stage)) != 0;
}

void excuse_stages(CaseResult& result, const KnownFailure& entry) {
  for (StageResult& stage : result.stages)
    if (stage.verdict == entry.verdict && covers(entry, stage.stage)) {
      stage.verdict = Verdict::xfail;
      stage.detail = excuse_text(entry);
    }
}

void note_surprises(CaseResult& result, const KnownFailure& entry, bool passes_as_a_whole) {
  if (entry.stages == 0 && !passes_as_a_whole) return;
  for (StageResult& stage : result.stages)
    if (stage.verdict == Verdict::pass && covers(entry, stage.stage)) {
      stage.verdict = Verdict::xpass;
      stage.detail = surprise_text(entry);
    }
}

}  // namespace

std::string_view known_failure_state_name(KnownFailureState state) {
  switch (state) {
    case KnownFailureState::holds:
      return "holds";
    case KnownFailureState::stale:
      return "stale";
    case KnownFailureState::expired:
      return "expired";
    case KnownFailureState::other_suite:
      return "other_suite";
  }
  return {};
}

namespace {

// "core+fresh" is made of core and fresh.
bool holds_suite(const std::string& joined, const std::string& suite) {
  return ("+" + joined + "+").find("+" + suite + "+") != std::string::npos;
}

}  // namespace

std::vector<KnownFailureUse> known_failure_uses(const std::vector<KnownFailure>& entries, const std::string& suite,
                                                const std::string& today, const std::vector<std::string>& names) {
  std::vector<KnownFailureUse> uses;
  for (const KnownFailure& entry : entries) {
    KnownFailureUse& use = uses.emplace_back(KnownFailureUse{entry, KnownFailureState::holds, 0});
    if (!entry.suite.empty() && !holds_suite(suite, entry.suite)) {
      use.state = KnownFailureState::other_suite;
      continue;
    }
    use.matched = static_cast<std::size_t>(
        std::count_if(names.begin(), names.end(), [&](const std::string& name) { return matches(entry, name); }));
    if (use.matched == 0) {
      use.state = KnownFailureState::stale;
    } else if (entry.expires < today) {  // both of one form, so that the order of texts is that of days
      use.state = KnownFailureState::expired;
    }
  }
  return uses;
}

void apply_known_failures(CaseResult& result, const std::vector<KnownFailureUse>& uses, StageSet asked) {
  const bool passes_as_a_whole = result.verdict == Verdict::pass && asked == ~StageSet{0};
  bool known = false;
  for (const KnownFailureUse& use : uses) {
    if (!holds_for(use, result.slug)) continue;
    known = true;
    excuse_stages(result, use.entry);
    note_surprises(result, use.entry, passes_as_a_whole);
  }
  if (!known) return;
  Verdict gravest = Verdict::not_run;
  for (const StageResult& stage : result.stages) gravest = graver(gravest, stage.verdict);
  result.verdict = gravest;
}

void apply_known_failures(RelationResult& result, const std::vector<KnownFailureUse>& uses) {
  for (const KnownFailureUse& use : uses) {
    if (!holds_for(use, result.slug) || use.entry.stages != 0) continue;
    if (result.verdict == use.entry.verdict) {
      result.verdict = Verdict::xfail;
      result.detail = excuse_text(use.entry);
    } else if (result.verdict == Verdict::pass) {
      result.verdict = Verdict::xpass;
      result.detail = surprise_text(use.entry);
    }
  }
}

std::vector<std::string> known_failure_faults(const std::vector<KnownFailureUse>& uses) {
  std::vector<std::string> faults;
  for (const KnownFailureUse& use : uses) {
    const KnownFailure& entry = use.entry;
    if (use.state == KnownFailureState::stale)
      faults.push_back(
          fmt::format("known failure '{}' matches no case of this corpus: take the entry out, or name its "
                      "suite in it ({})",
                      entry.cases, entry.link));
    if (use.state == KnownFailureState::expired)
      faults.push_back(
          fmt::format("known failure '{}' expired on {}: mend it, or say why it goes on and give it a new day ({})",
                      entry.cases, entry.expires, entry.link));
  }
  return faults;
}

}  // namespace qkcts
