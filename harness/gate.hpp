// SPDX-License-Identifier: Apache-2.0
// The regression gate: a run against a baseline, inside of the budgets too.
//
// Everything that passes may still have become worse: an error that grew from 0.4 to 1.9 ulp inside of a wide budget is
// a change that somebody ought to have meant. The thresholds leave room for what another order of summation does to the
// largest of many rounding errors; they decide nothing about conformance.
#pragma once

#include <string>
#include <vector>

#include "harness/baseline.hpp"

namespace qkcts {

// error/Delta has grown by more than both.
inline constexpr double ratio_growth = 0.25, ratio_step = 0.05;
// max ulp has grown by more than the larger of both.
inline constexpr double ulp_growth = 0.25, ulp_step = 0.5;

bool has_grown_in_ratio(double before, double now);
bool has_grown_in_ulp(double before, double now);

enum class GateFindingKind : std::uint8_t {
  violates,      // fails now
  grown,         // error/Delta or ulp, beyond the thresholds
  unsupported,   // judged before, now declared unsupported
  elsewhere,     // another profile or implementation than before: nothing to compare with
  not_compared,  // the run left it out, or did not come to it
  other_bits,    // although the adapter claims bitwise_repeatable
};

struct GateFinding {
  GateFindingKind kind = GateFindingKind::grown;
  std::string slug, stage;
  std::string text;   // from what to what
  double growth = 0;  // by which the worst come first
};

struct GateOptions {
  std::string machine_class;   // in place of the run's own
  bool allow_not_run = false;  // not_compared does not fail
  bool same_bits = false;      // other_bits fails, too
};

struct GateResult {
  std::size_t compared = 0, improved = 0, added = 0;
  std::vector<GateFinding> findings;  // the gravest kinds first
  std::string nothing_because;        // why nothing could be compared
  bool nothing_judged = false;        // the run itself holds nothing: the device is not there
  bool fails(const GateFinding& finding, const GateOptions& options) const;
  int exit_code(const GateOptions& options) const;  // 0; 1 something fails; 5 nothing was compared
};

GateResult gate(const Baseline& baseline, const RunRecord& current, const GateOptions& options);

// `accept`: the command that makes the new figures the baseline.
std::string gate_text(const GateResult& result, const GateOptions& options, const std::string& accept);
// At most nine annotations for GitHub's runner, of which the last says how many more there are.
std::string gate_annotations(const GateResult& result, const GateOptions& options);

}  // namespace qkcts
