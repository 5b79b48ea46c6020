// SPDX-License-Identifier: Apache-2.0
// The processes of one MPI job, each of which generates a shard. MPI says who they are and carries short texts between
// them; everything else goes through files.
#pragma once

#include <string>
#include <vector>

namespace qkcts {

// Did mpirun start this process, beside others?
bool started_as_rank();
// Without MPI in the build a process is alone, whoever started it.
bool knows_ranks();

// Calls come from one thread. One object per process.
class Ranks {
 public:
  Ranks();   // joins the others if started_as_rank()
  ~Ranks();  // waits for the others
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  unsigned rank() const { return rank_; }  // from 0
  unsigned size() const { return size_; }
  // Tells the others to stop early.
  void tell_failure();
  bool another_failed();
  // The texts of all ranks, in their order, on every rank. Waits until every rank is here.
  std::vector<std::string> gathered(const std::string& text);

 private:
  unsigned rank_ = 0, size_ = 1;
  bool another_failed_ = false;
};

}  // namespace qkcts
