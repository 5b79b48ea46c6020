// SPDX-License-Identifier: Apache-2.0
// One golden case through one adapter: all its calls, judged, with one verdict per stage and one for the case.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/adapter_description.hpp"
#include "harness/adapter_runner.hpp"
#include "harness/judgement.hpp"
#include "harness/limits.hpp"
#include "harness/plain_error.hpp"
#include "harness/variant_finding.hpp"

namespace qkcts {

enum class Judging : std::uint8_t {
  values_and_relations,
  relations_alone,  // no output is compared with a golden value, and no profile need fit
};

struct RunOptions {
  Judging judging = Judging::values_and_relations;
  std::optional<std::string> profile;  // instead of the one that the adapter names
  StageSet stages = ~StageSet{0};      // to be asked for, as far as they exist and are observable
  int repeat = 1;                      // rounds; each round is one end-aligned and one start-aligned call
  Variants variants = Variants::none;  // the calls beside them
  LimitTable limits;
};

struct StageResult {
  qkcts_stage stage = QKCTS_STAGE_OUTPUT;
  Verdict verdict = Verdict::not_run;
  std::string detail;                       // one line, unless the judgement says it all
  std::optional<StageJudgement> judgement;  // of the call with the gravest verdict, else the largest error/Delta
  int differing_calls = 0;                  // later plain calls whose bits differ from those of the first
  std::optional<double> spread_ulp;         // between two results, at most; nothing if all have the same bits
  std::vector<VariantFinding> variants;     // calls beside the plain ones
  std::string output_sha256;                // of the bits of the first call, if the stage was judged
  std::optional<PlainError> plain;          // beside the judgement, where a plain evaluation was asked for
};

struct CaseResult {
  std::string slug, contract, contract_digest, family, description;
  Format format = Format::binary32;
  qkcts_shape shape{};
  std::string profile;
  Verdict verdict = Verdict::not_run;
  std::string detail;  // why, if the whole case has one reason
  std::string implementation;
  double seconds = 0;  // of the fastest plain call
  int calls = 0;
  std::string output;               // tail of what the adapter printed, where the verdict is an error
  std::vector<StageResult> stages;  // that exist in the case, in order of evaluation
};

// The profile by which a case is judged: the one asked for if it belongs to the case's format, else the adapter's. A
// case that does not hold it (dropped when the case was made) is mistrusted for it.
std::string judging_profile(const GoldenCase& golden, const AdapterDescription& description, const RunOptions& options);

bool is_shipped_profile(const std::string& name, Format format);
bool holds_profile(const GoldenCase& golden, const std::string& name);

// The outputs of the first call, for relations: filled if the calls ended well.
struct KeptOutputs {
  bool filled = false;
  StageBytes outputs;
  StageSet restless = 0;  // stages whose bits differed between the calls
};

// With `kept` a case is run even where no value of it can be judged.
CaseResult run_case(AdapterRunner& runner, const AdapterDescription& description, const GoldenCase& golden,
                    const RunOptions& options, KeptOutputs* kept = nullptr);

// A case that was not run at all, with the reason.
CaseResult unrun_case(const GoldenCase& golden, Verdict verdict, std::string detail);

}  // namespace qkcts
