// SPDX-License-Identifier: Apache-2.0
#include "harness/run_lane.hpp"

#include <exception>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "conformance/json.hpp"
#include "harness/run_lane_message.hpp"

namespace qkcts {
namespace {

// What the workers of all lanes may use together is that of one; how many may die is counted where all are known.
RunRequest request_of_lane(const RunRequest& request, int beside) {
  RunRequest own = request;
  own.limits.beside = beside;
  own.limits.respawns = std::numeric_limits<int>::max();
  return own;
}

}  // namespace

void work_in_lane(const RunRequest& request, int conversation) {
  const auto first = receive_order(conversation);
  if (!first) return;
  MessageReader reader(*first);
  const LaneBeginning beginning = read_lane_beginning(reader);
  const RunRequest own = request_of_lane(request, beginning.beside);
  const AdapterDescription description = described(own, beginning.description);
  std::optional<PlainEvaluation> plain;
  std::optional<CorpusReader> corpus;
  std::optional<CaseRunner> cases;
  while (const auto bytes = receive_order(conversation)) {
    MessageReader message(*bytes);
    const LaneOrder order = read_lane_order(message);
    MessageWriter answer;
    try {
      if (!cases) {
        if (beginning.plain) plain.emplace();
        corpus.emplace(own.corpus_path);
        if (corpus->info().digest != beginning.corpus_digest)
          throw InputError(fmt::format("{}: was changed while the run began", own.corpus_path));
        cases.emplace(own, *corpus, description, adapter_runner(own), plain ? &*plain : nullptr);
      }
      write(answer, cases->run(order.slug, order.outputs));
    } catch (const InputError& error) {
      answer = {};
      write_bad_input(answer, error.what());
    } catch (const std::exception& error) {
      answer = {};
      write_failure(answer, error.what());
    }
    if (!send_to_lane(conversation, answer.bytes())) return;
  }
}

}  // namespace qkcts
