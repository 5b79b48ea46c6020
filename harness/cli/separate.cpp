// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/separate.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "harness/cli/arguments.hpp"
#include "harness/cli/destination.hpp"
#include "harness/usage_error.hpp"
#include "vectors/corpus_writer.hpp"
#include "vectors/plan.hpp"
#include "vectors/progress_line.hpp"
#include "vectors/separation_search.hpp"

namespace qkcts::cli {
namespace {

std::string single(const std::vector<std::string>& values, const char* flag, const std::string& otherwise) {
  if (values.size() > 1) throw UsageError(fmt::format("--separate takes one {}", flag));
  return values.empty() ? otherwise : values.front();
}

SeparationSearch search_of(const SeparateArguments& arguments) {
  SeparationSearch search;
  search.own = load_contract(arguments.contracts[0]);
  search.other = load_contract(arguments.contracts[1]);
  search.family = single(arguments.families, "--family", "gaussian");
  const std::string format = single(arguments.formats, "--format", "binary32");
  search.format = plan_format(format).value();  // one of those that --format takes
  const std::string shape = single(arguments.shapes, "--shape", "1,2,1,4,6,16,8");
  try {
    search.shape = shape_from_text(shape);
  } catch (const InputError& error) {
    throw UsageError(error.what());
  }
  search.seed = arguments.seed;
  search.steps = arguments.steps;
  if (!arguments.stage.empty()) search.stage = stage_from_text(arguments.stage);
  if (const std::string profile = single(arguments.profiles, "--profile", ""); !profile.empty()) {
    search.profile = load_profile(profile);
    if (search.profile->profile.storage != search.format)
      throw UsageError(fmt::format("profile {} judges {}, not {}", search.profile->profile.name,
                                   parameters(search.profile->profile.storage).name, format));
  }
  return search;
}

void print_step(const SearchStep& step) {
  fmt::print("  step {:>5}  separation {:>10.4g}  in {:<7} {}\n", step.step, step.separation, stage_name(step.stage),
             step.change.empty() ? "start" : step.change);
}

// The first and the last, and between them those that raised the separation by half or more.
void print_trajectory(const std::vector<SearchStep>& steps) {
  double shown = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i != 0 && i + 1 != steps.size() && steps[i].separation < 1.5 * shown) continue;
    print_step(steps[i]);
    shown = steps[i].separation;
  }
}

}  // namespace

void add_separate_options(CLI::App& generate_app, SeparateArguments& arguments) {
  CLI::Option* separate =
      generate_app
          .add_option(
              "--separate", arguments.contracts,
              "Two contracts that take the same inputs, in place of a plan: search for the inputs that tell the "
              "first from the second most surely, and write them as one case")
          ->expected(2);
  generate_app
      .add_option("--steps", arguments.steps, "Of the search (default 200); the same seed and steps give the same file")
      ->needs(separate);
  generate_app
      .add_option("--budget", arguments.seconds, "Seconds after which the search stops, wherever it is by then")
      ->needs(separate)
      ->check(CLI::PositiveNumber);
  generate_app.add_option("--stage", arguments.stage, "The stage that has to tell the two apart (default: any)")
      ->needs(separate);
}

int separate(const SeparateArguments& arguments) {
  const SeparationSearch search = search_of(arguments);
  require_destination(arguments.output, FileKind::corpus, arguments.contracts);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  SearchResult result =
      search_separation(search, [&] { return arguments.seconds > 0 && elapsed() > arguments.seconds; });
  CorpusWriter writer(arguments.output, {"separating", fmt::format("qkcts {}", QKCTS_VERSION), search.seed});
  writer.add(result.golden);
  const std::string digest = writer.finish();
  fmt::print("{} from {}, {}, profile {}\n", search.own.name, search.other.name, parameters(search.format).name,
             result.golden.profiles.front());
  print_trajectory(result.improvements);
  fmt::print("{} improvements in {} steps, {} of them without a value, proof or judge; {:.1f} s\n",
             result.improvements.size() - 1, search.steps, result.refused, elapsed());
  if (result.improvements.back().separation <= 1)
    fmt::print("not above 1: a kernel that is right for {} may pass this case\n", search.other.name);
  fmt::print("{}: {}\ndigest {}\n", arguments.output, result.golden.input.slug, digest);
  return 0;
}

}  // namespace qkcts::cli
