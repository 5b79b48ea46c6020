// SPDX-License-Identifier: Apache-2.0
// What the rules of other suites would have said of wrong and of valid kernels; docs/comparison.md.
#pragma once

#include <string>
#include <vector>

#include "conformance/json.hpp"
#include "harness/adequacy.hpp"
#include "harness/peer_rule.hpp"

namespace qkcts {

// One kernel on one case, as every peer judges it.
struct PeerTrial {
  std::string slug;
  std::vector<PeerFinding> by_peer;  // in the order of PeerStudy::peers
  // Of a wrong kernel: does the peer accept the right one there? Where it does not, it cannot tell them apart either.
  std::vector<bool> accepts_control;
};

struct WrongKernel {
  std::string id, clause;
  bool is_contract = false;  // the scalar adapter under a wrong contract; else an adapter with a fault
  Format format = Format::binary32;
  PeerTrial ours;      // on a case of the corpora where it violates its budgets
  PeerTrial ordinary;  // on Gaussian inputs of unit scale, under the same contract
};

struct ValidRun {
  std::string kernel;
  Format format = Format::binary32;
  bool is_ordinary = false;
  PeerTrial trial;
};

struct PeerStudy {
  std::vector<AdequacyCorpus> corpora;
  std::vector<Peer> peers;
  std::vector<WrongKernel> wrong;
  std::vector<ValidRun> valid;  // that pass their budgets
};

// Of one peer and format.
struct PeerTally {
  struct Share {
    std::size_t some = 0, all = 0;
  };
  Share passed_ours, passed_ordinary;  // wrong kernels let through, of those where the peer accepts the right one
  Share valid_ours, valid_ordinary;    // valid runs rejected
};
PeerTally tally(const PeerStudy& study, std::size_t peer, Format format);

std::string peer_study_text(const PeerStudy& study);
std::string peer_study_markdown(const PeerStudy& study);
// One line per kernel, case and peer, with a head.
std::string peer_study_csv(const PeerStudy& study);
Json peer_study_json(const PeerStudy& study);

}  // namespace qkcts
