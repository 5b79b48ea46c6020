// SPDX-License-Identifier: Apache-2.0
#include "harness/worker.hpp"

#include <cerrno>
#include <new>
#include <optional>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/adapter_error.hpp"
#include "harness/call_execution.hpp"

namespace qkcts {
namespace {

bool read_all(int descriptor, std::byte* data, std::size_t size) {
  while (size > 0) {
    const ssize_t got = read(descriptor, data, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int descriptor, const std::byte* data, std::size_t size) {
  while (size > 0) {
    const ssize_t put = send(descriptor, data, size, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    data += put;
    size -= static_cast<std::size_t>(put);
  }
  return true;
}

std::optional<std::vector<std::byte>> receive() {
  std::uint64_t length = 0;
  if (!read_all(worker_conversation, reinterpret_cast<std::byte*>(&length), sizeof length)) return std::nullopt;
  std::vector<std::byte> bytes(length);
  if (!read_all(worker_conversation, bytes.data(), bytes.size())) return std::nullopt;
  return bytes;
}

template <class Answer>
bool answer(const Answer& value) {
  MessageWriter message;
  write(message, value);
  const std::uint64_t length = message.bytes().size();
  return write_all(worker_conversation, reinterpret_cast<const std::byte*>(&length), sizeof length) &&
         write_all(worker_conversation, message.bytes().data(), message.bytes().size());
}

}  // namespace

OpenAnswer AdapterSession::open(const OpenOrder& order) {
  OpenAnswer result;
  if (order.kind == AdapterKind::command) {
    command_ = std::make_unique<CommandSession>();
    return command_->open(order);
  }
  try {
    library_ = std::make_unique<AdapterLibrary>(order.path);
    result.description = library_->describe();
    result.probe = library_->probe(result.probe_reason);
    if (order.prepare && result.probe == QKCTS_OK) result.probe = library_->prepare(order.options, result.probe_reason);
  } catch (const AdapterError& error) {
    result.error = error.what();
    result.verdict = error.verdict();
  }
  return result;
}

RunAnswer AdapterSession::run(const RunOrder& order) const {
  if (command_) return command_->run(order);
  RunAnswer result;
  try {
    for (const Call& call : order.calls) {
      report_call(static_cast<std::uint32_t>(result.executions.size()));
      const StageBytes* const first = result.executions.empty() ? nullptr : &result.executions.front().outputs;
      auto [execution, same] = execute_call(*library_, order.request, call, first);
      result.executions.push_back(std::move(execution));
      result.same_as_first.push_back(same);
    }
  } catch (const std::bad_alloc&) {
    result = RunAnswer{};
    result.out_of_memory = true;
  }
  drop_spare_buffers();
  return result;
}

int worker_main() {
  // Programs that the adapter starts must not hold the conversation open.
  fcntl(worker_conversation, F_SETFD, FD_CLOEXEC);
  fcntl(worker_fault_memory, F_SETFD, FD_CLOEXEC);
  void* const memory = mmap(nullptr, sizeof(FaultRecord), PROT_READ | PROT_WRITE, MAP_SHARED, worker_fault_memory, 0);
  if (memory == MAP_FAILED) return 2;
  install_fault_handler(static_cast<FaultRecord*>(memory));
  AdapterSession session;
  for (auto bytes = receive(); bytes; bytes = receive()) {
    MessageReader message(*bytes);
    const auto order = message.get<Order>();
    if (order == Order::close) {
      session.close();
      return 0;
    }
    const bool sent = order == Order::open ? answer(session.open(read_open_order(message)))
                                           : answer(session.run(read_run_order(message)));
    if (!sent) return 2;
  }
  return 0;
}

}  // namespace qkcts
