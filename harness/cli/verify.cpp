// SPDX-License-Identifier: Apache-2.0
#include "vectors/verify.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "harness/cli/commands.hpp"
#include "harness/value_text.hpp"
#include "vectors/progress_line.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts::cli {
namespace {

int verify(const std::string& file, const VerifyOptions& given) {
  check_untrusted_corpus(file);
  VerifyReport report;
  {
    ProgressLine line("verified", stderr);
    VerifyOptions options = given;
    options.progress = [&line](std::size_t done, std::size_t all, const std::string& slug) {
      line.update(done, all, static_cast<double>(done) / static_cast<double>(all), slug);
    };
    report = verify_corpus(file, options);
  }
  fmt::print("{}: {}, {} recomputed, {}\n", file,
             counted(report.cases, "case whose digest matches", "cases whose digests match"), report.recomputed,
             counted(report.mismatches.size(), "differs", "differ"));
  for (const VerifyMismatch& mismatch : report.mismatches)
    fmt::print(stderr, "qkcts: {}: {}\n", mismatch.slug, mismatch.what);
  return report.mismatches.empty() ? 0 : 1;
}

}  // namespace

void add_verify(CLI::App& app, Command& command) {
  struct Arguments {
    std::string file;
    VerifyOptions options;
    bool all = false;
  };
  auto arguments = std::make_shared<Arguments>();
  arguments->options.jobs = std::max(1U, std::thread::hardware_concurrency());
  CLI::App* verify_app = app.add_subcommand("verify", "Check the digests of a corpus and recompute its evidence");
  verify_app->add_option("file", arguments->file, "Corpus")->required();
  CLI::Option* sample = verify_app->add_option("--sample", arguments->options.sample,
                                               "Per cent of the cases to recompute (default 1, at least one case)");
  sample->check(CLI::Range(0.0, 100.0));
  verify_app->add_flag("--all", arguments->all, "Recompute every case")->excludes(sample);
  verify_app
      ->add_option("--tier", arguments->options.tier,
                   "mpfr: by intervals (the default), apart from the arithmetic that wrote the file; auto: as "
                   "`generate` does, quicker")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Tier>{{"auto", Tier::automatic}, {"mpfr", Tier::mpfr}},
                                          CLI::ignore_case)
                      .description("{auto,mpfr}"));
  verify_app->add_option("--jobs", arguments->options.jobs, "Threads")->check(CLI::Range(1U, 1024U));
  verify_app->footer(
      "Example:\n  qkcts verify core.h5 --all --tier auto\nExit code 1: some evidence came out differently.");
  verify_app->callback([arguments, &command] {
    if (arguments->all) arguments->options.sample = 100;
    command = [arguments] { return verify(arguments->file, arguments->options); };
  });
}

}  // namespace qkcts::cli
