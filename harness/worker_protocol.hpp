// SPDX-License-Identifier: Apache-2.0
// What host and worker say to each other. Every message travels as its length (8 bytes) and its bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/batch_arrangement.hpp"
#include "harness/exchange_results.hpp"
#include "harness/execution.hpp"
#include "harness/message.hpp"

namespace qkcts {

// The worker program is this program, started again with this one argument; file descriptor 3 is the conversation,
// 4 the memory of the FaultRecord.
inline constexpr const char* worker_argument = "worker-process";
inline constexpr int worker_conversation = 3;
inline constexpr int worker_fault_memory = 4;
inline constexpr std::uint64_t longest_message = std::uint64_t{1} << 32;

enum class Order : std::uint32_t { open = 1, run = 2, close = 3 };

enum class AdapterKind : std::uint8_t {
  library,
  command,  // docs/adapter_abi.md, "Command adapters"
  results,  // a file of results, in place of what computed them
};
std::string_view adapter_kind_name(AdapterKind kind);
std::optional<AdapterKind> adapter_kind_named(std::string_view name);

struct OpenOrder {
  std::string path;     // of the library, or of the command's program
  std::string options;  // of the library, or the whole command
  bool prepare = true;  // false: only describe and probe
  AdapterKind kind = AdapterKind::library;
  std::string folder = {};  // of a command: for request and result files
  Strictness strictness = Strictness::what_matters;
};

struct OpenAnswer {
  std::string error;                // not empty: the adapter cannot be run, and why
  Verdict verdict = Verdict::pass;  // then that of a case which needs it
  std::string description;
  std::uint32_t probe = QKCTS_OK;  // qkcts_status
  std::string probe_reason;
};

struct RunOrder {
  ExecutionRequest request;
  std::vector<Call> calls;  // in this order
  std::string slug = {};    // stays with the host: an adapter is not told which case it computes
};

// Outputs of a later execution are left empty where they are those of the first, bit for bit, or each of its entries is
// that entry of the first.
struct RunAnswer {
  bool out_of_memory = false;  // of the worker itself
  std::vector<Execution> executions;
  std::vector<bool> same_as_first;
  Verdict death = Verdict::pass;  // else how a command ended; then there are no executions, and the worker is spent
  std::string death_detail = {};
};

// Does the answer hold what was ordered: one execution per call, and outputs of the right size where it ended
// well? A worker whose memory was overwritten may answer anything.
bool fits(const RunAnswer& answer, const RunOrder& order);

void write(MessageWriter& message, const OpenOrder& order);
void write(MessageWriter& message, const OpenAnswer& answer);
void write(MessageWriter& message, const RunOrder& order);
void write_close_order(MessageWriter& message);
void write(MessageWriter& message, const RunAnswer& answer);
OpenOrder read_open_order(MessageReader& message);
OpenAnswer read_open_answer(MessageReader& message);
RunOrder read_run_order(MessageReader& message);
RunAnswer read_run_answer(MessageReader& message);

}  // namespace qkcts
