// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <optional>

#include "conformance/file.hpp"
#include "harness/bench.hpp"
#include "harness/cli/arguments.hpp"
#include "harness/cli/colour.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/destination.hpp"
#include "harness/interruption.hpp"
#include "harness/usage_error.hpp"
#include "vectors/file_replacement.hpp"
#include "vectors/progress_line.hpp"

namespace qkcts::cli {
namespace {

struct BenchArguments {
  std::vector<std::string> words;  // adapters, then the corpus
  std::string case_glob = "*", stages = "output", output;
  int rounds = BenchRequest{}.rounds;
  double timeout = 60;
  bool json = false;
};

int run_bench(const BenchArguments& given) {
  if (given.words.size() < 2) throw UsageError("bench: an adapter and, behind all adapters, a corpus must be named");
  require_corpus_argument(given.words.back(), given.words.front());
  BenchRequest request;
  request.corpus_path = given.words.back();
  for (std::size_t i = 0; i + 1 < given.words.size(); ++i) request.adapters.push_back(resolve_adapter(given.words[i]));
  if (!given.output.empty()) {
    std::vector<std::string> inputs = {request.corpus_path};
    for (const AdapterSpec& adapter : request.adapters) inputs.push_back(adapter.path);
    require_destination(given.output, FileKind::bench, inputs);
    static_cast<void>(FileReplacement(given.output));  // what is wrong with the name is said before the work
  }
  request.case_glob = given.case_glob;
  request.stages = stages_from_text(given.stages);
  request.rounds = given.rounds;
  request.limits.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(given.timeout * 1000));
  catch_interruption();
  std::optional<ProgressLine> bar;
  if (is_capable_terminal(stderr)) bar.emplace("timed", stderr);
  const BenchResult result = bench(request, [&](std::size_t done, std::size_t all, const std::string& slug) {
    if (bar) bar->update(done, all, static_cast<double>(done) / static_cast<double>(all), slug);
  });
  if (bar) bar->clear();
  if (result.cases.empty() && result.interrupted_by == 0) {
    fmt::print(stderr, "qkcts: {}; nothing was run\n", no_case_text(given.words.back(), given.case_glob));
    return bench_exit_code(result);
  }
  const std::string text =
      given.json ? bench_json(result).dump(1, ' ', false, Json::error_handler_t::replace) + "\n" : bench_text(result);
  if (given.output.empty()) {
    fmt::print("{}", text);
  } else {
    write_file_atomically(given.output, text);
  }
  return bench_exit_code(result);
}

}  // namespace

void add_bench(CLI::App& app, Command& command) {
  CLI::App* const sub = app.add_subcommand("bench", "Error and time of adapters on the same cases, side by side");
  auto given = std::make_shared<BenchArguments>();
  sub->add_option("ADAPTER", given->words, "Adapters as `qkcts run` takes them, then the corpus (.h5)")
      ->required()
      ->option_text("... FILE");
  sub->add_option("--case", given->case_glob, "Only cases whose name matches this glob")->type_name("GLOB");
  sub->add_option("--stages", given->stages, "Stages asked for; what a fused kernel must write costs it time")
      ->type_name("LIST")
      ->capture_default_str();
  sub->add_option("--rounds", given->rounds, "Times that each adapter runs each case, one adapter after the other")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  sub->add_option("--timeout", given->timeout, "Seconds that one case may take in the worker")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  sub->add_flag("--json", given->json, "As the schema bench.schema.json says, with every case");
  sub->add_option("-o,--output", given->output, "File to write instead of the standard output")->type_name("FILE");
  sub->footer(
      "Example: qkcts bench scalar avx2 ./libmine.so core.h5 --case 'qwen3_rmsnorm/*'\n"
      "Times are ratios to the first adapter; milliseconds stand only beside a device of its own.\n"
      "Exit code: 0 every adapter conforms, 1 one does not, 4 one cannot be run, 5 nothing was run");
  sub->callback([given, &command] { command = [given] { return run_bench(*given); }; });
}

}  // namespace qkcts::cli
