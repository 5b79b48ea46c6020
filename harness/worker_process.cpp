// SPDX-License-Identifier: Apache-2.0
#include "harness/worker_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/descendants.hpp"
#include "harness/interruption.hpp"
#include "harness/worker_protocol.hpp"

namespace qkcts {
namespace {

constexpr std::size_t output_kept = 16384;
// Death is noticed at the latest after this long: a process that the adapter left behind may hold the conversation
// open.
constexpr int tick_ms = 50;
// For the end of a process whose conversation is closed already.
constexpr int patience_ms = 2000;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// In the child, between fork and exec: async-signal-safe calls only.
[[noreturn]] void become_worker(int conversation, int output, int fault, const WorkerLimits& limits) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core = {0, 0};  // crashes are expected here, and a core of each would fill the disk
  setrlimit(RLIMIT_CORE, &no_core);
  if (limits.address_space_bytes != 0) {
    const rlimit space = {limits.address_space_bytes, limits.address_space_bytes};
    setrlimit(RLIMIT_AS, &space);
  }
  // Out of the way of the numbers that the worker expects.
  const int high_conversation = fcntl(conversation, F_DUPFD, 10);
  const int high_output = fcntl(output, F_DUPFD, 10);
  const int high_fault = fcntl(fault, F_DUPFD, 10);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, 0);
  dup2(high_output, 1);
  dup2(high_output, 2);
  dup2(high_conversation, worker_conversation);
  dup2(high_fault, worker_fault_memory);
  close_range(5, ~0u, 0);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  char program[] = "/proc/self/exe";
  char name[] = "qkcts";
  std::array<char, 32> argument{};
  std::strncpy(argument.data(), worker_argument, argument.size() - 1);
  std::array<char*, 3> arguments = {name, argument.data(), nullptr};
  execv(program, arguments.data());
  _exit(127);
}

std::size_t machine_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t default_resident_bytes(int beside) {
  return machine_memory() / 5 * 4 / static_cast<std::size_t>(beside);
}

const char* access_text(FaultAccess access) {
  switch (access) {
    case FaultAccess::read:
      return "read";
    case FaultAccess::write:
      return "write";
    default:
      return "access";
  }
}

WorkerDeath death_by_fault(const FaultRecord& fault, int signal) {
  const char* const access = access_text(fault.access);
  switch (fault.kind) {
    case FaultKind::before_start:
    case FaultKind::behind_end:
      return {fault.kind == FaultKind::before_start ? Verdict::error_underrun : Verdict::error_overrun,
              fmt::format("{} at byte {} of {}, which has {} bytes", access, fault.offset, fault.buffer, fault.size)};
    case FaultKind::read_only:
      return {Verdict::error_input_modified,
              fmt::format("{} at byte {} of {}, which is read-only", access, fault.offset, fault.buffer)};
    default:
      return {Verdict::error_crash, fmt::format("signal {} ({}): {} at address {:#x}", signal, strsignal(signal),
                                                access, static_cast<std::uint64_t>(fault.offset))};
  }
}

}  // namespace

std::size_t resident_limit(const WorkerLimits& limits) {
  return limits.resident_bytes == 0 ? default_resident_bytes(limits.beside) : limits.resident_bytes;
}

WorkerProcess::WorkerProcess(const WorkerLimits& limits) : limits_(limits) {
  limits_.resident_bytes = resident_limit(limits);
  adopt_orphans();
  older_children_ = children_of_this_process();
  std::array<int, 2> conversation{}, output{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, conversation.data()) != 0) throw_errno("socketpair");
  if (pipe2(output.data(), O_CLOEXEC) != 0) throw_errno("pipe");
  const int fault = memfd_create("qkcts-fault", MFD_CLOEXEC);
  if (fault < 0 || ftruncate(fault, sizeof(FaultRecord)) != 0) throw_errno("memfd_create");
  void* const memory = mmap(nullptr, sizeof(FaultRecord), PROT_READ | PROT_WRITE, MAP_SHARED, fault, 0);
  if (memory == MAP_FAILED) throw_errno("mmap");
  fault_ = static_cast<FaultRecord*>(memory);
  pid_ = fork();
  if (pid_ < 0) throw_errno("fork");
  if (pid_ == 0) become_worker(conversation[1], output[1], fault, limits_);
  setpgid(pid_, pid_);  // here as well as there: whoever comes first
  close(conversation[1]);
  close(output[1]);
  close(fault);
  conversation_ = conversation[0];
  output_ = output[0];
  fcntl(conversation_, F_SETFL, O_NONBLOCK);
  fcntl(output_, F_SETFL, O_NONBLOCK);
}

WorkerProcess::~WorkerProcess() {
  end();
  close(conversation_);
  close(output_);
  munmap(fault_, sizeof(FaultRecord));
}

void WorkerProcess::end() {
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  kill(-pid_, SIGKILL);  // what was forked in between
  pid_ = -1;
  end_children_except(older_children_);
}

std::variant<std::vector<std::byte>, WorkerDeath> WorkerProcess::exchange(std::span<const std::byte> message) {
  const auto seconds = static_cast<double>(limits_.timeout.count()) / 1000;
  switch (pump(message)) {
    case Readiness::message: {
      std::vector<std::byte> answer(received_.begin() + sizeof(std::uint64_t), received_.end());
      received_.clear();
      return answer;
    }
    case Readiness::death:
      return death_by_itself();
    case Readiness::timeout:
      end();
      drain_output();
      return WorkerDeath{Verdict::error_timeout,
                         fmt::format("no answer within {} s; the process group was killed", seconds)};
    case Readiness::processor_time:
      end();
      drain_output();
      return WorkerDeath{Verdict::error_timeout,
                         fmt::format("more than {} s of processor time; the process group was killed",
                                     static_cast<double>(limits_.processor_time.count()) / 1000)};
    case Readiness::memory:
      end();
      drain_output();
      return WorkerDeath{Verdict::error_memory, fmt::format("more than {} MiB resident; the process group was killed{}",
                                                            limits_.resident_bytes >> 20, shared_limit_text())};
    case Readiness::hang_up:
      end();
      drain_output();
      return WorkerDeath{Verdict::error_protocol, "the worker lives but its conversation with the host was closed"};
    case Readiness::interrupted:
      break;
  }
  end();
  return WorkerDeath{Verdict::not_run,
                     interruption() != 0 ? "interrupted" : "was running when the time that --max-time gives was over"};
}

// What the default makes of --jobs is not what the same run would have alone.
std::string WorkerProcess::shared_limit_text() const {
  if (limits_.beside == 1 || limits_.resident_bytes != default_resident_bytes(limits_.beside)) return {};
  return fmt::format("; --jobs leaves each worker 1/{} of the default, --memory says otherwise", limits_.beside);
}

void WorkerProcess::part(std::span<const std::byte> message) {
  static_cast<void>(pump(message));  // an end of any kind will do
  end();
}

WorkerProcess::Readiness WorkerProcess::pump(std::span<const std::byte> message) {
  const std::uint64_t length = message.size();
  std::span<const std::byte> header = std::as_bytes(std::span(&length, 1));
  const auto deadline = std::chrono::steady_clock::now() + limits_.timeout;
  const bool timed = limits_.processor_time.count() > 0;
  const std::chrono::milliseconds used_before = timed ? processor_time() : std::chrono::milliseconds{0};
  fault_->call = 0;
  int hung_up_ms = 0;
  for (;;) {
    std::array<pollfd, 2> waits = {pollfd{conversation_, POLLIN, 0}, pollfd{output_, POLLIN, 0}};
    if (!header.empty() || !message.empty()) waits[0].events |= POLLOUT;
    poll(waits.data(), waits.size(), tick_ms);
    if (interruption() != 0 || is_over(limits_.stop_at)) return Readiness::interrupted;
    drain_output();
    if (!header.empty()) send_some(header);
    if (header.empty() && !message.empty()) send_some(message);
    const bool open = receive_some();
    if (answer_complete()) return Readiness::message;
    siginfo_t state{};
    waitid(P_PID, static_cast<id_t>(pid_), &state, WEXITED | WNOHANG | WNOWAIT);
    if (state.si_pid == pid_) return Readiness::death;
    if (std::chrono::steady_clock::now() >= deadline) return Readiness::timeout;
    if (timed && processor_time() - used_before > limits_.processor_time) return Readiness::processor_time;
    if (resident_bytes() > limits_.resident_bytes) return Readiness::memory;
    if (!open) {  // the socket is gone, the process not yet: it is dying, or something closed its descriptor 3
      if (++hung_up_ms > patience_ms) return Readiness::hang_up;
      usleep(1000);
    }
  }
}

void WorkerProcess::send_some(std::span<const std::byte>& rest) {
  const ssize_t sent = send(conversation_, rest.data(), rest.size(), MSG_NOSIGNAL);
  if (sent > 0) rest = rest.subspan(static_cast<std::size_t>(sent));
}

// False once the other end is closed.
bool WorkerProcess::receive_some() {
  // Whole answers are read in one go: their length is known after eight bytes.
  for (;;) {
    std::uint64_t wanted = sizeof(std::uint64_t);
    if (received_.size() >= wanted) {
      std::uint64_t length = 0;
      std::memcpy(&length, received_.data(), sizeof length);
      if (length > longest_message) return false;
      wanted += length;
    }
    if (received_.size() == wanted) return true;
    const std::size_t have = received_.size();
    const std::size_t chunk = std::min<std::uint64_t>(wanted - have, std::uint64_t{1} << 20);
    received_.resize(have + chunk);
    const ssize_t got = recv(conversation_, received_.data() + have, chunk, 0);
    received_.resize(have + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
  }
}

bool WorkerProcess::answer_complete() const {
  std::uint64_t length = 0;
  if (received_.size() < sizeof length) return false;
  std::memcpy(&length, received_.data(), sizeof length);
  return received_.size() - sizeof length == length;
}

void WorkerProcess::drain_output() {
  std::array<char, 4096> chunk;
  for (ssize_t got = 0; (got = read(output_, chunk.data(), chunk.size())) > 0;) {
    output_tail_.append(chunk.data(), static_cast<std::size_t>(got));
    if (output_tail_.size() > 2 * output_kept) output_tail_.erase(0, output_tail_.size() - output_kept);
  }
}

std::string WorkerProcess::take_output() {
  drain_output();
  if (output_tail_.size() > output_kept) output_tail_.erase(0, output_tail_.size() - output_kept);
  return std::exchange(output_tail_, {});
}

std::set<pid_t> WorkerProcess::counted_processes() const {
  return limits_.memory_of == MemoryOf::worker ? std::set<pid_t>{pid_} : with_descendants(pid_);
}

std::chrono::milliseconds WorkerProcess::processor_time() const {
  std::uint64_t ticks = 0;
  for (const pid_t pid : counted_processes()) {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    std::string text;
    if (!std::getline(stat, text, '\0')) continue;
    // The name, in parentheses, may hold anything; utime and stime are the 12th and 13th figure behind it.
    std::istringstream figures(text.substr(text.rfind(')') + 1));
    std::string skipped;
    for (int i = 0; i < 11; ++i) figures >> skipped;
    std::uint64_t user = 0, system = 0;
    if (figures >> user >> system) ticks += user + system;
  }
  return std::chrono::milliseconds(ticks * 1000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)));
}

std::size_t WorkerProcess::resident_bytes() const {
  std::size_t pages = 0;
  for (const pid_t pid : counted_processes()) {
    std::ifstream statm(fmt::format("/proc/{}/statm", pid));
    std::size_t total = 0, resident = 0;
    if (statm >> total >> resident) pages += resident;
  }
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

WorkerDeath WorkerProcess::death_by_itself() {
  int status = 0;
  kill(-pid_, SIGKILL);  // it is dead already, what it started may not be
  waitpid(pid_, &status, 0);
  pid_ = -1;
  end_children_except(older_children_);
  drain_output();
  if (WIFEXITED(status)) {
    return {Verdict::error_crash, fmt::format("the worker exited with status {}", WEXITSTATUS(status))};
  }
  const int signal = WTERMSIG(status);
  if (fault_->kind != FaultKind::none) return death_by_fault(*fault_, signal);
  if (signal == SIGKILL) {
    return {Verdict::error_memory, "the worker was killed from outside (signal 9), most likely for want of memory"};
  }
  return {Verdict::error_crash, fmt::format("signal {} ({})", signal, strsignal(signal))};
}

}  // namespace qkcts
