// SPDX-License-Identifier: Apache-2.0
// The failing cases of an earlier run, diagnosed: the adapter is run again on them, or the results of `check` are read
// again.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

#include "conformance/file.hpp"
#include "conformance/json_schema.hpp"
#include "harness/adapter_digest.hpp"
#include "harness/cli/arguments.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/run.hpp"
#include "harness/file_kind.hpp"
#include "harness/interruption.hpp"
#include "harness/value_text.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts::cli {
namespace {

struct DiagnoseArguments {
  std::string run;
  DiagnoseOptions options;
};

RunRequest request_from(const Json& run) {
  const Json& options = run.at("options");
  if (options.at("relations_only").get<bool>())
    throw InputError("/options/relations_only: no value was judged in this run; run it without --relations-only");
  RunRequest request;
  const std::string given = run.at("adapter").at("given").get<std::string>();
  const std::optional<AdapterKind> kind = adapter_kind_named(run.at("adapter").at("kind").get<std::string>());
  if (kind == AdapterKind::results) {  // of `check`: what was written stands in that file, and no adapter is run
    request.adapter.given = given;
    request.adapter.path = run.at("adapter").at("path").get<std::string>();
    request.adapter.kind = *kind;
  } else {
    request.adapter = resolve_adapter(given);
  }
  request.corpus_path = run.at("corpus").at("path").get<std::string>();
  if (options.at("profile").is_string()) request.options.profile = options.at("profile").get<std::string>();
  if (options.at("stages").is_string())
    request.options.stages = stages_from_text(options.at("stages").get<std::string>());
  request.limits.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.at("timeout_seconds").get<double>() * 1000));
  request.command = command_line();
  request.suite_version = QKCTS_VERSION;
  return request;
}

// As much of the record as a diagnosis and its texts need.
RunRecord record_from(const Json& run, const RunRequest& request) {
  RunRecord record;
  record.suite_version = request.suite_version;
  record.adapter = request.adapter;
  record.corpus_path = request.corpus_path;
  record.corpus_suite = run.at("corpus").at("suite").get<std::string>();
  record.description.name = run.at("adapter").at("description").at("name").get<std::string>();
  record.description.version = run.at("adapter").at("description").at("version").get<std::string>();
  const Json& stages = run.at("options").at("stages");
  if (stages.is_string()) record.stages_asked = stages.get<std::string>();
  for (const Json& one : run.at("cases")) {
    CaseResult& result = record.cases.emplace_back();
    result.slug = one.at("case").get<std::string>();
    result.contract = one.at("contract").get<std::string>();
    result.verdict = verdict_named(one.at("verdict").get<std::string>()).value();
  }
  return record;
}

void require_same_corpus(const Json& run, const std::string& path) {
  check_untrusted_corpus(path);
  const std::string now = CorpusReader(path).info().digest, then = run.at("corpus").at("digest").get<std::string>();
  if (now != then)
    throw InputError(fmt::format("{}: digest {:.12}..., but the run was made on {:.12}...; run it again on this file",
                                 path, now, then));
}

int diagnose_run(const DiagnoseArguments& given) {
  require_kind(given.run, FileKind::run);
  const Json run = parse_json(read_text_file(given.run), given.run);
  require_schema(run, "run", given.run);
  RunRequest request = request_from(run);
  require_same_corpus(run, request.corpus_path);
  RunRecord record = record_from(run, request);
  if (!given.options.bundle.empty()) make_report_folder(given.options.bundle);
  if (adapter_digest(request.adapter) != run.at("adapter").at("sha256").get<std::string>())
    fmt::print("warning: {} has changed since that run; what follows is about the file as it is now\n\n",
               request.adapter.path);
  const auto failing = [&] {
    return std::any_of(record.cases.begin(), record.cases.end(),
                       [](const CaseResult& result) { return violates(result.verdict); });
  };
  if (!failing()) {
    fmt::print("No case of this run failed: there is nothing to diagnose.\n");
    return 0;
  }
  catch_interruption();
  diagnose_and_print(request, record, given.options);
  if (interruption() != 0) return 128 + interruption();
  return record.diagnosis->cases.empty() ? 5 : 0;
}

}  // namespace

void add_diagnose(CLI::App& app, Command& command) {
  CLI::App* const sub =
      app.add_subcommand("diagnose", "Say what the failing cases of a run compute instead (docs/diagnosis.md)");
  auto given = std::make_shared<DiagnoseArguments>();
  sub->add_option(
         "RUN", given->run,
         "run.json of `qkcts run -o` or `check -o`; the adapter, or the results, and the corpus must still be there")
      ->required();
  sub->add_option("--case", given->options.case_glob, "Only failing cases whose name matches this glob")
      ->type_name("GLOB");
  sub->add_option("--cases", given->options.cases, "So many of them, different contracts first; 0: all")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  sub->add_option("--bundle", given->options.bundle, "Folder for a small reproducer of each case that is diagnosed")
      ->type_name("DIR");
  sub->footer(
      "Example: qkcts diagnose report/run.json --case 'qwen3_rmsnorm/*' --bundle repro\n"
      "Exit code: 0 done, 3 another corpus than that of the run, 4 the adapter cannot be run, 5 no failing case "
      "matches,\n"
      "or the device is not there");
  sub->callback([given, &command] { command = [given] { return diagnose_run(*given); }; });
}

}  // namespace qkcts::cli
