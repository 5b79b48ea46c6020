// SPDX-License-Identifier: Apache-2.0
#include "harness/command_process.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace qkcts {
namespace {

// A process that the command left behind may hold its stdout open, so its death is looked for as well.
constexpr int tick_ms = 20;
constexpr std::chrono::milliseconds patience_with_closed_stdout{1000}, patience_at_the_end{2000};

// In the child, between fork and exec: async-signal-safe calls only. Other descriptors close themselves.
[[noreturn]] void become_command(const char* program, char* const* words, int in, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (in == out || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0) _exit(126);
  std::signal(SIGPIPE, SIG_DFL);
  execv(program, words);
  _exit(127);
}

// A command that does not read must not end this process.
class PipeSignalIgnored {
 public:
  PipeSignalIgnored() {
    sigaction(SIGPIPE, nullptr, &before_);
    std::signal(SIGPIPE, SIG_IGN);
  }
  ~PipeSignalIgnored() { sigaction(SIGPIPE, &before_, nullptr); }
  PipeSignalIgnored(const PipeSignalIgnored&) = delete;
  PipeSignalIgnored& operator=(const PipeSignalIgnored&) = delete;

 private:
  struct sigaction before_ {};
};

void send(int descriptor, std::string_view text) {
  const PipeSignalIgnored ignored;
  while (!text.empty()) {
    const ssize_t put = write(descriptor, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;  // nobody reads: its death is noticed where the answer is waited for
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace

CommandProcess::CommandProcess(const std::string& program, const std::vector<std::string>& words) {
  std::array<int, 2> in{}, out{};
  if (pipe2(in.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  if (pipe2(out.data(), O_CLOEXEC) != 0) {
    const int reason = errno;
    close(in[0]);
    close(in[1]);
    throw std::system_error(reason, std::generic_category(), "pipe");
  }
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_ = fork();
  const int reason = errno;
  if (pid_ == 0) become_command(program.c_str(), arguments.data(), in[0], out[1]);
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
  if (pid_ < 0) {
    close(to_);
    close(from_);
    throw std::system_error(reason, std::generic_category(), "fork");
  }
  fcntl(from_, F_SETFL, O_NONBLOCK);
}

CommandProcess::~CommandProcess() {
  if (to_ >= 0) close(to_);
  close(from_);
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::variant<std::string, WorkerDeath> CommandProcess::ask(std::string_view line) {
  send(to_, fmt::format("{}\n", line));
  std::string answer;
  std::chrono::steady_clock::time_point closed{};
  for (;;) {
    const bool ended = has_ended();  // asked first: what it wrote before its end is read all the same
    const bool open = receive_some();
    if (take_line(answer)) return answer;
    if (ended) return death();
    if (received_.size() > longest_line)
      return WorkerDeath{Verdict::error_protocol,
                         fmt::format("line {} of its stdout is longer than {} bytes", lines_ + 1, longest_line)};
    if (open) {
      pollfd wait{from_, POLLIN, 0};
      poll(&wait, 1, tick_ms);
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (closed == std::chrono::steady_clock::time_point{}) closed = now;
    if (now - closed > patience_with_closed_stdout)
      return WorkerDeath{Verdict::error_protocol, "the command lives, but has closed its stdout"};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void CommandProcess::part(std::string_view line) {
  send(to_, fmt::format("{}\n", line));
  close(to_);
  to_ = -1;
  const auto start = std::chrono::steady_clock::now();
  while (!has_ended() && std::chrono::steady_clock::now() - start < patience_at_the_end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool CommandProcess::take_line(std::string& line) {
  const std::size_t end = received_.find('\n');
  if (end == std::string::npos || end > longest_line) return false;
  line = received_.substr(0, end);
  received_.erase(0, end + 1);
  ++lines_;
  return true;
}

// False once the other end is closed.
bool CommandProcess::receive_some() {
  std::array<char, 65536> chunk;
  while (received_.size() <= longest_line) {
    const ssize_t got = read(from_, chunk.data(), chunk.size());
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    received_.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return true;
}

bool CommandProcess::has_ended() const {
  siginfo_t state{};
  waitid(P_PID, static_cast<id_t>(pid_), &state, WEXITED | WNOHANG | WNOWAIT);
  return state.si_pid == pid_;
}

WorkerDeath CommandProcess::death() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  const std::string rest =
      received_.empty() ? std::string() : fmt::format(", in the middle of line {} of its stdout", lines_ + 1);
  if (WIFEXITED(status)) {
    const int code = WEXITSTATUS(status);
    return {Verdict::error_crash, fmt::format("the command exited with status {}{}", code, rest)};
  }
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL)
    return {Verdict::error_memory, "the command was killed from outside (signal 9), most likely for want of memory"};
  return {Verdict::error_crash, fmt::format("the command died by signal {} ({}){}", signal, strsignal(signal), rest)};
}

}  // namespace qkcts
