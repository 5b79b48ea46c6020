// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/adequacy_peers.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "conformance/contract_field.hpp"
#include "conformance/neighbour.hpp"
#include "harness/adapter_runner.hpp"
#include "harness/cli/adequacy_view.hpp"
#include "harness/cli/separation.hpp"
#include "reference/evaluation.hpp"
#include "vectors/generate.hpp"
#include "vectors/input_family.hpp"
#include "vectors/progress_line.hpp"
#include "vectors/row_selection.hpp"

namespace qkcts::cli {
namespace {

constexpr std::array formats = {Format::binary32, Format::binary16, Format::bfloat16};
// So many cases of each contract and format are tried on a fault of an adapter, the small ones first.
constexpr std::size_t cases_of_contract = 2;
constexpr qkcts_shape ordinary_shape = {1, 4, 2, 8, 64, 64, 64};

std::string default_profile(Format format) {
  return profiles_for(format).front().name;
}

// A case and what the suites would compare with.
struct Stage {
  GoldenCase golden;
  std::unique_ptr<PeerReference> reference;
};

class Study {
 public:
  explicit Study(const AdequacyCases& cases) : cases_(cases), control_("scalar") {
    result_.corpora = cases.corpora();
    result_.peers = shipped_peers();
  }

  void add_contracts(const std::vector<AdequacyMutant>& mutants, const std::vector<AdequacyRow>& rows) {
    ProgressLine progress("wrong contracts", stderr);
    for (std::size_t i = 0; i < mutants.size(); ++i) {
      for (const AdequacyCell& cell : rows[i].cells) add_contract(mutants[i], cell);
      progress.update(i + 1, mutants.size(), static_cast<double>(i + 1) / static_cast<double>(mutants.size()),
                      mutants[i].id);
    }
  }

  void add_faults(const std::string& of_id) {
    const Json described = parse_json(BundledKernel("mutants").description().text, "mutants");
    const Json& faults = described.at("arithmetic").at("mutants");
    ProgressLine progress("wrong adapters", stderr);
    std::size_t done = 0;
    for (const auto& [id, entry] : faults.items()) {
      if (glob_matches(of_id, id) && entry.at("verdict") == "fail") {
        const BundledKernel kernel("mutants?mutant=" + id);
        for (const Format format : formats) add_fault(kernel, id, entry.at("clause"), format);
      }
      ++done;
      progress.update(done, faults.size(), static_cast<double>(done) / static_cast<double>(faults.size()), id);
    }
  }

  void add_valid() {
    std::vector<std::unique_ptr<BundledKernel>> kernels;
    for (const char* name : {"scalar", "avx2"}) {
      const std::vector<std::string> there = bundled_adapters();
      if (std::find(there.begin(), there.end(), name) != there.end())
        kernels.push_back(std::make_unique<BundledKernel>(name));
    }
    for (const auto& [key, stage] : stages_) {
      if (!stage) continue;
      for (const std::unique_ptr<BundledKernel>& kernel : kernels)
        add_valid_run(*stage, kernel->spec(), kernel->outputs(stage->golden.input), key.is_ordinary);
      add_valid_run(*stage, "weights stored", stored_weights(stage->golden), key.is_ordinary);
    }
  }

  PeerStudy take() { return std::move(result_); }

 private:
  struct Key {
    bool is_ordinary = false;
    std::size_t corpus = 0;
    std::string slug;
    bool operator<(const Key& other) const {
      return std::tie(is_ordinary, corpus, slug) < std::tie(other.is_ordinary, other.corpus, other.slug);
    }
  };

  const Stage& read(const AdequacyCase& c) {
    std::unique_ptr<Stage>& stage = stages_[{false, c.corpus, c.slug}];
    if (!stage) stage = staged(cases_.read(c));
    return *stage;
  }

  std::unique_ptr<Stage> staged(GoldenCase golden) const {
    auto stage = std::make_unique<Stage>();
    stage->golden = std::move(golden);
    stage->reference = std::make_unique<PeerReference>(stage->golden, control_);
    return stage;
  }

  // Gaussian inputs of unit scale under the contract of a case; null where they cannot be had. Of the shape of the case
  // where the contract refuses the ordinary one.
  const Stage* ordinary(const AdequacyCase& c) {
    PlannedCase planned;
    planned.contract = cases_.terms_of(c).contract;
    planned.family = "gaussian";
    planned.format = c.format;
    planned.seed = 1;
    planned.profiles = {default_profile(c.format)};
    planned.shape = shape_fault(planned.contract.terms, ordinary_shape).empty() ? ordinary_shape : c.shape;
    planned.slug = case_slug(planned.contract, planned.family, planned.format, planned.shape, 0);
    const auto [entry, is_new] = stages_.try_emplace({true, c.terms, planned.slug});
    if (is_new) entry->second = made(planned);
    return entry->second.get();
  }

  std::unique_ptr<Stage> made(const PlannedCase& planned) const {
    try {
      std::vector<DroppedProfile> dropped;
      GoldenCase golden = make_golden_of(planned, dropped);
      return dropped.empty() ? staged(std::move(golden)) : nullptr;
    } catch (const InputError&) {
      return nullptr;
    } catch (const UndecidedError&) {
      return nullptr;
    }
  }

  static GoldenCase make_golden_of(const PlannedCase& planned, std::vector<DroppedProfile>& dropped) {
    GoldenCase golden;
    golden.input = make_case(planned, golden.first_position);
    golden.family = planned.family;
    golden.seed = planned.seed;
    golden.profiles = planned.profiles;
    StageRows rows;
    for (const qkcts_stage stage : all_stages) {
      if ((stages_of(planned.contract.terms) & bit(stage)) == 0) continue;
      for (std::int64_t row = 0; row < row_count(stage, planned.shape); ++row)
        rows[stage].push_back(static_cast<std::uint32_t>(row));
    }
    seal(golden, rows, dropped);
    return golden;
  }

  static std::size_t profile_index(const GoldenCase& golden) {
    const std::string wanted = default_profile(golden.input.inputs.format);
    return static_cast<std::size_t>(std::find(golden.profiles.begin(), golden.profiles.end(), wanted) -
                                    golden.profiles.begin());
  }

  PeerTrial trial(const Stage& stage, const StageBytes& outputs, const PeerQuestion& question) const {
    PeerTrial made;
    made.slug = stage.golden.input.slug;
    for (const Peer& peer : result_.peers) made.by_peer.push_back(stage.reference->judge(peer, outputs, question));
    return made;
  }

  // The same of a wrong kernel, with what the peer says of the right one to the same question.
  PeerTrial wrong_trial(const Stage& stage, const StageBytes& outputs, StageSet failing) const {
    const PeerQuestion question = question_of_fault(failing);
    PeerTrial made = trial(stage, outputs, question);
    const std::optional<StageBytes>& control = stage.reference->control();
    for (const Peer& peer : result_.peers)
      made.accepts_control.push_back(control &&
                                     stage.reference->judge(peer, *control, question).verdict == PeerVerdict::accepts);
    return made;
  }

  std::optional<StageBytes> wrong_outputs(const AdequacyMutant& mutant, const GoldenCase& golden) const {
    const std::optional<qkcts_contract> terms = mutant.contract(golden.input.contract.terms, golden.input.shape);
    if (!terms) return std::nullopt;
    const std::optional<Case> wrong = case_under(golden.input, *terms);
    return wrong ? control_.outputs(*wrong) : std::nullopt;
  }

  void add_contract(const AdequacyMutant& mutant, const AdequacyCell& cell) {
    if (!(cell.best.separation > 1)) return;
    for (const AdequacyCase& c : cases_.all()) {
      if (c.corpus != cell.best.corpus || c.slug != cell.best.slug || c.format == Format::binary64) continue;
      if (cell.profile != default_profile(c.format)) return;
      const Stage& stage = read(c);
      const std::optional<StageBytes> outputs = wrong_outputs(mutant, stage.golden);
      if (!outputs) return;
      const StageSet failing = failing_stages(stage.golden, *outputs, profile_index(stage.golden));
      if (failing == 0) return;  // the class of its values is wrong where the control has none, or it is refused
      WrongKernel kernel{mutant.id, mutant.clause, true, c.format, wrong_trial(stage, *outputs, failing), {}};
      if (const Stage* gaussian = ordinary(c))
        if (const std::optional<StageBytes> there = wrong_outputs(mutant, gaussian->golden))
          kernel.ordinary = wrong_trial(*gaussian, *there, failing);
      result_.wrong.push_back(std::move(kernel));
      return;
    }
  }

  // The cases on which faults of adapters are tried, the small ones first.
  const std::vector<const AdequacyCase*>& pool(Format format) {
    std::vector<const AdequacyCase*>& pool = pools_[format];
    if (!pool.empty()) return pool;
    for (const AdequacyCase& c : cases_.all())
      if (c.format == format) pool.push_back(&c);
    std::stable_sort(pool.begin(), pool.end(),
                     [](const AdequacyCase* a, const AdequacyCase* b) { return a->cost < b->cost; });
    std::map<std::pair<std::size_t, std::string>, std::size_t> taken;
    std::erase_if(pool, [&](const AdequacyCase* c) { return ++taken[{c->terms, c->family}] > cases_of_contract; });
    return pool;
  }

  void add_fault(const BundledKernel& fault, const std::string& id, const std::string& clause, Format format) {
    for (const AdequacyCase* c : pool(format)) {
      const Stage& stage = read(*c);
      const std::size_t profile = profile_index(stage.golden);
      if (profile == stage.golden.profiles.size()) continue;
      const std::optional<StageBytes> outputs = fault.outputs(stage.golden.input);
      if (!outputs) continue;
      const StageSet failing = failing_stages(stage.golden, *outputs, profile);
      if (failing == 0) continue;
      WrongKernel kernel{id, clause, false, format, wrong_trial(stage, *outputs, failing), {}};
      if (const Stage* gaussian = ordinary(*c))
        if (const std::optional<StageBytes> there = fault.outputs(gaussian->golden.input))
          kernel.ordinary = wrong_trial(*gaussian, *there, failing);
      result_.wrong.push_back(std::move(kernel));
      return;
    }
  }

  // The control with its weights in the storage format before they meet v, where the profile grants it.
  std::optional<StageBytes> stored_weights(const GoldenCase& golden) const {
    const Profile profile = shipped_profile(default_profile(golden.input.inputs.format));
    if (!profile.probability_storage || golden.input.contract.terms.rounding.probs != 0) return std::nullopt;
    Case c = golden.input;
    c.contract.terms.rounding.probs = static_cast<std::uint32_t>(*profile.probability_storage);
    if (!contract_fault(c.contract.terms).empty()) return std::nullopt;
    return control_.outputs(c);
  }

  void add_valid_run(const Stage& stage, const std::string& kernel, const std::optional<StageBytes>& outputs,
                     bool is_ordinary) {
    const std::size_t profile = profile_index(stage.golden);
    if (!outputs || profile == stage.golden.profiles.size() || failing_stages(stage.golden, *outputs, profile) != 0)
      return;
    result_.valid.push_back({kernel, stage.golden.input.inputs.format, is_ordinary, trial(stage, *outputs, {})});
  }

  const AdequacyCases& cases_;
  const BundledKernel control_;
  std::map<Key, std::unique_ptr<Stage>> stages_;
  std::map<Format, std::vector<const AdequacyCase*>> pools_;
  PeerStudy result_;
};

}  // namespace

PeerStudy study_peers(const AdequacyCases& cases, const std::vector<AdequacyMutant>& mutants,
                      const std::vector<AdequacyRow>& rows, const std::string& of_id) {
  Study study(cases);
  study.add_contracts(mutants, rows);
  study.add_faults(of_id);
  study.add_valid();
  return study.take();
}

}  // namespace qkcts::cli
