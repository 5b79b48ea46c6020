// SPDX-License-Identifier: Apache-2.0
#include "harness/adapter_runner.hpp"

#include <fmt/format.h>

#include "harness/adapter_error.hpp"
#include "harness/worker.hpp"

namespace qkcts {
namespace {

class WorkerRunner final : public AdapterRunner {
 public:
  WorkerRunner(AdapterSpec spec, const WorkerLimits& limits) : spec_(std::move(spec)), limits_(limits) {}

  OpenAnswer open(bool prepare) override {
    process_ = std::make_unique<WorkerProcess>(limits_);
    MessageWriter order;
    write(order, OpenOrder{spec_.path, spec_.options, prepare});
    auto reply = process_->exchange(order.bytes());
    if (const auto* death = std::get_if<WorkerDeath>(&reply)) {
      const std::string printed = process_->take_output();
      process_.reset();
      throw AdapterError(fmt::format("{}: {} while it was loaded: {}{}{}", spec_.given, verdict_name(death->verdict),
                                     death->detail, printed.empty() ? "" : "; it printed: ", last_line(printed)));
    }
    MessageReader message(std::get<std::vector<std::byte>>(reply));
    OpenAnswer answer = read_open_answer(message);
    if (!answer.error.empty()) {
      process_.reset();
      throw AdapterError(answer.error);
    }
    return answer;
  }

  RunOutcome run(const RunOrder& order) override {
    RunOutcome outcome;
    try {
      if (!process_) open(true);
      MessageWriter message;
      write(message, order);
      auto reply = process_->exchange(message.bytes());
      outcome.output = process_->take_output();
      if (const auto* death = std::get_if<WorkerDeath>(&reply)) {
        outcome.death = death->verdict;
        outcome.death_detail = death->detail;
      } else {
        MessageReader answer(std::get<std::vector<std::byte>>(reply));
        outcome.answer = read_run_answer(answer);
        if (!outcome.answer.out_of_memory && !fits(outcome.answer, order)) {
          throw MessageError("the worker's answer does not fit the order");
        }
        if (outcome.answer.out_of_memory) {
          outcome.death = Verdict::error_memory;
          outcome.death_detail = "the worker could not allocate the buffers of the case";
        }
      }
    } catch (const AdapterError& error) {  // it opened before, and now it does not
      outcome.death = Verdict::error_crash;
      outcome.death_detail = error.what();
    } catch (const MessageError& error) {
      outcome.death = Verdict::error_protocol;
      outcome.death_detail = error.what();
    }
    if (outcome.death != Verdict::pass) process_.reset();
    return outcome;
  }

 private:
  static std::string last_line(const std::string& text) {
    const std::size_t end = text.find_last_not_of('\n');
    if (end == std::string::npos) return {};
    const std::size_t start = text.rfind('\n', end);
    return text.substr(start == std::string::npos ? 0 : start + 1, end - (start == std::string::npos ? -1 : start));
  }

  AdapterSpec spec_;
  WorkerLimits limits_;
  std::unique_ptr<WorkerProcess> process_;
};

class InProcessRunner final : public AdapterRunner {
 public:
  explicit InProcessRunner(AdapterSpec spec) : spec_(std::move(spec)) {}

  OpenAnswer open(bool prepare) override {
    session_ = std::make_unique<AdapterSession>();
    OpenAnswer answer = [&] {
      try {
        return session_->open({spec_.path, spec_.options, prepare});
      } catch (const std::exception& error) {
        throw AdapterError(fmt::format("{}: threw an exception: {}", spec_.given, error.what()));
      } catch (...) {
        throw AdapterError(fmt::format("{}: threw an exception", spec_.given));
      }
    }();
    if (!answer.error.empty()) throw AdapterError(answer.error);
    return answer;
  }

  RunOutcome run(const RunOrder& order) override {
    if (!session_) open(true);
    RunOutcome outcome;
    try {
      outcome.answer = session_->run(order);
      if (!outcome.answer.out_of_memory) return outcome;
      outcome.death = Verdict::error_memory;
      outcome.death_detail = "no memory for the buffers of the case";
    } catch (const std::exception& error) {
      outcome.death = Verdict::error_crash;
      outcome.death_detail = fmt::format("an exception left run(): {}", error.what());
    } catch (...) {
      outcome.death = Verdict::error_crash;
      outcome.death_detail = "an exception left run()";
    }
    return outcome;
  }

 private:
  AdapterSpec spec_;
  std::unique_ptr<AdapterSession> session_;
};

}  // namespace

std::unique_ptr<AdapterRunner> worker_runner(const AdapterSpec& spec, const WorkerLimits& limits) {
  return std::make_unique<WorkerRunner>(spec, limits);
}

std::unique_ptr<AdapterRunner> in_process_runner(const AdapterSpec& spec) {
  return std::make_unique<InProcessRunner>(spec);
}

}  // namespace qkcts
