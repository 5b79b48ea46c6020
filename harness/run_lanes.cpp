// SPDX-License-Identifier: Apache-2.0
#include "harness/run_lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <system_error>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/descendants.hpp"
#include "harness/interruption.hpp"
#include "harness/run_lane.hpp"
#include "harness/run_lane_message.hpp"

namespace qkcts {
namespace {

// Answers that may wait for each lane while an earlier case is slow: outputs that relations need stand in them.
constexpr std::size_t ahead = 4;
constexpr int tick_ms = 50;  // a signal that comes just before poll() is seen this much later

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Waits for its end until then.
bool has_ended(pid_t pid, std::chrono::steady_clock::time_point end) {
  while (waitpid(pid, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= end) return false;
    usleep(2000);
  }
  return true;
}

}  // namespace

CaseLanes::CaseLanes(const RunRequest& request) : request_(request) {
  adopt_orphans();
  older_children_ = children_of_this_process();
  for (int i = 0; i < request.jobs; ++i) start(lanes_.emplace_back());
}

void CaseLanes::start(Lane& lane) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw_errno("socketpair");
  std::fflush(nullptr);  // else what waits there would be written by both
  const pid_t parent = getpid();
  lane.pid = fork();
  if (lane.pid < 0) throw_errno("fork");
  lane.conversation = ends[0];
  if (lane.pid > 0) {
    close(ends[1]);
    return;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const Lane& other : lanes_) close(other.conversation);  // else nobody sees when this process closes them
  int status = 0;
  try {
    work_in_lane(request_, ends[1]);
  } catch (const std::exception&) {  // of the first message: this process has understood the same text
    status = 1;
  }
  _exit(status);
}

CaseLanes::~CaseLanes() {
  // A lane without work tells its adapter that there is nothing more to do, which may take as long as a case.
  const auto patience = std::chrono::steady_clock::now() + request_.limits.timeout + std::chrono::seconds(5);
  for (const Lane& lane : lanes_) {
    close(lane.conversation);
    if (!lane.slug.empty() || interruption() != 0) kill(lane.pid, SIGTERM);
  }
  for (const Lane& lane : lanes_) {
    if (has_ended(lane.pid, patience)) continue;
    kill(lane.pid, SIGKILL);
    waitpid(lane.pid, nullptr, 0);
  }
  end_children_except(older_children_);
}

void CaseLanes::begin(LaneBeginning beginning) {
  beginning_ = std::move(beginning);
}

void CaseLanes::plan(std::vector<LaneOrder> orders) {
  if (beginning_) {
    beside_ = static_cast<int>(std::clamp<std::size_t>(orders.size(), 1, lanes_.size()));
    beginning_->beside = beside_;
    MessageWriter message;
    write(message, *beginning_);
    for (const Lane& lane : lanes_) send_to_lane(lane.conversation, message.bytes());  // one that is gone is seen later
    beginning_.reset();
  }
  waiting_.assign(std::make_move_iterator(orders.begin()), std::make_move_iterator(orders.end()));
  ready_.clear();
  for (Lane& lane : lanes_) lane.wanted = false;
}

bool CaseLanes::is_under_way(const std::string& slug) const {
  return is_ready(slug) ||
         std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) { return lane.wanted && lane.slug == slug; });
}

std::optional<RanCase> CaseLanes::take(const LaneOrder& order) {
  if (!is_under_way(order.slug)) {  // the next one to be run, whether it was planned for later or not at all
    std::erase_if(waiting_, [&](const LaneOrder& other) { return other.slug == order.slug; });
    waiting_.push_front(order);
  }
  for (;;) {
    if (const auto found = ready_.find(order.slug); found != ready_.end()) {
      const std::vector<std::byte> answer = std::move(found->second);
      ready_.erase(found);
      // So that no lane is idle while this case is written down.
      if (interruption() == 0 && !is_over(request_.limits.stop_at)) hand_out({});
      MessageReader message(answer);
      return read_ran_case(message);
    }
    if (interruption() != 0) return std::nullopt;
    hand_out(order.slug);
    await_answer();
  }
}

void CaseLanes::hand_out(const std::string& wanted) {
  for (Lane& lane : lanes_) {
    if (!lane.slug.empty() || waiting_.empty()) continue;
    if (ready_.size() >= ahead * lanes_.size() && waiting_.front().slug != wanted) return;
    MessageWriter message;
    write(message, waiting_.front());
    lane.slug = waiting_.front().slug;
    lane.wanted = true;
    waiting_.pop_front();
    send_to_lane(lane.conversation, message.bytes());
  }
}

void CaseLanes::await_answer() {
  std::vector<pollfd> waits;
  for (const Lane& lane : lanes_) waits.push_back({lane.slug.empty() ? -1 : lane.conversation, POLLIN, 0});
  if (poll(waits.data(), waits.size(), tick_ms) <= 0) return;
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    if (waits[i].revents != 0) receive(lanes_[i]);
}

void CaseLanes::receive(Lane& lane) {
  auto answer = receive_from_lane(lane.conversation);
  if (!answer) {
    if (interruption() != 0) return;  // the same signal ended it
    throw LaneError(
        fmt::format("{}: the process that ran it for --jobs was killed, perhaps for want of memory; {}", lane.slug,
                    request_.journal_folder.empty() ? "run it again, with fewer jobs if that is why"
                                                    : "what was judged stays in the journal: go on with --resume"));
  }
  if (lane.wanted) ready_[lane.slug] = std::move(*answer);
  lane.slug.clear();
  lane.wanted = false;
}

}  // namespace qkcts
