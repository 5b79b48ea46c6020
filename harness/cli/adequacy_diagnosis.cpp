// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/adequacy_diagnosis.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "conformance/clause.hpp"
#include "conformance/neighbour.hpp"
#include "harness/adapter_runner.hpp"
#include "harness/bundled_kernel.hpp"
#include "harness/cli/separation.hpp"
#include "harness/diagnose_case.hpp"
#include "harness/usage_error.hpp"
#include "vectors/progress_line.hpp"

namespace qkcts::cli {
namespace {

constexpr std::array formats = {Format::binary32, Format::bfloat16};
constexpr StageSet outputs_alone = bit(QKCTS_STAGE_OUTPUT) | bit(QKCTS_STAGE_LSE);
// Further cases that are run to tell matches apart, whether they fail or not.
constexpr std::size_t further_runs = 100;

std::vector<const CatalogueMutant*> chosen_mutants(const std::string& of_id, const std::string& of_class) {
  std::vector<const CatalogueMutant*> chosen;
  for (const CatalogueMutant& mutant : mutant_catalogue()) {
    if (mutant.fields.empty() && mutant.fault.empty()) continue;
    if (!glob_matches(of_id, mutant.id)) continue;
    if (glob_matches(of_class, std::string(mutant_kind_name(mutant.kind))) || glob_matches(of_class, mutant.clause) ||
        glob_matches(of_class, std::string(clause_group(mutant.clause))))
      chosen.push_back(&mutant);
  }
  if (chosen.empty())
    throw UsageError("no mutant of the catalogue that can be run matches; `qkcts adapters --mutants` lists them");
  return chosen;
}

// A wrong kernel as the catalogue has it.
class WrongKernelRun {
 public:
  WrongKernelRun(const CatalogueMutant& mutant, const BundledKernel& control) : mutant_(mutant), control_(control) {
    if (!mutant.fault.empty()) fault_ = std::make_unique<BundledKernel>("mutants?mutant=" + mutant.fault, described());
  }

  std::optional<StageBytes> outputs(const Case& c) const {
    if (fault_) return alone(fault_->outputs(c));
    const std::optional<qkcts_contract> terms = contract_of(mutant_, c.contract.terms, &c.shape);
    const std::optional<Case> wrong = terms ? case_under(c, *terms) : std::nullopt;
    return wrong ? alone(control_.outputs(*wrong)) : std::nullopt;
  }

 private:
  static const AdapterDescription& described() {
    static const AdapterDescription description = BundledKernel("mutants").description();
    return description;
  }

  static std::optional<StageBytes> alone(std::optional<StageBytes> outputs) {
    if (!outputs) return outputs;
    for (const qkcts_stage stage : all_stages)
      if ((outputs_alone & bit(stage)) == 0) (*outputs)[stage].clear();
    return outputs;
  }

  const CatalogueMutant& mutant_;
  const BundledKernel& control_;
  std::unique_ptr<BundledKernel> fault_;
};

class Walk {
 public:
  Walk(const AdequacyCases& cases, unsigned threads) : cases_(cases), threads_(threads), control_("scalar") {
    for (const AdequacyCase& c : cases.all()) pools_[c.format].push_back(&c);
    for (auto& [format, pool] : pools_)
      std::stable_sort(pool.begin(), pool.end(),
                       [](const AdequacyCase* a, const AdequacyCase* b) { return a->cost < b->cost; });
    result_.corpora = cases.corpora();
  }

  void add(const CatalogueMutant& mutant) {
    const WrongKernelRun kernel(mutant, control_);
    for (const Format format : formats) add(mutant, kernel, format);
  }

  void add_right_kernels() {
    const std::vector<std::string> there = bundled_adapters();
    for (const char* name : {"scalar", "avx2"}) {
      if (std::find(there.begin(), there.end(), name) == there.end()) continue;
      const BundledKernel kernel(name);
      if (!kernel.is_usable()) continue;
      for (const AdequacyCase& c : cases_.all()) add_right(kernel, c);
    }
  }

  DiagnosisStudy take() { return std::move(result_); }

 private:
  const GoldenCase& read(const AdequacyCase& c) {
    std::unique_ptr<GoldenCase>& golden = read_[&c];
    if (!golden) golden = std::make_unique<GoldenCase>(cases_.read(c));
    return *golden;
  }

  // By the profile that the case is judged by unless a plan says otherwise.
  static std::optional<std::size_t> profile_index(const GoldenCase& golden) {
    const std::string wanted = profiles_for(golden.input.inputs.format).front().name;
    const auto found = std::find(golden.profiles.begin(), golden.profiles.end(), wanted);
    if (found == golden.profiles.end()) return std::nullopt;
    return static_cast<std::size_t>(found - golden.profiles.begin());
  }

  std::optional<FailedCase> failed(const WrongKernelRun& kernel, const AdequacyCase& c) {
    const GoldenCase& golden = read(c);
    const std::optional<std::size_t> profile = profile_index(golden);
    std::optional<StageBytes> outputs = profile ? kernel.outputs(golden.input) : std::nullopt;
    if (!outputs || failing_stages(golden, *outputs, *profile) == 0) return std::nullopt;
    return FailedCase{golden, *profile, std::move(*outputs)};
  }

  void add(const CatalogueMutant& mutant, const WrongKernelRun& kernel, Format format) {
    DiagnosedMutant one;
    one.id = mutant.id;
    one.clause = mutant.clause;
    one.is_contract = mutant.fault.empty();
    one.format = format;
    const std::vector<const AdequacyCase*>& pool = pools_[format];
    const AdequacyCase* first = nullptr;
    std::optional<FailedCase> subject;
    for (const AdequacyCase* c : pool)
      if (subject = failed(kernel, *c); subject) {
        first = c;
        break;
      }
    if (subject) diagnose(one, mutant, kernel, *first, *subject, pool);
    result_.mutants.push_back(std::move(one));
  }

  void diagnose(DiagnosedMutant& one, const CatalogueMutant& mutant, const WrongKernelRun& kernel,
                const AdequacyCase& first, const FailedCase& subject, const std::vector<const AdequacyCase*>& pool) {
    const auto start = std::chrono::steady_clock::now();
    const Observation observation(subject.golden, subject.profile, subject.outputs);
    Diagnosed made = diagnosed_outputs(observation, Verdict::fail, threads_);
    if (made.diagnosis.finding == Finding::ambiguous) {
      std::vector<const AdequacyCase*> others;
      for (const AdequacyCase* c : pool)
        if (c != &first) others.push_back(c);
      std::stable_partition(others.begin(), others.end(),
                            [&](const AdequacyCase* c) { return c->terms == first.terms; });
      others.resize(std::min(others.size(), further_runs));
      std::size_t at = 0;
      tell_apart(made, [&]() -> std::optional<FailedCase> {
        while (at < others.size())
          if (std::optional<FailedCase> other = failed(kernel, *others[at++])) return other;
        return std::nullopt;
      });
    }
    const CaseDiagnosis& d = made.diagnosis;
    one.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    one.slug = d.slug;
    one.named = named_first(d, mutant.id, mutant.clause);
    one.first = diagnosis_line(d);
    one.matches = d.matches.size();
    one.cut = d.cut;
  }

  void add_right(const BundledKernel& kernel, const AdequacyCase& c) {
    const GoldenCase& golden = read(c);
    const std::optional<std::size_t> profile = profile_index(golden);
    std::optional<StageBytes> outputs = profile ? kernel.outputs(golden.input) : std::nullopt;
    if (!outputs) return;
    ++result_.valid_runs;
    const Observation observation(golden, *profile, std::move(*outputs));
    if (diagnosed_outputs(observation, Verdict::pass, threads_).diagnosis.finding != Finding::passes)
      result_.accused.push_back(fmt::format("{} on {}", kernel.spec(), golden.input.slug));
  }

  const AdequacyCases& cases_;
  const unsigned threads_;
  const BundledKernel control_;
  std::map<Format, std::vector<const AdequacyCase*>> pools_;
  std::map<const AdequacyCase*, std::unique_ptr<GoldenCase>> read_;
  DiagnosisStudy result_;
};

}  // namespace

DiagnosisStudy study_diagnosis(const AdequacyCases& cases, const std::string& of_id, const std::string& of_class,
                               unsigned threads) {
  Walk walk(cases, threads);
  const std::vector<const CatalogueMutant*> mutants = chosen_mutants(of_id, of_class);
  ProgressLine progress("diagnoses", stderr);
  for (std::size_t i = 0; i < mutants.size(); ++i) {
    walk.add(*mutants[i]);
    progress.update(i + 1, mutants.size(), static_cast<double>(i + 1) / static_cast<double>(mutants.size()),
                    mutants[i]->id);
  }
  walk.add_right_kernels();
  return walk.take();
}

}  // namespace qkcts::cli
