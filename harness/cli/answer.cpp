// SPDX-License-Identifier: Apache-2.0
// An adapter over exported requests, without the corpus and without a verdict.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "harness/cli/arguments.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/destination.hpp"
#include "harness/exchange_requests.hpp"
#include "harness/interruption.hpp"
#include "harness/offline_answer.hpp"

namespace qkcts::cli {
namespace {

struct AnswerArguments {
  std::string adapter;
  AnswerRequest request;
  double timeout = 60;
  int memory_mib = 0;
  bool strict_protocol = false;
};

int answer(const AnswerArguments& given) {
  AnswerRequest request = given.request;
  request.adapter = resolve_adapter(given.adapter);
  require_destination(request.results, FileKind::results, {request.requests, request.adapter.path});
  require_kind(request.requests, FileKind::requests);
  if (given.strict_protocol) request.adapter.strictness = Strictness::everything;
  request.limits.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(given.timeout * 1000));
  request.limits.resident_bytes = static_cast<std::size_t>(given.memory_mib) << 20;
  catch_interruption();
  const AnswerCounts counts = answer_requests(
      request, [](const std::string& slug, const std::string& why) { fmt::print(stderr, "{}: {}\n", slug, why); });
  if (!counts.unavailable.empty()) {
    fmt::print(stderr, "qkcts: {} is not usable here: {}; nothing was written\n", given.adapter, counts.unavailable);
    return 5;
  }
  const bool empty = counts.answered + counts.failed == 0;
  if (empty && counts.unsupported == 0 && interruption() == 0)
    if (const std::string why = no_case_text(RequestReader(request.requests).slugs(), request.case_glob);
        !why.empty()) {
      fmt::print(stderr, "qkcts: {}; nothing was written\n", why);
      return 5;
    }
  fmt::print("{}: {} answered, {} declared unsupported and left out, {} failed{}\n", request.results, counts.answered,
             counts.unsupported, counts.failed, empty ? "; nothing was written" : "");
  if (interruption() != 0) return 128 + interruption();
  return empty ? 5 : 0;
}

}  // namespace

void add_answer(CLI::App& app, Command& command) {
  CLI::App* const sub = app.add_subcommand("answer", "Run an adapter on exported requests; `qkcts check` judges later");
  auto given = std::make_shared<AnswerArguments>();
  sub->add_option("ADAPTER", given->adapter, "As for `qkcts run`")->required();
  sub->add_option("REQUESTS", given->request.requests, "File that `qkcts export` wrote")->required();
  sub->add_option("--case", given->request.case_glob, "Only cases whose name matches this glob")->type_name("GLOB");
  sub->add_option("--timeout", given->timeout, "Seconds that one case may take in the worker")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  sub->add_option("--memory", given->memory_mib, "MiB that the worker may hold resident (default: 4/5 of the machine)")
      ->check(CLI::Range(1, 1 << 30));
  sub->add_flag("--strict-protocol", given->strict_protocol, "As for `qkcts run`");
  sub->add_option("-o,--output", given->request.results, "File of results")->required()->type_name("FILE");
  sub->footer(
      "Example: qkcts answer cuda requests.h5 -o results.h5\n"
      "Exit code: 0 results were written, whatever they are; 4 the adapter cannot be run, 5 nothing was run");
  sub->callback([given, &command] { command = [given] { return answer(*given); }; });
}

}  // namespace qkcts::cli
