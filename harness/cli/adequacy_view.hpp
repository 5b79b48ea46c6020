// SPDX-License-Identifier: Apache-2.0
// What the rules of other suites look at: the points of each stage of a case with everything that a rule compares.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/bundled_kernel.hpp"
#include "harness/peer_rule.hpp"

namespace qkcts::cli {

// In which stages a kernel can be asked about. A fault shows in the stages from the first wrong one on, and in the rule
// of one operator only if it is that operator's: a suite that tests another thing has not let it through.
struct PeerQuestion {
  StageSet pipeline = ~StageSet{0};
  StageSet operators = ~StageSet{0};
};
PeerQuestion question_of_fault(StageSet failing);

// The right answers of a case, and the runs of our own that stand in for a suite's.
class PeerReference {
 public:
  // `control`: the scalar adapter. The case outlives the object.
  PeerReference(const GoldenCase& golden, const BundledKernel& control);

  // Every rule of the peer for the case's format, on what a kernel computed, in those of the stages that it can be
  // asked about. Stages that the kernel or the case does not have are not applicable. `share`: the largest.
  PeerFinding judge(const Peer& peer, const StageBytes& outputs, const PeerQuestion& question) const;

  const GoldenCase& golden() const { return golden_; }
  const std::optional<StageBytes>& control() const { return control_; }
  // The control with every step rounded to the storage format; nothing where a contract cannot say so.
  const std::optional<StageBytes>& low() const { return low_; }

 private:
  struct Points;  // of one stage
  Points points_of(qkcts_stage stage, const StageBytes& outputs) const;
  PeerFinding judge(const PeerRule& rule, qkcts_stage stage, const StageBytes& outputs) const;

  const GoldenCase& golden_;
  std::optional<StageBytes> control_, low_;
};

}  // namespace qkcts::cli
