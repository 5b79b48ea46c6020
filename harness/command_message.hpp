// SPDX-License-Identifier: Apache-2.0
// What host and command say to each other: one JSON object a line. docs/adapter_abi.md, "Command adapters".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/json.hpp"
#include "harness/exchange_results.hpp"

namespace qkcts {

constexpr int command_protocol = 1;

// Lines of the host. `hello` names the version of the protocol, `run` the two files; `stop` has no reply.
std::string hello_line(int seq);
std::string describe_line(int seq);
std::string run_line(int seq, const std::string& request, const std::string& result);
std::string stop_line(int seq);

struct CommandReply {
  std::uint32_t status = 0;  // a qkcts_status
  std::string message;       // why, if the status is another than QKCTS_OK
  Json description;          // of describe
};

enum class ReplyTo : std::uint8_t { hello, describe, run };

// Throws InputError "ORIGIN: what is wrong"; under Strictness::everything also where the line breaks
// adapter_protocol.schema.json in what does not matter.
CommandReply read_reply(std::string_view line, int seq, ReplyTo order, Strictness strictness, std::string_view origin);

}  // namespace qkcts
