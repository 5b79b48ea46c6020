// SPDX-License-Identifier: Apache-2.0
// Threads that work on the cases of a plan; whoever asks takes the outcomes in order.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "vectors/generate.hpp"
#include "vectors/work_order.hpp"

namespace qkcts {

class CaseParts;

// The refusal of a case whose every profile had to be dropped.
inline constexpr const char* unjudged = "no profile can judge it";

// What became of one case: evidence, or a refusal, or an error that ends the work.
struct CaseOutcome {
  std::optional<GoldenCase> golden;
  std::vector<DroppedProfile> dropped;
  std::vector<Relation> relations;        // that are complete with this case
  std::vector<std::string> says_nothing;  // relations that its inputs do not bring out, with the reason
  std::string refusal;
  bool resumed = false;
  std::exception_ptr error;
};

class GenerateWorkers {
 public:
  // With `parts` finished cases come from there, and go there. Plan and parts outlive the workers.
  GenerateWorkers(const Plan& plan, unsigned jobs, Tier tier, CaseParts* parts);
  ~GenerateWorkers();  // waits for the cases in work
  GenerateWorkers(const GenerateWorkers&) = delete;
  GenerateWorkers& operator=(const GenerateWorkers&) = delete;

  // Each index once, in order. Empty if `stopped` says so before the case is there.
  std::optional<CaseOutcome> take(std::size_t index, const std::function<bool()>& stopped);

 private:
  void run();

  const Plan& plan_;
  const Tier tier_;
  CaseParts* const parts_;
  std::map<std::size_t, CaseOutcome> outcomes_;  // that wait to be taken
  WorkOrder order_;
  bool stop_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
};

}  // namespace qkcts
