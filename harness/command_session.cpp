// SPDX-License-Identifier: Apache-2.0
#include "harness/command_session.hpp"

#include <chrono>
#include <filesystem>
#include <new>

#include <fmt/format.h>

#include "conformance/file.hpp"
#include "harness/adapter_error.hpp"
#include "harness/batch_arrangement.hpp"
#include "harness/command_words.hpp"
#include "harness/exchange_requests.hpp"
#include "harness/exchange_schema.hpp"
#include "harness/fault_report.hpp"
#include "harness/utf8_text.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;

std::string excerpt(const std::string& line) {
  constexpr std::size_t kept = 120;
  return utf8_line(line.size() > kept ? line.substr(0, kept) + "..." : line);
}

}  // namespace

CommandSession::~CommandSession() {
  if (process_) process_->part(stop_line(++seq_));
}

// A line that is no message of the protocol is a death: nobody knows what the next one would answer.
std::variant<CommandReply, WorkerDeath> CommandSession::ask(ReplyTo what, const std::string& line) {
  auto answer = process_->ask(line);
  if (auto* const death = std::get_if<WorkerDeath>(&answer)) return std::move(*death);
  const std::string& got = std::get<std::string>(answer);
  try {
    return read_reply(got, seq_, what, strictness_, fmt::format("line {} of its stdout", process_->line_number()));
  } catch (const InputError& error) {
    return WorkerDeath{Verdict::error_protocol, fmt::format("{}; the line: {}", error.what(), excerpt(got))};
  }
}

OpenAnswer CommandSession::open(const OpenOrder& order) {
  OpenAnswer result;
  folder_ = order.folder;
  strictness_ = order.strictness;
  const auto fail = [&](const char* when, const WorkerDeath& death) {
    result.error = fmt::format("cmd:{}: {}: {}", order.options, when, death.detail);
    result.verdict = death.verdict;
    process_.reset();
    return result;
  };
  try {
    process_ = std::make_unique<CommandProcess>(order.path, command_words(order.options, "cmd:" + order.options));
    const auto hello = ask(ReplyTo::hello, hello_line(++seq_));
    if (const auto* death = std::get_if<WorkerDeath>(&hello)) return fail("no answer to hello", *death);
    const auto said = ask(ReplyTo::describe, describe_line(++seq_));
    if (const auto* death = std::get_if<WorkerDeath>(&said)) return fail("no answer to describe", *death);
    const auto& reply = std::get<CommandReply>(said);
    result.description = reply.description.dump();
    result.probe = reply.status;
    result.probe_reason = reply.message;
  } catch (const std::exception& error) {
    result.error = fmt::format("cmd:{}: {}", order.options, error.what());
    result.verdict = Verdict::error_crash;
  }
  return result;
}

std::variant<Execution, WorkerDeath> CommandSession::call(const Case& asked, StageSet stages,
                                                          const std::string& request) {
  const std::string path = folder_ + "/result.h5";
  std::error_code error;
  fs::remove(path, error);
  const auto start = std::chrono::steady_clock::now();
  auto answer = ask(ReplyTo::run, run_line(++seq_, request, path));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (auto* const death = std::get_if<WorkerDeath>(&answer)) return std::move(*death);
  const auto& reply = std::get<CommandReply>(answer);
  Execution execution;
  execution.status = reply.status;
  execution.message = reply.message;
  if (reply.status != QKCTS_OK) return execution;
  if (!fs::exists(fs::symlink_status(path, error))) {
    execution.violation = Verdict::error_unwritten;
    execution.violation_detail = "the command answered ok, but there is no result file";
    return execution;
  }
  const auto read = [&] {
    const ResultReader results(path, strictness_);
    if (results.slugs() != std::vector<std::string>{exchange::nameless_case})
      throw InputError(fmt::format("{}: holds another case than the only one of the request", path));
    return results.read(exchange::nameless_case, asked, stages);
  };
  try {
    look_in_child(path, [&read] { static_cast<void>(read()); });
    execution = read();
  } catch (const InputError& fault) {
    execution.violation = Verdict::error_protocol;
    execution.violation_detail = fault.what();
  }
  execution.seconds = seconds;
  return execution;
}

RunAnswer CommandSession::run(const RunOrder& order) {
  RunAnswer result;
  const auto end = [&](const WorkerDeath& death) {
    result.executions.clear();
    result.same_as_first.clear();
    result.death = death.verdict;
    result.death_detail = death.detail;
    process_.reset();
    return result;
  };
  try {
    const ExecutionRequest& asked = order.request;
    const std::string path = folder_ + "/request.h5";
    KernelRequest request;
    const Call* written = nullptr;
    for (const Call& one : order.calls) {  // where its buffers lie is the command's affair
      report_call(static_cast<std::uint32_t>(result.executions.size()));
      if (written == nullptr || written->variant != one.variant || written->entries != one.entries) {
        const ExecutionRequest arranged = request_of_call(asked, one);
        request = {{exchange::nameless_case, contract_from_json(asked.contract_json, "the case's contract"),
                    arranged.shape, arranged.inputs},
                   arranged.stages};
        RequestWriter file(path, path, {});
        file.add(request);
        file.close();
        written = &one;
      }
      auto made = call(request.input, request.stages, path);
      if (const auto* death = std::get_if<WorkerDeath>(&made)) return end(*death);
      Execution execution = std::move(std::get<Execution>(made));
      const bool same = one.entries.empty() && !result.executions.empty() && execution.status == QKCTS_OK &&
                        execution.violation == Verdict::pass && execution.outputs == result.executions.front().outputs;
      if (same) execution.outputs = {};
      result.executions.push_back(std::move(execution));
      result.same_as_first.push_back(same);
    }
  } catch (const std::bad_alloc&) {
    result = RunAnswer{};
    result.out_of_memory = true;
  } catch (const WriteError& error) {  // no fault of the command's
    return end({Verdict::not_run, error.what()});
  } catch (const std::exception& error) {
    return end({Verdict::error_protocol, error.what()});
  }
  return result;
}

}  // namespace qkcts
