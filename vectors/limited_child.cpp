// SPDX-License-Identifier: Apache-2.0
#include "vectors/limited_child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define QKCTS_RESERVES_ADDRESS_SPACE
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QKCTS_RESERVES_ADDRESS_SPACE
#endif

namespace qkcts {
namespace {

#ifdef QKCTS_RESERVES_ADDRESS_SPACE
constexpr bool memory_is_limited = false;
#else
constexpr bool memory_is_limited = true;
#endif

constexpr std::size_t longest_message = 4000;
constexpr int work_returned = 0, work_threw = 1;

template <class Resource>
void set_limit(Resource which, std::uint64_t value) {
  const rlimit limit{value, value};
  ::setrlimit(which, &limit);
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

[[noreturn]] void work_in_child(const std::function<std::string()>& work, const ChildLimits& limits, int pipe_end) {
  set_limit(RLIMIT_CORE, 0);
  if (memory_is_limited) set_limit(RLIMIT_AS, limits.memory_bytes);
  set_limit(RLIMIT_CPU, limits.cpu_seconds);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU}) ::signal(signal, SIG_DFL);
  // What a damaged heap makes the C library print is no message of ours.
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
  }
  try {
    const std::string message = work();
    write_all(pipe_end, std::string_view(message).substr(0, longest_message));
  } catch (...) {
    ::_exit(work_threw);
  }
  ::_exit(work_returned);
}

// Reads the pipe to its end. False if that did not come in time.
bool collect(int pipe_end, std::uint64_t seconds, std::string& message) {
  using std::chrono::milliseconds;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  char buffer[512];
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd watched{pipe_end, POLLIN, 0};
    const int ready = ::poll(&watched, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1000000)));
    if (ready <= 0) continue;
    const ssize_t got = ::read(pipe_end, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    message.append(buffer, static_cast<std::size_t>(got));
  }
}

ChildEnd end_of(int status, bool in_time) {
  if (!in_time) return ChildEnd::out_of_time;
  if (WIFEXITED(status)) return WEXITSTATUS(status) == work_returned ? ChildEnd::returned : ChildEnd::crashed;
  // The hard limit on CPU time kills.
  const bool killed = WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL;
  return killed ? ChildEnd::out_of_time : ChildEnd::crashed;
}

}  // namespace

bool child_memory_is_limited() {
  return memory_is_limited;
}

ChildOutcome run_in_limited_child(const std::function<std::string()>& work, const ChildLimits& limits) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  const pid_t child = ::fork();
  const int fork_errno = errno;
  if (child == 0) work_in_child(work, limits, ends[1]);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    throw std::runtime_error(std::string("fork: ") + std::strerror(fork_errno));
  }
  ChildOutcome outcome;
  const bool in_time = collect(ends[0], limits.wall_seconds, outcome.message);
  ::close(ends[0]);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.end = end_of(status, in_time);
  return outcome;
}

}  // namespace qkcts
