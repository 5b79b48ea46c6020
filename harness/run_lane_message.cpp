// SPDX-License-Identifier: Apache-2.0
#include "harness/run_lane_message.hpp"

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include <sys/socket.h>

#include "harness/interruption.hpp"
#include "harness/run_json_parts.hpp"

namespace qkcts {
namespace {

enum class Answer : std::uint8_t { ran, bad_input, failure };

bool send_all(int conversation, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(conversation, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

enum class Signals : std::uint8_t { wait_on, end_the_wait };

bool receive_all(int conversation, std::span<std::byte> bytes, Signals signals) {
  while (!bytes.empty()) {
    if (signals == Signals::end_the_wait && interruption() != 0) return false;
    const ssize_t got = recv(conversation, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

std::optional<std::vector<std::byte>> receive(int conversation, Signals signals) {
  std::uint64_t length = 0;
  if (!receive_all(conversation, std::as_writable_bytes(std::span(&length, 1)), signals)) return std::nullopt;
  std::vector<std::byte> message(length);
  if (!receive_all(conversation, message, signals)) return std::nullopt;
  return message;
}

void put_json(MessageWriter& message, const Json& json) {
  message.put_text(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

bool send_to_lane(int conversation, std::span<const std::byte> message) {
  const std::uint64_t length = message.size();
  return send_all(conversation, std::as_bytes(std::span(&length, 1))) && send_all(conversation, message);
}

std::optional<std::vector<std::byte>> receive_from_lane(int conversation) {
  return receive(conversation, Signals::wait_on);
}

std::optional<std::vector<std::byte>> receive_order(int conversation) {
  return receive(conversation, Signals::end_the_wait);
}

void write(MessageWriter& message, const LaneBeginning& beginning) {
  message.put_text(beginning.description);
  message.put(static_cast<std::uint8_t>(beginning.plain));
  message.put_text(beginning.corpus_digest);
  message.put(beginning.beside);
}

LaneBeginning read_lane_beginning(MessageReader& message) {
  LaneBeginning beginning;
  beginning.description = message.get_text();
  beginning.plain = message.get_flag();
  beginning.corpus_digest = message.get_text();
  beginning.beside = message.get<int>();
  return beginning;
}

void write(MessageWriter& message, const LaneOrder& order) {
  message.put_text(order.slug);
  message.put(order.outputs);
}

LaneOrder read_lane_order(MessageReader& message) {
  std::string slug = message.get_text();
  return {std::move(slug), message.get<Outputs>()};
}

void write(MessageWriter& message, const RanCase& ran) {
  message.put(Answer::ran);
  put_json(message, case_json(ran.result));
  // Beside the case, as in run.json; which of them stay is decided where all cases are known.
  RunRecord alone;
  CaseResult result = ran.result;
  keep_worst_heat(alone, result);
  message.put(static_cast<std::uint64_t>(alone.heat_maps.size()));
  for (const StageHeat& heat : alone.heat_maps) put_json(message, heat_json(heat));
  message.put_text(ran.contract);
  message.put(static_cast<std::uint8_t>(ran.worker_died));
  message.put(static_cast<std::uint8_t>(ran.outputs.filled));
  message.put(ran.outputs.restless);
  for (const std::vector<std::byte>& stage : ran.outputs.outputs) message.put_bytes(stage);
}

void write_bad_input(MessageWriter& message, std::string_view what) {
  message.put(Answer::bad_input);
  message.put_text(what);
}

void write_failure(MessageWriter& message, std::string_view what) {
  message.put(Answer::failure);
  message.put_text(what);
}

RanCase read_ran_case(MessageReader& message) {
  switch (message.get<Answer>()) {
    case Answer::ran:
      break;
    case Answer::bad_input:
      throw InputError(message.get_text());
    default:
      throw std::runtime_error(message.get_text());
  }
  constexpr const char* origin = "a lane of --jobs";
  RanCase ran;
  ran.result = case_from_json(JsonAt(parse_json(message.get_text(), origin), origin));
  for (auto left = message.get<std::uint64_t>(); left > 0; --left) {
    StageHeat heat = heat_from_json(JsonAt(parse_json(message.get_text(), origin), origin));
    for (StageResult& stage : ran.result.stages)
      if (stage.stage == heat.stage && stage.judgement) stage.judgement->heat = std::move(heat.map);
  }
  ran.contract = message.get_text();
  ran.worker_died = message.get_flag();
  ran.outputs.filled = message.get_flag();
  ran.outputs.restless = message.get<StageSet>();
  for (std::vector<std::byte>& stage : ran.outputs.outputs) stage = message.get_bytes();
  return ran;
}

}  // namespace qkcts
