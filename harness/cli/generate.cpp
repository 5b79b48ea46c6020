// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "conformance/json.hpp"
#include "harness/cli/commands.hpp"
#include "harness/usage_error.hpp"
#include "harness/value_text.hpp"
#include "vectors/generate.hpp"
#include "vectors/input_family.hpp"
#include "vectors/progress_line.hpp"

namespace qkcts::cli {
namespace {

constexpr double absurd_bytes = 64e9, absurd_seconds = 48 * 3600;
constexpr std::size_t most_listed = 20;

struct GenerateArguments {
  std::string plan;
  std::string output;
  std::vector<std::string> contracts, families, formats, shapes, profiles;
  std::vector<double> eps;
  std::uint64_t seed = 0;
  std::uint32_t rows = 0;
  bool has_seed = false;
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  bool estimate_only = false;
  Tier tier = Tier::automatic;
};

// The model's heads at lengths that differ, or a small shape in which all extents differ.
std::string ordinary_shape(const Contract& contract) {
  const qkcts_shape& model = contract.model_shape;
  if (model.q_heads == 0 || model.kv_heads == 0 || model.head_dim == 0) return "2,4,2,7,13,24,20";
  return fmt::format("1,{},{},6,9,{},{}", model.q_heads, model.kv_heads, model.head_dim, model.head_dim);
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const InputFamily& family : input_families()) names.emplace_back(family.name);
  return names;
}

// Globs stand for the names that they match; anything else for itself.
std::vector<std::string> expanded(const std::vector<std::string>& given, const std::vector<std::string>& known) {
  std::vector<std::string> names;
  for (const std::string& word : given) {
    const std::size_t before = names.size();
    for (const std::string& name : known)
      if (::fnmatch(word.c_str(), name.c_str(), 0) == 0) names.push_back(name);
    if (names.size() == before) names.push_back(word);
  }
  return names;
}

Plan plan_of(const GenerateArguments& arguments) {
  const PlanOverrides overrides{arguments.has_seed, arguments.seed, arguments.plan.empty()};
  if (!arguments.plan.empty()) return load_plan(arguments.plan, overrides);
  Json groups = Json::array();
  std::vector<std::string> names = shipped_contracts();
  for (const std::string& name : model_contracts()) names.push_back(name);
  for (const std::string& name : expanded(arguments.contracts, names)) {
    const std::string shape = ordinary_shape(load_contract(name));
    Json group = {{"contracts", {name}}, {"rows", arguments.rows}};
    group["families"] = arguments.families.empty() ? std::vector<std::string>{"gaussian"}
                                                   : expanded(arguments.families, family_names());
    group["formats"] = arguments.formats.empty() ? std::vector<std::string>{"binary32"} : arguments.formats;
    group["shapes"] = arguments.shapes.empty() ? std::vector<std::string>{shape} : arguments.shapes;
    if (!arguments.eps.empty()) group["eps"] = arguments.eps;
    groups.push_back(group);
  }
  const Json plan = {{"schema", "qkcts-plan/1"}, {"suite", "custom"}, {"seed", arguments.seed}, {"groups", groups}};
  // The contracts are loaded: what is wrong now stands on the command line.
  try {
    return plan_from_json(plan.dump(), "command line", overrides);
  } catch (const InputError& error) {
    throw UsageError(error.what());
  }
}

struct Estimate {
  double seconds = 0, bytes = 0;
};

Estimate estimate_of(const Plan& plan, unsigned jobs) {
  Estimate estimate;
  for (const PlannedCase& planned : plan.cases) {
    estimate.seconds += estimated_seconds(planned) / jobs;
    estimate.bytes += estimated_bytes(planned);
  }
  return estimate;
}

template <class Item, class Text>
void list_items(const std::vector<Item>& items, const Text& text) {
  for (std::size_t i = 0; i < std::min(items.size(), most_listed); ++i)
    fmt::print(stderr, "qkcts: {}\n", text(items[i]));
  if (items.size() > most_listed) fmt::print(stderr, "qkcts: ... and {} more\n", items.size() - most_listed);
}

int generate(const GenerateArguments& arguments) {
  Plan plan = plan_of(arguments);
  for (const std::string& name : arguments.profiles) add_profile(plan, load_profile(name));
  const Estimate estimate = estimate_of(plan, arguments.jobs);
  const std::string outlook = fmt::format("{}, about {} on {}, at most about {}",
                                          counted(plan.cases.size(), "case", "cases"), duration_text(estimate.seconds),
                                          counted(arguments.jobs, "thread", "threads"), byte_text(estimate.bytes));
  if (arguments.estimate_only) {
    fmt::print("{}\n", outlook);
    return 0;
  }
  if (estimate.bytes > absurd_bytes || estimate.seconds > absurd_seconds)
    throw InputError(
        fmt::format("{}: that is more than this command takes on; split the plan or store fewer rows", outlook));
  fmt::print(stderr, "{}: {}\n", arguments.output, outlook);
  const auto start = std::chrono::steady_clock::now();
  GenerateReport report;
  {
    ProgressLine line("generated", stderr);
    GenerateOptions options;
    options.jobs = arguments.jobs;
    options.tier = arguments.tier;
    options.generator_version = fmt::format("qkcts {}", QKCTS_VERSION);
    options.progress = [&line](const GenerateProgress& p) {
      line.update(p.done, p.all, p.work_all > 0 ? p.work_done / p.work_all : 1, p.slug);
    };
    report = generate_corpus(plan, arguments.output, options);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{}: {}, {}, {:.1f} s\ndigest {}\n", arguments.output, counted(report.written, "case", "cases"),
             byte_text(static_cast<double>(std::filesystem::file_size(arguments.output))), seconds, report.digest);
  list_items(plan.unfit, [](const Plan::Unfit& u) { return fmt::format("{}: left out: {}", u.slug, u.reason); });
  list_items(report.dropped, [](const DroppedProfile& d) {
    return fmt::format("{}: not judged by profile {}: {:.1f} % of stage {} is mistrusted", d.slug, d.profile,
                       100 * d.share, d.stage);
  });
  list_items(report.refused, [](const RefusedCase& r) { return fmt::format("{}: refused: {}", r.slug, r.reason); });
  return report.dropped.empty() && report.refused.empty() ? 0 : 1;
}

}  // namespace

void add_generate(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<GenerateArguments>();
  CLI::App* generate_app = app.add_subcommand("generate", "Make golden vectors: proven values and error budgets");
  CLI::Option* plan =
      generate_app->add_option("plan", arguments->plan, "Suite (smoke, core, norm40, clauses, points) or JSON plan");
  CLI::Option* contract = generate_app->add_option("--contract", arguments->contracts,
                                                   "Contracts by name, glob or JSON file, in place of a plan");
  contract->excludes(plan)->delimiter(',');
  generate_app->add_option("-o,--output", arguments->output, "HDF5 file to write");
  generate_app
      ->add_option("--family", arguments->families,
                   "Input families, globs allowed (default gaussian); what does not fit a contract is left out")
      ->delimiter(',')
      ->needs(contract);
  generate_app->add_option("--format", arguments->formats, "binary64, binary32, binary16, bfloat16 (default binary32)")
      ->delimiter(',')
      ->check(CLI::IsMember({"binary64", "binary32", "binary16", "bfloat16"}).description(""))
      ->needs(contract);
  generate_app->add_option("--shape", arguments->shapes, "B,Hq,Hkv,Lq,Lk,D,Dv; may be repeated")->needs(contract);
  generate_app->add_option("--eps", arguments->eps, "Epsilon of both norms instead of the contract's; a list sweeps")
      ->delimiter(',')
      ->needs(contract)
      ->check(CLI::NonNegativeNumber);
  generate_app->add_option("--rows", arguments->rows, "Rows stored of each stage but output and lse (0: all)")
      ->needs(contract);
  generate_app
      ->add_option("--profile", arguments->profiles,
                   "Budgets of this machine profile as well: a name, or a JSON file of your own, which the corpus then "
                   "holds; may be repeated")
      ->delimiter(',');
  CLI::Option* seed = generate_app->add_option("--seed", arguments->seed, "Seed of the inputs (default: the plan's)");
  generate_app->add_option("--jobs", arguments->jobs, "Threads; the file does not depend on it")
      ->check(CLI::Range(1U, 1024U));
  generate_app
      ->add_option("--tier", arguments->tier,
                   "auto: double words with proven bounds first; mpfr: MPFR for everything; the file is the same")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Tier>{{"auto", Tier::automatic}, {"mpfr", Tier::mpfr}},
                                          CLI::ignore_case));
  generate_app->add_flag("--estimate", arguments->estimate_only, "Say how long and how large, and stop");
  generate_app->footer(
      "Examples:\n"
      "  qkcts generate core -o core.h5\n"
      "  qkcts generate --contract qwen3_rmsnorm --family eps_edge --eps 1e-12,1e-8,1e-3 -o eps.h5\n"
      "Exit code 1: the file is written, but a case was refused or a profile cannot judge one.");
  generate_app->callback([arguments, &command, seed] {
    if (arguments->plan.empty() && arguments->contracts.empty())
      throw CLI::RequiredError("generate: a plan or --contract");
    if (arguments->output.empty() && !arguments->estimate_only) throw CLI::RequiredError("generate: -o FILE");
    arguments->has_seed = seed->count() > 0;
    command = [arguments] { return generate(*arguments); };
  });
}

}  // namespace qkcts::cli
