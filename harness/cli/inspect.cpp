// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "conformance/contract_field.hpp"
#include "harness/cli/arguments.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/separation.hpp"
#include "harness/value_text.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/progress_line.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts::cli {
namespace {

constexpr std::size_t columns = 80;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// Words of `text` in lines of 80 columns, the later ones indented.
std::string wrapped(const std::string& head, const std::string& text) {
  std::string result = head;
  std::size_t column = head.size();
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    if (column + 1 + end - start > columns - 1 && column > head.size()) {
      result += "\n" + std::string(head.size(), ' ');
      column = head.size();
    }
    result += (column == head.size() ? "" : " ") + text.substr(start, end - start);
    column += end - start + (column == head.size() ? 0 : 1);
    start = end + 1;
  }
  return result + "\n";
}

double bytes_of(const CorpusInfo& info) {
  const std::filesystem::path folder = std::filesystem::path(info.path).parent_path();
  auto bytes = static_cast<double>(std::filesystem::file_size(info.path));
  for (const std::string& shard : info.shards) bytes += static_cast<double>(std::filesystem::file_size(folder / shard));
  return bytes;
}

void print_head(const CorpusReader& reader) {
  const CorpusInfo& info = reader.info();
  fmt::print("{}\n  suite {}, seed {}, format version {}, written by {}\n  {}, {}{}\n  digest {}\n", info.path,
             info.suite, info.seed, info.format_version, info.generator_version,
             counted(reader.slugs().size(), "case", "cases"), byte_text(bytes_of(info)),
             info.shards.empty() ? "" : " in " + counted(info.shards.size() + 1, "file", "files"), info.digest);
  if (!info.shard.empty()) fmt::print("  shard {} of a plan\n", info.shard);
}

std::string heads_text(const qkcts_shape& s) {
  return fmt::format("{}/{}", s.q_heads, s.kv_heads);
}

void print_corpus(const CorpusReader& reader, const std::string& contracts, const std::string& wanted_families) {
  print_head(reader);
  std::string contract;
  std::map<std::string, int> families, formats;
  for (const std::string& slug : reader.slugs()) {
    const GoldenCase golden = reader.outline(slug);
    if (!glob_matches(contracts, golden.input.contract.name) || !glob_matches(wanted_families, golden.family)) continue;
    const qkcts_shape& s = golden.input.shape;
    ++families[golden.family];
    ++formats[std::string(parameters(golden.input.inputs.format).name)];
    if (golden.input.contract.name != contract) {
      contract = golden.input.contract.name;
      fmt::print("\n{}\n", contract);
      fmt::print("  {:<16} {:<8} {:>2} {:>5} {:>9} {:>7} {:>8} {:>7} {:>7}\n", "family", "format", "B", "heads",
                 "Lq x Lk", "D/Dv", "max|s|", "p_max", "entropy");
    }
    fmt::print("  {:<16} {:<8} {:>2} {:>5} {:>9} {:>7} {:>8.6g} {:>7.4f} {:>7.3f}\n", golden.family,
               parameters(golden.input.inputs.format).name, s.batch, heads_text(s),
               fmt::format("{}x{}", s.q_len, s.k_len), fmt::format("{}/{}", s.head_dim, s.v_head_dim),
               golden.score_max.max, golden.p_max.median, golden.entropy.median);
  }
  fmt::print("\nmax|s|: largest score that the softmax sees; p_max, entropy: median over rows\n");
  const auto listed = [](const std::map<std::string, int>& counts) {
    std::vector<std::string> words;
    words.reserve(counts.size());
    for (const auto& [name, count] : counts) words.push_back(fmt::format("{} {}", name, count));
    return joined(words);
  };
  fmt::print("{}{}", wrapped("families: ", listed(families)), wrapped("formats: ", listed(formats)));
}

void print_inputs(const Case& c) {
  fmt::print("\n  {:<15} {:<9} {:<24} {:>12} {:>12}\n", "input", "type", "shape", "smallest", "largest");
  for (std::size_t i = 0; i < input_count; ++i) {
    if (!c.inputs.tensors[i]) continue;
    const Tensor& tensor = *c.inputs.tensors[i];
    std::vector<double> values = tensor.values();
    const auto numbers = std::partition(values.begin(), values.end(), [](double x) { return !std::isnan(x); });
    const auto [low, high] = std::minmax_element(values.begin(), numbers);
    fmt::print("  {:<15} {:<9} {:<24} {:>12.5g} {:>12.5g}{}\n", input_name(static_cast<Input>(i)),
               element_type_name(tensor.type), shape_text(tensor.shape), *low, *high,
               numbers == values.end() ? "" : fmt::format(" {} NaN", values.end() - numbers));
  }
}

struct StageFigures {
  std::size_t exact = 0, fixed = 0, hidden = 0;
  double largest = 0;
};

StageFigures figures_of(const ProvenStage& values) {
  StageFigures figures;
  for (std::size_t i = 0; i < values.rule.size(); ++i) {
    if (values.rule[i] == ElementRule::budget_exact) ++figures.exact;
    if (values.rule[i] == ElementRule::exact_clause || is_by_class(values.rule[i])) ++figures.fixed;
    if (values.rule[i] == ElementRule::hidden) ++figures.hidden;
    if (values.rule[i] <= ElementRule::budget_exact && std::isfinite(values.hi[i]))
      figures.largest = std::max(figures.largest, std::abs(values.hi[i]));
  }
  return figures;
}

// Median of Delta in units in the last place of the stage's format, over judged elements.
std::string median_budget(const ProvenStage& values, const StageBudget& budget, Format format) {
  std::vector<double> ulps;
  for (std::size_t i = 0; i < values.rule.size(); ++i)
    if (values.rule[i] <= ElementRule::budget_exact && budget.trust[i] == Trust::judged && std::isfinite(values.hi[i]))
      ulps.push_back(static_cast<double>(budget.delta[i]) / ulp(format, values.hi[i]));
  if (ulps.empty()) return "-";
  const auto middle = ulps.begin() + static_cast<std::ptrdiff_t>(ulps.size() / 2);
  std::nth_element(ulps.begin(), middle, ulps.end());
  return fmt::format("{:.3g}", *middle);
}

void print_stages(const GoldenCase& golden) {
  const Case& c = golden.input;
  fmt::print("\n  {:<7} {:<8} {:>11} {:>10} {:>6} {:>6} {:>6}  {}\n", "stage", "format", "rows", "max |z|", "exact",
             "fixed", "hidden", "median Delta");
  for (const qkcts_stage stage : all_stages) {
    const GoldenStage& g = golden.stages[stage];
    if (!g.present) continue;
    const StageFigures figures = figures_of(g.values);
    const Format format = stage_format(stage, c.inputs.format);
    std::vector<std::string> budgets;
    for (std::size_t i = 0; i < golden.profiles.size(); ++i)
      budgets.push_back(median_budget(g.values, g.budgets[i], format));
    const std::string row =
        fmt::format("  {:<7} {:<8} {:>11} {:>10.4g} {:>6} {:>6} {:>6} ", stage_name(stage), parameters(format).name,
                    fmt::format("{}/{}", g.values.rows.size(), row_count(stage, c.shape)), figures.largest,
                    figures.exact, figures.fixed, figures.hidden);
    fmt::print("{}", wrapped(row, joined(budgets)));
  }
  fmt::print("{}", wrapped("  profiles: ", joined(golden.profiles)));
  for (const auto& [name, text] : golden.own_profiles)
    fmt::print("{}", wrapped("  ", fmt::format("{} is not shipped; the corpus holds it: {}", name,
                                               profile_named(name, golden.own_profiles).title)));
  fmt::print("{}", wrapped("  ",
                           "exact: on a rounding boundary or 0, decided by a rule; fixed: the contract says the value; "
                           "hidden: behind the mask; Delta per profile, in ulp of the stage's format"));
}

void print_statistics(const GoldenCase& golden) {
  fmt::print("\n  {:<22} {:>12} {:>12} {:>12}\n", "per row", "smallest", "median", "largest");
  const auto line = [](const char* name, const Range& range) {
    fmt::print("  {:<22} {:>12.6g} {:>12.6g} {:>12.6g}\n", name, range.min, range.median, range.max);
  };
  line("entropy (nat)", golden.entropy);
  line("p_max", golden.p_max);
  line("max |s|", golden.score_max);
  if (golden.jacobian) line("max p (1 - p)", *golden.jacobian);
}

void print_case(const GoldenCase& golden) {
  const Case& c = golden.input;
  const qkcts_shape& s = c.shape;
  fmt::print("{}\n", c.slug);
  fmt::print("{}", wrapped("  family    ", fmt::format("{}: {}", golden.family, golden.description)));
  fmt::print("  shape     B {}, Hq {}, Hkv {}, Lq {}, Lk {}, D {}, Dv {}\n", s.batch, s.q_heads, s.kv_heads, s.q_len,
             s.k_len, s.head_dim, s.v_head_dim);
  fmt::print("  format    {}\n  seed      {}\n  digest    {}\n", parameters(c.inputs.format).name, golden.seed,
             golden.digest);
  if (c.inputs.has(Input::cos)) fmt::print("  positions row 0 of cos and sin is position {}\n", golden.first_position);
  fmt::print("{}", wrapped("  contract  ", fmt::format("{}: {}", c.contract.name, c.contract.title)));
  for (const FieldValue& field : contract_field_values(c.contract.terms))
    fmt::print("    {:<11} {:<20} {}\n", field.clause, field.path, field.json);
  print_inputs(c);
  print_stages(golden);
  print_statistics(golden);
}

}  // namespace

void add_inspect(CLI::App& app, Command& command) {
  struct Arguments {
    std::string file, slug, contracts, families, drawing;
    bool names = false, separation = false, by_row = false;
    TableForm form = TableForm::text;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* inspect_app = app.add_subcommand("inspect", "List the cases of a corpus, or one case in numbers");
  inspect_app->add_option("file", arguments->file, "Corpus")->required();
  CLI::Option* one =
      inspect_app->add_option("case", arguments->slug, "Case, or a part of its name that no other case has");
  inspect_app->add_option("--contract", arguments->contracts, "List only contracts that match this glob");
  inspect_app->add_option("--family", arguments->families, "List only families that match this glob");
  inspect_app->add_flag("--names", arguments->names, "Print the names of the cases, one a line, and nothing else");
  CLI::Option* separation = inspect_app->add_flag(
      "--separation", arguments->separation,
      "How surely a case, or every case, tells its contract from each neighbouring one; from the stored tables");
  inspect_app
      ->add_option("--format", arguments->form, "text, csv or json: the tables of --separation over a whole corpus")
      ->transform(CLI::CheckedTransformer(
                      std::map<std::string, TableForm>{
                          {"text", TableForm::text}, {"csv", TableForm::csv}, {"json", TableForm::json}},
                      CLI::ignore_case)
                      .description("{text,csv,json}"))
      ->needs(separation)
      ->excludes(one);
  inspect_app
      ->add_flag("--by-row", arguments->by_row,
                 "Of neighbours with another epsilon or another place of it, by the size of each row of q (recomputed)")
      ->needs(separation)
      ->excludes(one);
  inspect_app->add_option("--svg", arguments->drawing, "Draw --by-row into this file")
      ->needs(separation)
      ->excludes(one);
  inspect_app->footer(
      "Examples:\n"
      "  qkcts inspect core.h5 qwen3_rmsnorm/norm40/binary32\n"
      "  qkcts inspect core.h5 --separation --contract 'qwen3*' --format csv\n"
      "  qkcts inspect eps.h5 --separation --by-row --svg eps.svg");
  inspect_app->callback([arguments, &command] {
    command = [arguments] {
      const Arguments& a = *arguments;
      check_untrusted_corpus(a.file);
      const CorpusReader reader(a.file);
      if (a.names) {
        for (const std::string& slug : reader.slugs()) fmt::print("{}\n", slug);
      } else if (!a.drawing.empty()) {
        draw_separation_rows(reader, a.contracts, a.families, a.drawing);
      } else if (a.by_row) {
        print_separation_rows(reader, a.contracts, a.families, a.form);
      } else if (a.separation && a.slug.empty()) {
        print_separations(reader, a.contracts, a.families, a.form);
      } else if (a.separation) {
        print_separations(reader.read(chosen_case(reader, a.slug)));
      } else if (a.slug.empty()) {
        print_corpus(reader, a.contracts, a.families);
      } else {
        print_case(reader.read(chosen_case(reader, a.slug)));
      }
      return 0;
    };
  });
}

}  // namespace qkcts::cli
