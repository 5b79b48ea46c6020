// SPDX-License-Identifier: Apache-2.0
#include "vectors/generate_ranks.hpp"

#include <cstdlib>

#ifdef QKCTS_MPI
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace qkcts {

// What Open MPI, and MPICH and its kin, tell the processes that they start. A process that is alone must not pay for
// MPI's start, nor need its network.
bool started_as_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* size = std::getenv(name);
    if (size != nullptr && std::atoi(size) > 1) return true;
  }
  return false;
}

#ifdef QKCTS_MPI

namespace {

constexpr int failure_tag = 1;

}  // namespace

bool knows_ranks() {
  return true;
}

Ranks::Ranks() {
  if (!started_as_rank()) return;
  int provided = 0, rank = 0, size = 1;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rank_ = static_cast<unsigned>(rank);
  size_ = static_cast<unsigned>(size);
}

Ranks::~Ranks() {
  if (started_as_rank()) MPI_Finalize();
}

void Ranks::tell_failure() {
  for (unsigned other = 0; other < size_; ++other)
    if (other != rank_) MPI_Send(nullptr, 0, MPI_BYTE, static_cast<int>(other), failure_tag, MPI_COMM_WORLD);
}

bool Ranks::another_failed() {
  int found = size_ > 1 ? 1 : 0;
  while (found != 0) {
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, failure_tag, MPI_COMM_WORLD, &found, &status);
    if (found == 0) break;
    MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, failure_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    another_failed_ = true;
  }
  return another_failed_;
}

std::vector<std::string> Ranks::gathered(const std::string& text) {
  if (size_ == 1) return {text};
  const int mine = static_cast<int>(text.size());
  std::vector<int> lengths(size_), starts(size_, 0);
  MPI_Allgather(&mine, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD);
  for (unsigned i = 1; i < size_; ++i) starts[i] = starts[i - 1] + lengths[i - 1];
  std::string all(static_cast<std::size_t>(starts.back() + lengths.back()), '\0');
  MPI_Allgatherv(text.data(), mine, MPI_CHAR, all.data(), lengths.data(), starts.data(), MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> texts;
  for (unsigned i = 0; i < size_; ++i)
    texts.push_back(all.substr(static_cast<std::size_t>(starts[i]), static_cast<std::size_t>(lengths[i])));
  return texts;
}

#else

bool knows_ranks() {
  return false;
}

Ranks::Ranks() = default;
Ranks::~Ranks() = default;
void Ranks::tell_failure() {
  another_failed_ = false;  // there are no others
}
bool Ranks::another_failed() {
  return another_failed_;
}
std::vector<std::string> Ranks::gathered(const std::string& text) {
  return {text};
}

#endif

}  // namespace qkcts
