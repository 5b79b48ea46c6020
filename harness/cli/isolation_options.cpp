// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/isolation_options.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>

namespace qkcts::cli {
namespace {

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// "2/4"
CaseShare share_from_text(const std::string& text) {
  constexpr std::uint32_t most = 10000;
  CaseShare share;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, share.index);
  const bool slash = index.ec == std::errc() && index.ptr != end && *index.ptr == '/';
  const auto count = slash ? std::from_chars(index.ptr + 1, end, share.count) : index;
  if (!slash || count.ec != std::errc() || count.ptr != end || share.index < 1 || share.index > share.count ||
      share.count > most)
    throw UsageError(fmt::format("--shard: '{}' is not I/N with 1 <= I <= N <= {}, as in --shard 2/4", text, most));
  return share;
}

}  // namespace

void add_isolation_options(CLI::App& command, IsolationArguments& given) {
  command.add_option("--timeout", given.timeout, "Seconds that one case may take in the worker")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  command
      .add_option("--cpu-time", given.processor_time, "Seconds of processor time for one case, all threads together")
      ->check(CLI::Range(0.1, 864000.0));
  command
      .add_option("--memory", given.memory_mib, "MiB that the worker may hold resident (default: 4/5 of the machine)")
      ->check(CLI::Range(1, 1 << 30));
  command
      .add_option("--address-space", given.address_space_mib,
                  "MiB of address space for the worker; devices and sanitizers reserve far more than they use")
      ->check(CLI::Range(1, 1 << 30));
  command
      .add_option("--respawns", given.respawns, "Fresh workers after crashes and timeouts; then nothing more is run")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command.add_option("--repeat", given.repeat, "Rounds per case; each is one end-aligned and one start-aligned call")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      .add_option("--variants", given.variants,
                  "Beside them: claimed layouts, the output alone, other batches (docs/adapter_abi.md)")
      ->check(CLI::IsMember({"none", "all"}))
      ->capture_default_str();
  command.add_option("--shard", given.shard, "Only every N-th case, from the I-th on")->type_name("I/N");
  command.add_option("--jobs", given.jobs, "Cases run side by side, each with a worker of its own")
      ->check(CLI::Range(1, 256))
      ->capture_default_str()
      ->type_name("N");
  command.add_flag("--in-process", given.in_process, "No worker process: for debuggers; a crash ends the program");
}

void apply_isolation(const IsolationArguments& given, RunRequest& request) {
  request.limits.timeout = milliseconds(given.timeout);
  request.limits.processor_time = milliseconds(given.processor_time);
  request.limits.resident_bytes = static_cast<std::size_t>(given.memory_mib) << 20;
  request.limits.address_space_bytes = static_cast<std::size_t>(given.address_space_mib) << 20;
  request.limits.respawns = given.respawns;
  request.options.repeat = given.repeat;
  request.options.variants = given.variants == "all" ? Variants::all : Variants::none;
  if (!given.shard.empty()) request.share = share_from_text(given.shard);
  if (given.jobs > 1 && given.in_process)
    throw UsageError(fmt::format(
        "--jobs {}: with --in-process everything runs in one process; leave one of the two out", given.jobs));
  request.jobs = given.jobs;
  request.isolation = given.in_process ? Isolation::in_process : Isolation::worker_process;
}

}  // namespace qkcts::cli
