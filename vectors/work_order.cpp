// SPDX-License-Identifier: Apache-2.0
#include "vectors/work_order.hpp"

#include "vectors/estimate.hpp"

namespace qkcts {
namespace {

// Together with the program itself, its plan, the outcomes that wait and what the heap keeps for the next case, which
// were seen to take 400 MB, less than 1 GiB.
constexpr double working_limit = 600e6;
// Finished cases wait while a slow one before them is in work.
constexpr double bytes_ahead_limit = 128e6;

// In memory a case takes at most 19 + 5 bytes per profile and element, in the file at least 12 + 4.
double held_bytes(const PlannedCase& planned) {
  return 1.6 * estimated_bytes(planned);
}

}  // namespace

WorkOrder::WorkOrder(const Plan& plan) : plan_(plan), started_(plan.cases.size(), false) {}

std::optional<std::size_t> WorkOrder::start() {
  for (std::size_t i = first_open_; i < plan_.cases.size() && may_wait(i); ++i) {
    if (started_[i] || !fits(i)) continue;
    started_[i] = true;
    while (first_open_ < started_.size() && started_[first_open_]) ++first_open_;
    ++in_work_;
    working_bytes_ += estimated_working_bytes(plan_.cases[i]);
    bytes_ahead_ += held_bytes(plan_.cases[i]);
    return i;
  }
  return std::nullopt;
}

bool WorkOrder::may_wait(std::size_t index) const {
  return index == taken_ || started_[index] || bytes_ahead_ + held_bytes(plan_.cases[index]) <= bytes_ahead_limit;
}

bool WorkOrder::fits(std::size_t index) const {
  return in_work_ == 0 || working_bytes_ + estimated_working_bytes(plan_.cases[index]) <= working_limit;
}

void WorkOrder::finish(std::size_t index) {
  --in_work_;
  working_bytes_ -= estimated_working_bytes(plan_.cases[index]);
}

void WorkOrder::take(std::size_t index) {
  taken_ = index + 1;
  bytes_ahead_ -= held_bytes(plan_.cases[index]);
}

}  // namespace qkcts
