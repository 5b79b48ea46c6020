// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/gate.hpp"
#include "harness/report_github.hpp"
#include "harness/value_text.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts {
namespace {

constexpr std::size_t most_listed = 20;  // of each kind

std::string_view title(GateFindingKind kind) {
  switch (kind) {
    case GateFindingKind::violates:
      return "do not conform";
    case GateFindingKind::grown:
      return "have a larger error than before";
    case GateFindingKind::unsupported:
      return "are no longer supported";
    case GateFindingKind::elsewhere:
      return "cannot be compared: they ran otherwise";
    case GateFindingKind::not_compared:
      return "were not compared";
    case GateFindingKind::other_bits:
      return "changed their bits";
  }
  return {};
}

std::string stages_text(std::size_t count) {
  return counted(count, "case stage", "case stages");
}

}  // namespace

std::string gate_text(const GateResult& result, const GateOptions& options, const std::string& accept) {
  std::map<GateFindingKind, std::size_t> counts;
  for (const GateFinding& finding : result.findings) ++counts[finding.kind];
  std::string text;
  std::map<GateFindingKind, std::size_t> shown;
  for (const GateFinding& finding : result.findings) {
    std::size_t& number = shown[finding.kind];
    if (number == 0)
      text += fmt::format("{} {}{}:\n", stages_text(counts[finding.kind]), title(finding.kind),
                          result.fails(finding, options) ? "" : " (which does not fail the gate)");
    if (++number <= most_listed)
      text += wrapped("  ", fmt::format("{} {}", finding.slug, finding.stage), 4) + wrapped("    ", finding.text, 6);
    else if (number == most_listed + 1)
      text += fmt::format("  ... and {} more\n", counts[finding.kind] - most_listed);
  }
  text += fmt::format("{} compared, {} better than before, {} not in the baseline\n", stages_text(result.compared),
                      result.improved, result.added);
  switch (result.exit_code(options)) {
    case 0:
      return text +
             (result.nothing_because.empty() ? "GATE PASSED\n" : "NOTHING WAS COMPARED, as --allow-not-run admits\n");
    case 5:
      return text + wrapped("NOTHING WAS COMPARED: ", result.nothing_because, 2) +
             fmt::format("To begin a baseline with this run:\n  {}\n", accept);
    default:
      break;
  }
  text += wrapped("GATE FAILED. ",
                  fmt::format("The thresholds: error/Delta up by more than {:.0f} % and {}, or max ulp by more than "
                              "{:.0f} % and {}.",
                              100 * ratio_growth, ratio_step, 100 * ulp_growth, ulp_step),
                  2);
  if (counts.contains(GateFindingKind::violates))
    text += wrapped("",
                    "A failure cannot be accepted as a baseline; `qkcts run --known-failures` is for those that "
                    "are known.");
  return text + fmt::format("If the change is meant, accept it:\n  {}\n", accept);
}

std::string gate_annotations(const GateResult& result, const GateOptions& options) {
  std::string text;
  std::size_t failing = 0;
  for (const GateFinding& finding : result.findings) {
    if (!result.fails(finding, options)) continue;
    if (++failing < most_annotations)
      text += github_error("qkcts gate", fmt::format("{} {}: {}", finding.slug, finding.stage, finding.text));
  }
  if (failing >= most_annotations)
    text += github_error("qkcts gate", fmt::format("{} more in the log of this step", failing - most_annotations + 1));
  return text;
}

}  // namespace qkcts
