// SPDX-License-Identifier: Apache-2.0
// Plan -> corpus file: threads that work on the cases, and a file that takes them in the order of the plan.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "vectors/generate.hpp"

namespace qkcts {

struct RefusedCase {
  std::string slug;
  std::string reason;
};

struct GenerateProgress {
  std::size_t done = 0, all = 0;
  double work_done = 0, work_all = 0;  // in units of estimated_seconds()
  std::string slug;                    // written last
};

struct GenerateOptions {
  unsigned jobs = 1;
  Tier tier = Tier::automatic;  // the file does not depend on it
  std::string generator_version;
  std::string shard;        // "2/4": stands in the file, so that a join misses none; empty: the whole plan
  std::string plan_digest;  // of the whole plan; beside `shard`, and for `resume`
  // Finished cases are kept in the folder PATH.part, and those that lie there already are taken from it. It vanishes
  // when the file is whole.
  bool resume = false;
  bool keep_parts = false;                                // the folder stays; remove_parts() ends it
  std::string program;                                    // which program may take up what lies in PATH.part
  std::function<bool()> stopped;                          // asked several times a second from the calling thread
  std::function<void(const GenerateProgress&)> progress;  // called from the calling thread, in order
};

struct GenerateReport {
  std::size_t written = 0;
  std::size_t resumed = 0;  // cases that did not have to be computed again
  std::size_t relations = 0;
  std::vector<std::string> silent_relations;  // left out, since these inputs do not bring them out: "SLUG: reason"
  std::vector<RefusedCase> refused;
  std::vector<DroppedProfile> dropped;
  std::size_t unjudged = 0;  // cases of groups of whatever fits that no profile can judge: left out, and no fault
  std::string digest;
};

// options.stopped() said so. The temporary file is gone; PATH.part stands if `resume` was set.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Same plan, same bytes, for any number of jobs and interruptions. Throws InputError for inputs that contradict their
// contract, WriteError and Interrupted; refused cases and dropped profiles are reported and left out.
GenerateReport generate_corpus(const Plan& plan, const std::string& path, const GenerateOptions& options);

}  // namespace qkcts
