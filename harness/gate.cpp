// SPDX-License-Identifier: Apache-2.0
#include "harness/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/value_text.hpp"

namespace qkcts {
namespace {

using StageKey = std::pair<std::string, qkcts_stage>;

// What the run says of a stage that is compared. Results themselves stay in memory for a short time only.
struct StageNow {
  Verdict verdict = Verdict::not_run;
  std::string detail, profile, implementation;  // of the case
  bool judged = false;
  double max_ratio = 0, max_ulp = 0;
  std::string output_sha256;
};

StageNow stage_now(const CaseResult& owner, const StageResult& stage) {
  StageNow now = {stage.verdict, owner.detail, owner.profile, owner.implementation, false, 0, 0, stage.output_sha256};
  if (!stage.judgement) return now;
  now.judged = true;
  now.max_ratio = stage.judgement->max_ratio;
  now.max_ulp = stage.judgement->max_ulp;
  return now;
}

double growth_of(double before, double now) {
  if (now <= before) return 0;
  return std::isfinite(now) && before > 0 ? now / before : std::numeric_limits<double>::infinity();
}

std::string from_to(std::string_view what, double before, double now) {
  std::string text = fmt::format("{} {} -> {}", what, short_text(before), short_text(now));
  const double growth = growth_of(before, now);
  if (std::isfinite(growth) && growth > 0) text += fmt::format(" (+{:.0f} %)", 100 * (growth - 1));
  return text;
}

// What differs between the scopes that there are and the one that is asked for: the nearest of them says most.
std::string why_nothing(const Baseline& baseline, const BaselineScope& wanted) {
  if (baseline.runs.empty()) return "the baseline is empty";
  std::string nearest;
  int best = -1;
  for (const BaselineRun& run : baseline.runs) {
    std::string text;
    int same = 0;
    const auto compare = [&](const char* what, const std::string& then, const std::string& now) {
      if (then == now) {
        ++same;
      } else {
        text += fmt::format("{}{} is '{}', that of the run is '{}'", text.empty() ? "" : "; ", what, then, now);
      }
    };
    compare("its adapter", run.scope.adapter, wanted.adapter);
    compare("its machine class", run.scope.machine_class, wanted.machine_class);
    compare("its suite", run.scope.suite, wanted.suite);
    compare("its corpus", run.scope.corpus_digest.substr(0, 12), wanted.corpus_digest.substr(0, 12));
    if (same > best) {
      best = same;
      nearest = text;
    }
  }
  return "the baseline has no such run: " + nearest;
}

class Gate {
 public:
  Gate(const RunRecord& current, GateResult& result) : current_(current), result_(result) {
    for (const CaseResult& one : current.cases)
      for (const StageResult& stage : one.stages)
        stages_.insert_or_assign({one.slug, stage.stage}, stage_now(one, stage));
  }

  void compare(const BaselineEntry& before) {
    known_.insert({before.slug, before.stage});
    const auto found = stages_.find({before.slug, before.stage});
    if (found == stages_.end()) return add(GateFindingKind::not_compared, before, "is not in this run", 0);
    const StageNow& now = found->second;
    if (violates(now.verdict)) return;  // told of every failing stage, known or not
    if (now.verdict == Verdict::unsupported)
      return add(
          GateFindingKind::unsupported, before,
          fmt::format("was judged before, is declared unsupported now{}{}", now.detail.empty() ? "" : ": ", now.detail),
          0);
    if (!now.judged)
      return add(GateFindingKind::not_compared, before,
                 fmt::format("{}{}{}", verdict_name(now.verdict), now.detail.empty() ? "" : ": ", now.detail), 0);
    if (now.profile != before.profile)
      return add(GateFindingKind::elsewhere, before,
                 fmt::format("was judged by profile {}, now by {}", before.profile, now.profile), 0);
    if (now.implementation != before.implementation)
      return add(GateFindingKind::elsewhere, before,
                 fmt::format("was computed by '{}', now by '{}'", before.implementation, now.implementation), 0);
    ++result_.compared;
    compare_figures(before, now);
  }

  void tell_of_failures() {
    for (const auto& [key, now] : stages_)
      if (violates(now.verdict))
        add(GateFindingKind::violates, {{}, key.first, key.second, {}, {}, 0, 0, {}},
            fmt::format("{}{}{}", verdict_name(now.verdict), known_.contains(key) ? ", was no failure" : "",
                        now.detail.empty() ? "" : ": " + now.detail),
            0);
    for (const RelationResult& relation : current_.relations)
      if (violates(relation.verdict))
        result_.findings.push_back(
            {GateFindingKind::violates, relation.slug, "relation", std::string(verdict_name(relation.verdict)), 0});
  }

  bool nothing_judged() const {
    return std::none_of(stages_.begin(), stages_.end(), [](const auto& entry) { return entry.second.judged; });
  }

  void count_added() {
    for (const auto& [key, now] : stages_) result_.added += now.judged && !known_.contains(key) ? 1 : 0;
  }

 private:
  void compare_figures(const BaselineEntry& before, const StageNow& now) {
    const double ratio = now.max_ratio, ulp = now.max_ulp;
    const bool grown_ratio = has_grown_in_ratio(before.max_ratio, ratio);
    const bool grown_ulp = has_grown_in_ulp(before.max_ulp, ulp);
    if (grown_ratio || grown_ulp) {
      std::string text;
      if (grown_ratio) text = from_to("error/Delta", before.max_ratio, ratio);
      if (grown_ulp) text += (text.empty() ? "" : ", ") + from_to("max ulp", before.max_ulp, ulp);
      add(GateFindingKind::grown, before, text,
          std::max(growth_of(before.max_ratio, ratio), growth_of(before.max_ulp, ulp)));
    } else if (has_grown_in_ratio(ratio, before.max_ratio) || has_grown_in_ulp(ulp, before.max_ulp)) {
      ++result_.improved;
    }
    if (current_.description.bitwise_repeatable == Claim::made && before.output_sha256 != now.output_sha256)
      add(GateFindingKind::other_bits, before, "other bits than before, and the adapter claims bitwise_repeatable", 0);
  }

  void add(GateFindingKind kind, const BaselineEntry& where, std::string text, double growth) {
    result_.findings.push_back({kind, where.slug, std::string(stage_name(where.stage)), std::move(text), growth});
  }

  const RunRecord& current_;
  GateResult& result_;
  std::map<StageKey, StageNow> stages_;
  std::set<StageKey> known_;
};

}  // namespace

bool has_grown_in_ratio(double before, double now) {
  return now > before && now > before * (1 + ratio_growth) && now - before > ratio_step;
}

bool has_grown_in_ulp(double before, double now) {
  return now > before && now - before > std::max(ulp_step, before * ulp_growth);
}

GateResult gate(const Baseline& baseline, const RunRecord& current, const GateOptions& options) {
  GateResult result;
  const std::string machine = options.machine_class.empty() ? machine_class(current) : options.machine_class;
  const BaselineScope wanted = baseline_of(current, machine).scope;
  const auto run =
      std::find_if(baseline.runs.begin(), baseline.runs.end(), [&](const BaselineRun& r) { return r.scope == wanted; });
  Gate comparison(current, result);
  if (run == baseline.runs.end()) {
    result.nothing_because = why_nothing(baseline, wanted);
  } else {
    for (const BaselineEntry& before : run->entries) comparison.compare(before);
    if (result.compared == 0) result.nothing_because = "no stage of the baseline was judged in this run";
  }
  result.nothing_judged = comparison.nothing_judged();
  comparison.tell_of_failures();
  comparison.count_added();
  std::stable_sort(result.findings.begin(), result.findings.end(), [](const GateFinding& a, const GateFinding& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.growth > b.growth;
  });
  return result;
}

bool GateResult::fails(const GateFinding& finding, const GateOptions& options) const {
  if (finding.kind == GateFindingKind::not_compared) return !options.allow_not_run;
  return finding.kind != GateFindingKind::other_bits || options.same_bits;
}

int GateResult::exit_code(const GateOptions& options) const {
  const bool failing =
      std::any_of(findings.begin(), findings.end(), [&](const GateFinding& f) { return fails(f, options); });
  const bool violated = !findings.empty() && findings.front().kind == GateFindingKind::violates;
  if (violated) return 1;
  // Where the device is not there, nothing is missing that --allow-not-run does not allow; what fails, fails.
  if (!nothing_because.empty()) return nothing_judged && options.allow_not_run ? (failing ? 1 : 0) : 5;
  return failing ? 1 : 0;
}

}  // namespace qkcts
