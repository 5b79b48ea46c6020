// SPDX-License-Identifier: Apache-2.0
#include "harness/command_message.hpp"

#include <fmt/format.h>

#include "conformance/contract.hpp"
#include "conformance/json_schema.hpp"
#include "harness/status_name.hpp"

namespace qkcts {
namespace {

std::string text_of(const Json& reply, const char* key, std::string_view origin) {
  if (!reply.contains(key)) return {};
  if (!reply.at(key).is_string()) throw InputError(fmt::format("{}: {} is no text", origin, key));
  return reply.at(key).get<std::string>();
}

}  // namespace

std::string hello_line(int seq) {
  return Json{{"seq", seq}, {"do", "hello"}, {"protocol", command_protocol}}.dump();
}

std::string describe_line(int seq) {
  return Json{{"seq", seq}, {"do", "describe"}}.dump();
}

std::string run_line(int seq, const std::string& request, const std::string& result) {
  return Json{{"seq", seq}, {"do", "run"}, {"request", request}, {"result", result}}.dump();
}

std::string stop_line(int seq) {
  return Json{{"seq", seq}, {"do", "stop"}}.dump();
}

CommandReply read_reply(std::string_view line, int seq, ReplyTo order, Strictness strictness, std::string_view origin) {
  const Json reply = parse_json(line, origin);
  if (!reply.is_object()) throw InputError(fmt::format("{}: is no JSON object", origin));
  if (!reply.contains("seq") || !reply.at("seq").is_number_integer())
    throw InputError(fmt::format("{}: seq is missing, or no integer", origin));
  if (reply.at("seq") != seq)
    throw InputError(fmt::format("{}: answers seq {}, but {} is due", origin, reply.at("seq").dump(), seq));
  CommandReply result;
  const std::string status = text_of(reply, "status", origin);
  const std::optional<std::uint32_t> number = status_named(status);
  if (!number) throw InputError(fmt::format("{}: status is missing, or none of the protocol", origin));
  result.status = *number;
  result.message = text_of(reply, "message", origin);
  if (order == ReplyTo::hello && (!reply.contains("protocol") || reply.at("protocol") != command_protocol))
    throw InputError(fmt::format("{}: protocol is not {}", origin, command_protocol));
  if (order == ReplyTo::describe) {
    if (!reply.contains("description") || !reply.at("description").is_object())
      throw InputError(fmt::format("{}: description is missing, or no object", origin));
    result.description = reply.at("description");
  }
  if (strictness == Strictness::everything) require_schema(reply, "adapter_protocol", origin);
  return result;
}

}  // namespace qkcts
