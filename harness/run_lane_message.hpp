// SPDX-License-Identifier: Apache-2.0
// What the run's own process and a lane (run_lanes.hpp) say to each other. A result travels as it stands in run.json,
// so that nothing else can be in a report of a run with lanes than in one that is read back.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "harness/message.hpp"
#include "harness/run_lanes.hpp"

namespace qkcts {

// Each message travels as its length (8 bytes) and its bytes. False, or nothing, once the other end is closed.
bool send_to_lane(int conversation, std::span<const std::byte> message);
std::optional<std::vector<std::byte>> receive_from_lane(int conversation);
// The same in a lane, where a signal that ends the run ends the wait for an order.
std::optional<std::vector<std::byte>> receive_order(int conversation);

void write(MessageWriter& message, const LaneBeginning& beginning);
void write(MessageWriter& message, const LaneOrder& order);
LaneBeginning read_lane_beginning(MessageReader& message);
LaneOrder read_lane_order(MessageReader& message);

void write(MessageWriter& message, const RanCase& ran);
void write_bad_input(MessageWriter& message, std::string_view what);
void write_failure(MessageWriter& message, std::string_view what);
// Throws what write_bad_input() and write_failure() say: InputError, std::runtime_error.
RanCase read_ran_case(MessageReader& message);

}  // namespace qkcts
