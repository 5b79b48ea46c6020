// SPDX-License-Identifier: Apache-2.0
#include "harness/bundle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "conformance/file.hpp"
#include "harness/failure_text.hpp"
#include "harness/value_text.hpp"
#include "vectors/corpus_writer.hpp"

namespace qkcts {
namespace {

std::string made_folder(const std::string& dir, std::string slug) {
  std::replace(slug.begin(), slug.end(), '/', '.');
  std::string folder = dir + "/" + slug;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw WriteError(fmt::format("{}: cannot be created: {}", folder, error.message()));
  return folder;
}

std::string shape_text(const qkcts_shape& s) {
  return fmt::format("{}x{}x{}x{}x{}x{}x{}", s.batch, s.q_heads, s.kv_heads, s.q_len, s.k_len, s.head_dim,
                     s.v_head_dim);
}

std::string element_row(const CaseResult& result, qkcts_stage stage, const JudgedElement& element) {
  const Format format = stage_format(stage, result.format);
  return fmt::format("| {}[{}] | {} | {} | {} | {} | {} |\n", stage_name(stage),
                     index_text(stage, result.shape, element.place), bits_text(format, element.got),
                     bits_text(format, element.expected), exact_text(element.exact),
                     fmt::format("{:.3g}", static_cast<double>(element.delta)), short_text(element.ratio));
}

std::string elements_table(const CaseResult& result) {
  std::string rows;
  for (const StageResult& stage : result.stages)
    if (stage.judgement)
      for (const JudgedElement& element : stage.judgement->failures) rows += element_row(result, stage.stage, element);
  if (rows.empty()) return fmt::format("Verdict: {}. {}\n", verdict_name(result.verdict), result.detail);
  return "| element | got | expected | exact | Delta | error/Delta |\n|---|---|---|---|---|---|\n" + rows;
}

}  // namespace

WrittenBundle write_bundle(const std::string& dir, GoldenCase golden, const CaseResult& result,
                           const CaseDiagnosis& diagnosis, const RunRecord& record) {
  WrittenBundle bundle;
  bundle.folder = made_folder(dir, diagnosis.slug);
  const std::string format(parameters(golden.input.inputs.format).name);
  golden.input.slug =
      fmt::format("{}/reproducer/{}_{}", golden.input.contract.name, format, shape_text(golden.input.shape));
  golden.description = fmt::format("cut out of {}", diagnosis.slug);
  CorpusWriter writer(bundle.folder + "/case.h5", {"reproducer", record.suite_version, golden.seed});
  writer.add(golden);
  writer.finish();
  const std::string contract = parse_json(canonical_json(golden.input.contract), "contract").dump(2);
  write_file_atomically(bundle.folder + "/contract.json", contract + "\n");
  bundle.command = fmt::format("qkcts run {} {} --profile {}", shell_quoted(record.adapter.given),
                               shell_quoted(bundle.folder + "/case.h5"), result.profile);
  if (!record.stages_asked.empty()) bundle.command += " --stages " + record.stages_asked;
  write_file_atomically(
      bundle.folder + "/README.md",
      fmt::format("# Reproducer\n\nThe smallest case found that {} {} still fails, cut out of `{}` of suite {}.\n"
                  "`case.h5` holds its inputs, expected values and budgets, `contract.json` what was asked for.\n\n"
                  "    {}\n\n## What was got, and what was due\n\n{}\n"
                  "`expected` is the exact value rounded to the format; within Delta of the exact value everything "
                  "passes.\n\n## Diagnosis of the whole case\n\n```\n{}```\n",
                  record.description.name, record.description.version, diagnosis.slug, record.corpus_suite,
                  bundle.command, elements_table(result), diagnosis_text(diagnosis)));
  return bundle;
}

}  // namespace qkcts
