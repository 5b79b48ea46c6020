// SPDX-License-Identifier: Apache-2.0
// A plan that becomes a file: in this process, as one shard of it, or as one of the processes of an MPI job.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "reference/attention.hpp"
#include "vectors/generate_shard.hpp"

namespace qkcts::cli {

struct GenerateJob {
  std::string output;
  unsigned jobs = 0;  // 0: as many as the machine has processors; under mpirun one
  bool estimate_only = false;
  bool resume = false;
  std::optional<Shard> shard;
  Tier tier = Tier::automatic;
};

// Returns the exit code. `plan` is called once, and may throw. With --estimate `estimated` says more about the plan.
int run_generate_job(const std::function<Plan()>& plan, const GenerateJob& job,
                     const std::function<void(const Plan&)>& estimated);

}  // namespace qkcts::cli
