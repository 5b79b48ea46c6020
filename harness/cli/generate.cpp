// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "conformance/json.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/destination.hpp"
#include "harness/cli/generate_job.hpp"
#include "harness/cli/separate.hpp"
#include "harness/usage_error.hpp"
#include "vectors/coincidence.hpp"
#include "vectors/generate.hpp"
#include "vectors/input_family.hpp"

namespace qkcts::cli {
namespace {

constexpr std::size_t most_listed = 20;

struct GenerateArguments {
  std::string plan;
  std::string output;
  std::vector<std::string> contracts, families, formats, shapes, profiles;
  std::vector<std::string> eps, sweep_eps, placements;
  std::uint64_t seed = 0;
  std::uint32_t rows = 0;
  bool has_seed = false;
  bool estimate_only = false;
  bool list_families = false;
  std::string shard;
  GenerateJob job;
  SeparateArguments separate;
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

// Epsilons as they stand behind a flag; what is none is a usage error that names the flag.
std::vector<double> epsilons(const std::vector<std::string>& texts, const char* flag) {
  std::vector<double> values;
  for (const std::string& text : texts) {
    try {
      const std::vector<double> some = eps_values(text);
      values.insert(values.end(), some.begin(), some.end());
    } catch (const InputError& error) {
      throw UsageError(fmt::format("{}: {}", flag, error.what()));
    }
  }
  return values;
}

std::vector<double> all_epsilons(const GenerateArguments& arguments) {
  std::vector<double> values = epsilons(arguments.eps, "--eps");
  const std::vector<double> swept = epsilons(arguments.sweep_eps, "--sweep-eps");
  values.insert(values.end(), swept.begin(), swept.end());
  return values;
}

// At unit scale no epsilon shows, so a sweep has families of its own.
std::vector<std::string> default_families(const GenerateArguments& arguments) {
  const bool sweeps = !arguments.sweep_eps.empty() || !arguments.placements.empty();
  return sweeps ? std::vector<std::string>{"eps_edge", "small_rows"} : std::vector<std::string>{"gaussian"};
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
    group["families"] =
        arguments.families.empty() ? default_families(arguments) : expanded(arguments.families, family_names());
    group["formats"] = arguments.formats.empty() ? std::vector<std::string>{"binary32"} : arguments.formats;
    group["shapes"] = arguments.shapes.empty() ? std::vector<std::string>{shape} : arguments.shapes;
    if (const std::vector<double> eps = all_epsilons(arguments); !eps.empty()) group["eps"] = eps;
    if (!arguments.placements.empty()) group["eps_placement"] = arguments.placements;
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

// What is no file is a name, and a name that nothing has is a usage error.
NamedProfile profile_from_argument(const std::string& argument) {
  const bool is_file = argument.find('/') != std::string::npos || argument.ends_with(".json");
  try {
    return load_profile(argument);
  } catch (const InputError& error) {
    if (is_file) throw;
    throw UsageError(fmt::format("--profile: {}", error.what()));
  }
}

// What no case of the plan makes up for.
void print_coincidences(const Plan& plan) {
  const std::vector<UncoveredCoincidence> found = uncovered_coincidences(plan);
  for (std::size_t i = 0; i < std::min(found.size(), most_listed); ++i)
    fmt::print("{}: two clauses coincide: {}\n", found[i].slug, found[i].coincidence.reason);
  if (found.size() > most_listed) fmt::print("... and in {} more cases\n", found.size() - most_listed);
}

int generate(const GenerateArguments& arguments) {
  const auto plan = [&arguments] {
    Plan made = plan_of(arguments);
    for (const std::string& name : arguments.profiles) add_profile(made, profile_from_argument(name));
    return made;
  };
  GenerateJob job = arguments.job;
  job.output = arguments.output;
  job.estimate_only = arguments.estimate_only;
  if (!job.estimate_only) {
    std::vector<std::string> inputs = arguments.contracts;
    inputs.insert(inputs.end(), arguments.profiles.begin(), arguments.profiles.end());
    inputs.push_back(arguments.plan);
    require_destination(job.output, FileKind::corpus, inputs);
  }
  if (!arguments.shard.empty()) {
    try {
      job.shard = shard_from_text(arguments.shard);
    } catch (const InputError& error) {
      throw UsageError(fmt::format("--shard: {}", error.what()));
    }
  }
  return run_generate_job(plan, job, print_coincidences);
}

}  // namespace

void add_generate(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<GenerateArguments>();
  CLI::App* generate_app = app.add_subcommand("generate", "Make golden vectors: proven values and error budgets");
  CLI::Option* plan =
      generate_app->add_option("plan", arguments->plan, "Suite (smoke, core, edge, robust, full, ...) or JSON plan");
  CLI::Option* contract = generate_app->add_option("--contract", arguments->contracts,
                                                   "Contracts by name, glob or JSON file, in place of a plan");
  contract->excludes(plan)->delimiter(',');
  generate_app->add_option("-o,--output", arguments->output, "HDF5 file to write");
  generate_app
      ->add_option("--family", arguments->families,
                   "Input families, globs allowed (default gaussian); what does not fit a contract is left out")
      ->delimiter(',');
  generate_app
      ->add_option("--format", arguments->formats,
                   "binary64, binary32, binary16, bfloat16, or f64, f32, f16, bf16 (default binary32)")
      ->delimiter(',')
      ->check(
          CLI::IsMember({"binary64", "binary32", "binary16", "bfloat16", "f64", "f32", "f16", "bf16"}).description(""));
  generate_app->add_option("--shape", arguments->shapes, "B,Hq,Hkv,Lq,Lk,D,Dv; may be repeated");
  generate_app->add_option("--eps", arguments->eps, "Epsilon of both norms instead of the contract's; a list sweeps")
      ->delimiter(',')
      ->needs(contract);
  generate_app
      ->add_option(
          "--sweep-eps", arguments->sweep_eps,
          "Likewise; A..B stands for A, 10 A, ... up to B. Without --family: eps_edge and small_rows, in which "
          "an epsilon shows")
      ->delimiter(',')
      ->needs(contract);
  generate_app
      ->add_option("--eps-placement", arguments->placements,
                   "Where the epsilon stands instead of the contract's place: inside_root, outside_root, max_root, "
                   "max_inside or all")
      ->delimiter(',')
      ->check(CLI::IsMember({"inside_root", "outside_root", "max_root", "max_inside", "all"}).description(""))
      ->needs(contract);
  generate_app->add_option("--rows", arguments->rows, "Rows stored of each stage but output and lse (0: all)")
      ->needs(contract);
  generate_app
      ->add_option("--profile", arguments->profiles,
                   "Budgets of this machine profile as well: a name, or a JSON file of your own, which the corpus then "
                   "holds; may be repeated")
      ->delimiter(',');
  CLI::Option* seed = generate_app->add_option("--seed", arguments->seed, "Seed of the inputs (default: the plan's)");
  generate_app
      ->add_option("--jobs", arguments->job.jobs,
                   "Threads (default: one per processor, under mpirun one); the file does not depend on it")
      ->check(CLI::Range(1U, 1024U));
  generate_app->add_option("--shard", arguments->shard,
                           "I/N: only the I-th of N parts of the plan; `vectors join` makes one corpus of their files");
  generate_app->add_flag("--resume", arguments->job.resume,
                         "Keep finished cases in FILE.part, and begin with those that an earlier try left there");
  generate_app
      ->add_option("--tier", arguments->job.tier,
                   "auto: double words with proven bounds first; mpfr: MPFR for everything; the file is the same")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Tier>{{"auto", Tier::automatic}, {"mpfr", Tier::mpfr}},
                                          CLI::ignore_case)
                      .description("{auto,mpfr}"));
  add_separate_options(*generate_app, arguments->separate);
  generate_app->add_flag("--list-families", arguments->list_families, "Print what every input family is for, and stop");
  generate_app->add_flag("--estimate", arguments->estimate_only, "Say how long and how large, and stop");
  generate_app->footer(
      "Examples:\n"
      "  qkcts generate core -o core.h5\n"
      "  qkcts generate --contract qwen3_rmsnorm --sweep-eps 0,1e-12..1e-3 --eps-placement all --format bf16 -o "
      "eps.h5\n"
      "  qkcts generate --separate qwen3_rmsnorm flax_qk_layernorm --steps 500 -o apart.h5\n"
      "  mpirun -n 4 qkcts generate full -o full.h5 --resume\n"
      "Exit code 1: the file is written, but a case was refused or a profile cannot judge one.");
  generate_app->callback([arguments, &command, seed] {
    if (arguments->list_families) {
      command = [] {
        fmt::print("{}", family_table());
        return 0;
      };
      return;
    }
    const GenerateArguments& a = *arguments;
    const bool searches = !a.separate.contracts.empty();
    if (a.plan.empty() && a.contracts.empty() && !searches)
      throw CLI::RequiredError("generate: a plan, --contract or --separate");
    if (searches && !(a.plan.empty() && a.contracts.empty() && !a.estimate_only))
      throw UsageError("--separate takes neither a plan nor --contract nor --estimate");
    if (!a.plan.empty() && !(a.families.empty() && a.formats.empty() && a.shapes.empty()))
      throw UsageError(
          "a plan says its families, formats and shapes; --family, --format and --shape go with --contract");
    if (arguments->output.empty() && !arguments->estimate_only) throw CLI::RequiredError("generate: -o FILE");
    arguments->has_seed = seed->count() > 0;
    if (searches) {
      command = [arguments] {
        SeparateArguments& search = arguments->separate;
        search.families = arguments->families;
        search.formats = arguments->formats;
        search.shapes = arguments->shapes;
        search.profiles = arguments->profiles;
        search.seed = arguments->seed;
        search.output = arguments->output;
        return separate(search);
      };
      return;
    }
    command = [arguments] { return generate(*arguments); };
  });
}

}  // namespace qkcts::cli
