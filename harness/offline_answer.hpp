// SPDX-License-Identifier: Apache-2.0
// Any adapter over a file of requests: on the machine that has the device, without a corpus.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "harness/adapter_runner.hpp"

namespace qkcts {

struct AnswerRequest {
  AdapterSpec adapter;
  std::string requests, results;
  std::string case_glob = "*";
  WorkerLimits limits;
};

struct AnswerCounts {
  std::size_t answered = 0;     // outputs are in the file
  std::size_t unsupported = 0;  // declared so: left out
  std::size_t failed = 0;       // how it ended is in the file
  std::string unavailable;      // the reason, if probe() says no; then nothing is written
};

// `failed` hears of each case that ended otherwise than well. Throws InputError, AdapterError, WriteError.
using ToldOfFailure = std::function<void(const std::string& slug, const std::string& why)>;
AnswerCounts answer_requests(const AnswerRequest& request, const ToldOfFailure& told);

}  // namespace qkcts
