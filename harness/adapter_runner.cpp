// SPDX-License-Identifier: Apache-2.0
#include "harness/adapter_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cfenv>

#include "harness/adapter_error.hpp"
#include "harness/floating_point_environment.hpp"
#include "harness/private_folder.hpp"
#include "harness/worker.hpp"
#include "harness/wrong_contract.hpp"

namespace qkcts {
namespace {

// What the worker is told, and the folder that a command's files need; it lives as long as its runner.
class Opening {
 public:
  explicit Opening(AdapterSpec adapter) : spec(std::move(adapter)) {}

  OpenOrder order(bool prepare) {
    OpenOrder order{spec.path, spec.options, prepare, spec.kind, {}, spec.strictness};
    if (spec.kind != AdapterKind::command) return order;
    if (!folder_) folder_ = std::make_unique<PrivateFolder>();
    folder_->clear();  // of what a command that died left there
    order.folder = folder_->path();
    return order;
  }

  const AdapterSpec spec;

 private:
  std::unique_ptr<PrivateFolder> folder_;
};

// A command that ended has no executions to look at.
void take_death(RunOutcome& outcome) {
  if (outcome.answer.death == Verdict::pass) return;
  outcome.death = outcome.answer.death;
  outcome.death_detail = outcome.answer.death_detail;
}

// It opened before, so that it is not usable now is an error of the case.
void require_usable_again(const AdapterSpec& adapter, const OpenAnswer& answer) {
  if (answer.probe != QKCTS_OK)
    throw AdapterError(fmt::format("{}: no longer usable: {}", adapter.given, answer.probe_reason));
}

class SpentRunner final : public AdapterRunner {
 public:
  explicit SpentRunner(int respawns) : respawns_(respawns) {}
  OpenAnswer open(bool) override { throw AdapterError(reason()); }
  RunOutcome run(const RunOrder&) override {
    RunOutcome outcome;
    outcome.death = Verdict::not_run;
    outcome.death_detail = reason();
    return outcome;
  }

 private:
  std::string reason() const {
    return fmt::format("the worker was started anew {} times already (--respawns)", respawns_);
  }
  int respawns_;
};

class WorkerRunner final : public AdapterRunner {
 public:
  WorkerRunner(const AdapterSpec& spec, const WorkerLimits& limits) : opening_(spec), limits_(limits) {
    if (spec.kind == AdapterKind::command) limits_.memory_of = MemoryOf::worker_and_descendants;
  }

  ~WorkerRunner() override { say_goodbye(); }

  OpenAnswer open(bool prepare) override {
    process_ = std::make_unique<WorkerProcess>(limits_);
    ++started_;
    MessageWriter order;
    write(order, opening_.order(prepare));
    auto reply = process_->exchange(order.bytes());
    if (const auto* death = std::get_if<WorkerDeath>(&reply)) {
      const std::string printed = process_->take_output();
      process_.reset();
      const char* const step = opening_.spec.kind == AdapterKind::command ? "started" : "loaded";
      throw AdapterError(
          fmt::format("{}: {} while it was {}: {}{}{}", opening_.spec.given, verdict_name(death->verdict), step,
                      death->detail, printed.empty() ? "" : "; it printed: ", last_line(printed)),
          death->verdict);
    }
    MessageReader message(std::get<std::vector<std::byte>>(reply));
    OpenAnswer answer = read_open_answer(message);
    if (!answer.error.empty()) {
      const std::string printed = opening_.spec.kind == AdapterKind::command ? process_->take_output() : std::string();
      process_.reset();
      throw AdapterError(answer.error + (printed.empty() ? "" : "; it printed: " + last_line(printed)), answer.verdict);
    }
    return answer;
  }

  RunOutcome run(const RunOrder& order) override {
    if (!process_ && started_ > limits_.respawns) return SpentRunner(limits_.respawns).run(order);
    RunOutcome outcome;
    try {
      if (!process_) reopen();
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
        take_death(outcome);
        if (outcome.death == Verdict::pass && !outcome.answer.out_of_memory && !fits(outcome.answer, order)) {
          throw MessageError("the worker's answer does not fit the order");
        }
        if (outcome.answer.out_of_memory) {
          outcome.death = Verdict::error_memory;
          outcome.death_detail = "the worker could not allocate the buffers of the case";
        }
      }
    } catch (const AdapterError& error) {  // it opened before, and now it does not
      outcome.death = error.verdict();
      outcome.death_detail = error.what();
    } catch (const MessageError& error) {
      outcome.death = Verdict::error_protocol;
      outcome.death_detail = error.what();
    }
    if (outcome.death == Verdict::pass) {
      if (runtime_failed(outcome.answer)) retire();
      return outcome;
    }
    if (process_) add_call(outcome, order, process_->call_under_way());
    process_.reset();
    return outcome;
  }

 private:
  // A command is told that there is nothing more to do; a library's worker is ended as it is.
  void say_goodbye() {
    if (!process_ || opening_.spec.kind != AdapterKind::command) return;
    MessageWriter goodbye;
    write_close_order(goodbye);
    process_->part(goodbye.bytes());
  }

  void reopen() {
    const OpenAnswer answer = open(true);
    if (answer.probe != QKCTS_OK) process_.reset();
    require_usable_again(opening_.spec, answer);
  }

  static bool runtime_failed(const RunAnswer& answer) {
    return std::any_of(answer.executions.begin(), answer.executions.end(),
                       [](const Execution& execution) { return execution.status == QKCTS_INTERNAL; });
  }

  // A runtime that failed may have lost its device for the rest of the process: the next case is not to pay for it. The
  // adapter answered as it should, so this is none of the restarts that --respawns counts.
  void retire() {
    say_goodbye();
    process_.reset();
    --started_;
  }

  // Of plain calls there is nothing to say but what the death says itself.
  static void add_call(RunOutcome& outcome, const RunOrder& order, std::uint32_t call) {
    if (call >= order.calls.size() || outcome.death == Verdict::not_run) return;
    const Variant variant = order.calls[call].variant;
    if (variant != Variant::plain) outcome.death_detail += fmt::format(", in the call `{}`", variant_name(variant));
  }

  static std::string last_line(const std::string& text) {
    const std::size_t end = text.find_last_not_of('\n');
    if (end == std::string::npos) return {};
    const std::size_t start = text.rfind('\n', end);
    return text.substr(start == std::string::npos ? 0 : start + 1, end - (start == std::string::npos ? -1 : start));
  }

  Opening opening_;
  WorkerLimits limits_;
  int started_ = 0;
  std::unique_ptr<WorkerProcess> process_;
};

class InProcessRunner final : public AdapterRunner {
 public:
  explicit InProcessRunner(const AdapterSpec& spec) : opening_(spec) { std::fegetenv(&environment_); }

  OpenAnswer open(bool prepare) override {
    session_ = std::make_unique<AdapterSession>();
    OpenAnswer answer = [&] {
      const FloatingPointEnvironment host;
      std::fesetenv(&environment_);
      try {
        OpenAnswer said = session_->open(opening_.order(prepare));
        std::fegetenv(&environment_);
        return said;
      } catch (const std::exception& error) {
        throw AdapterError(fmt::format("{}: threw an exception: {}", opening_.spec.given, error.what()));
      } catch (...) {
        throw AdapterError(fmt::format("{}: threw an exception", opening_.spec.given));
      }
    }();
    if (!answer.error.empty()) throw AdapterError(answer.error, answer.verdict);
    return answer;
  }

  RunOutcome run(const RunOrder& order) override {
    RunOutcome outcome;
    try {
      if (!session_) reopen();
      {
        const FloatingPointEnvironment host;
        std::fesetenv(&environment_);
        outcome.answer = session_->run(order);
      }
      take_death(outcome);
      if (outcome.death != Verdict::pass) session_.reset();
      if (!outcome.answer.out_of_memory) return outcome;
      outcome.death = Verdict::error_memory;
      outcome.death_detail = "no memory for the buffers of the case";
    } catch (const AdapterError& error) {  // it opened before, and now it does not
      outcome.death = error.verdict();
      outcome.death_detail = error.what();
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
  void reopen() {
    const OpenAnswer answer = open(true);
    if (answer.probe != QKCTS_OK) session_.reset();
    require_usable_again(opening_.spec, answer);
  }

  Opening opening_;
  // Of the adapter: loading a library may change it for the whole process (gcc's crtfastmath sets FTZ and DAZ), which
  // is to reach its own calls and not the judge.
  std::fenv_t environment_{};
  std::unique_ptr<AdapterSession> session_;
};

std::unique_ptr<AdapterRunner> mutated(const AdapterSpec& spec, std::unique_ptr<AdapterRunner> runner) {
  return spec.wrong_contract.empty() ? std::move(runner) : with_wrong_contract(std::move(runner), spec.wrong_contract);
}

}  // namespace

std::unique_ptr<AdapterRunner> worker_runner(const AdapterSpec& spec, const WorkerLimits& limits) {
  return mutated(spec, std::make_unique<WorkerRunner>(spec, limits));
}

std::unique_ptr<AdapterRunner> spent_runner(int respawns) {
  return std::make_unique<SpentRunner>(respawns);
}

std::unique_ptr<AdapterRunner> in_process_runner(const AdapterSpec& spec) {
  return mutated(spec, std::make_unique<InProcessRunner>(spec));
}

}  // namespace qkcts
