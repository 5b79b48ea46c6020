// SPDX-License-Identifier: Apache-2.0
// `run --jobs N`: cases run side by side, in N processes ("lanes") that each run and judge one case at a time with a
// worker of their own. They are handed out in the order in which they are asked for, so that a run with lanes finds,
// writes and prints what a run without them does.
//
// A lane is a process, no thread: what an adapter leaves behind is told by whose descendant it is (descendants.hpp),
// and HDF5 knows one caller at a time.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/types.h>

#include "harness/run_case.hpp"

namespace qkcts {

struct LaneBeginning {
  std::string description;  // the text of describe()
  bool plain = false;       // a plain evaluation belongs to each case
  std::string corpus_digest;
  int beside = 1;  // lanes that will be at work
};

// A lane was killed.
class LaneError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct LaneOrder {
  std::string slug;
  Outputs outputs = Outputs::dropped;
};

class CaseLanes {
 public:
  // Starts request.jobs processes. They copy this one as it is, so it has no corpus open and no adapter running yet.
  // `request` outlives the object.
  explicit CaseLanes(const RunRequest& request);
  // Ends them, and what their adapters left behind.
  ~CaseLanes();
  CaseLanes(const CaseLanes&) = delete;
  CaseLanes& operator=(const CaseLanes&) = delete;

  // Once, before any case; how many are at work follows from the first plan.
  void begin(LaneBeginning beginning);
  // The cases that will be asked for, in this order, and are run ahead from the first take() on; of an earlier plan
  // nothing is left.
  void plan(std::vector<LaneOrder> orders);
  // How many are at work; known with the first plan.
  int beside() const { return beside_; }
  // Waits for the case, which is ordered now if it was not planned. Nothing if the run was interrupted meanwhile.
  // Throws what ended the case in its lane: InputError where the corpus is bad, LaneError, else std::runtime_error.
  std::optional<RanCase> take(const LaneOrder& order);
  // Whether take() has its answer without a wait.
  bool is_ready(const std::string& slug) const { return ready_.contains(slug); }

 private:
  struct Lane {
    pid_t pid = -1;
    int conversation = -1;
    std::string slug;     // at work on it; empty: idle
    bool wanted = false;  // its answer
  };
  void start(Lane& lane);
  bool is_under_way(const std::string& slug) const;
  void hand_out(const std::string& wanted);
  void await_answer();
  void receive(Lane& lane);

  const RunRequest& request_;
  std::set<pid_t> older_children_;
  std::optional<LaneBeginning> beginning_;  // not sent yet
  int beside_ = 1;
  std::vector<Lane> lanes_;
  std::deque<LaneOrder> waiting_;
  std::map<std::string, std::vector<std::byte>> ready_;  // answers, not read yet
};

}  // namespace qkcts
