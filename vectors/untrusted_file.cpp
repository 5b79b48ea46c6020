// SPDX-License-Identifier: Apache-2.0
#include "vectors/untrusted_file.hpp"

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
#include <exception>
#include <filesystem>

#include <fmt/format.h>

#include "vectors/corpus_reader.hpp"

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
constexpr bool can_limit_memory = false;  // a sanitizer maps terabytes of shadow memory
#else
constexpr bool can_limit_memory = true;
#endif

constexpr std::size_t longest_message = 4000;
constexpr int refused = 1;

void set_limit(int which, std::uint64_t value) {
  const rlimit limit{value, value};
  ::setrlimit(static_cast<__rlimit_resource_t>(which), &limit);
}

// Exit code 0: the file is good; `refused`: one line on the pipe says why not.
[[noreturn]] void read_in_child(const std::string& path, const UntrustedLimits& limits, int pipe_end) {
  set_limit(RLIMIT_CORE, 0);
  if (can_limit_memory) set_limit(RLIMIT_AS, limits.memory_bytes);
  set_limit(RLIMIT_CPU, limits.cpu_seconds);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(signal, SIG_DFL);
  // What a damaged heap makes the C library print is no message of ours.
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
  }
  std::string message;
  try {
    const CorpusReader reader(path);
    for (const std::string& slug : reader.slugs()) static_cast<void>(reader.read(slug));
  } catch (const InputError& error) {
    message = error.what();
  } catch (const std::bad_alloc&) {
    message = path + ": needs more memory than a corpus may";
  } catch (const std::exception& error) {
    message = path + ": " + error.what();
  }
  if (message.empty()) ::_exit(0);
  message.resize(std::min(message.size(), longest_message));
  static_cast<void>(!::write(pipe_end, message.data(), message.size()));
  ::_exit(refused);
}

std::uint64_t time_for(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return 20 + (error ? 0 : bytes >> 21U);  // a second for every 2 MiB: ten times what decompression takes
}

// Reads the pipe to its end. False if that did not come in time.
bool collect(int pipe_end, std::uint64_t seconds, std::string& message) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  char buffer[512];
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd watched{pipe_end, POLLIN, 0};
    const int ready = ::poll(&watched, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1000000)));
    if (ready <= 0) continue;
    const ssize_t got = ::read(pipe_end, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    message.append(buffer, static_cast<std::size_t>(got));
    if (message.size() > longest_message) message.resize(longest_message);
  }
}

}  // namespace

void check_untrusted_corpus(const std::string& path, const UntrustedLimits& given) {
  UntrustedLimits limits = given;
  if (limits.cpu_seconds == 0) limits.cpu_seconds = time_for(path);
  if (limits.wall_seconds == 0) limits.wall_seconds = 4 * time_for(path);  // the machine may be busy
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t child = ::fork();
  if (child < 0) {
    const int fork_errno = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw std::runtime_error(fmt::format("fork: {}", std::strerror(fork_errno)));
  }
  if (child == 0) read_in_child(path, limits, ends[1]);
  ::close(ends[1]);
  std::string message;
  const bool in_time = collect(ends[0], limits.wall_seconds, message);
  ::close(ends[0]);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (in_time && WIFEXITED(status) && WEXITSTATUS(status) == refused && !message.empty()) throw InputError(message);
  if (!in_time || (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL)))
    throw InputError(fmt::format("{}: reading it did not end in time; the file is damaged or hostile", path));
  throw InputError(fmt::format("{}: reading it crashed; the file is damaged or hostile", path));
}

}  // namespace qkcts
