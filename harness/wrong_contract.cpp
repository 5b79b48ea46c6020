// SPDX-License-Identifier: Apache-2.0
#include "harness/wrong_contract.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "conformance/mutant_catalogue.hpp"
#include "conformance/near_name.hpp"
#include "harness/adapter_error.hpp"

namespace qkcts {
namespace {

constexpr std::string_view mutant_option = "mutant=";

// Nothing is asked for that only another case has.
bool has_inputs(const ExecutionRequest& request, const qkcts_contract& terms) {
  if (!shape_fault(terms, request.shape).empty()) return false;
  const std::vector<InputRequirement> needs = required_inputs(terms, request.shape, request.inputs.format);
  return std::all_of(needs.begin(), needs.end(), [&](const InputRequirement& need) {
    return request.inputs.tensors[static_cast<std::size_t>(need.input)].has_value();
  });
}

class WrongContractRunner final : public AdapterRunner {
 public:
  WrongContractRunner(std::unique_ptr<AdapterRunner> runner, const CatalogueMutant& mutant)
      : runner_(std::move(runner)), mutant_(mutant) {}

  OpenAnswer open(bool prepare) override { return runner_->open(prepare); }

  RunOutcome run(const RunOrder& order) override {
    const ExecutionRequest& asked = order.request;
    const std::optional<qkcts_contract> wrong = contract_of(mutant_, asked.terms, &asked.shape);
    if (!wrong || !has_inputs(asked, *wrong)) return named(runner_->run(order));
    RunOrder changed = order;
    changed.request.terms = *wrong;
    changed.request.contract_json = canonical_json(Contract{mutant_.id, {}, {}, {}, *wrong});
    return named(runner_->run(changed));
  }

 private:
  RunOutcome named(RunOutcome outcome) const {
    for (Execution& execution : outcome.answer.executions)
      execution.implementation = fmt::format("scalar, mutant={}", mutant_.id);
    return outcome;
  }

  std::unique_ptr<AdapterRunner> runner_;
  const CatalogueMutant& mutant_;
};

// Beside the ids of the catalogue the adapter knows "none" and its own faults, each of which an entry names.
void require_fault(const std::string& id) {
  std::vector<std::string> known = {"none"};
  for (const CatalogueMutant& mutant : mutant_catalogue()) {
    if (id == mutant.fault) return;
    known.push_back(mutant.id);
  }
  if (id == known.front()) return;
  const std::string near = near_names(id, known);
  throw AdapterError(fmt::format("mutants: there is no mutant '{}'; {}`qkcts adapters --mutants` lists them", id,
                                 near.empty() ? "" : fmt::format("did you mean {}? ", near)));
}

}  // namespace

void choose_mutant(AdapterSpec& spec) {
  if (!spec.options.starts_with(mutant_option)) return;
  const std::string id = spec.options.substr(mutant_option.size());
  const CatalogueMutant* const mutant = find_catalogue_mutant(id);
  if (mutant == nullptr) return require_fault(id);
  if (!mutant->fault.empty()) spec.options = std::string(mutant_option) + mutant->fault;
  if (mutant->fields.empty()) return;
  spec.options = std::string(mutant_option) + "none";
  spec.wrong_contract = mutant->id;
}

std::unique_ptr<AdapterRunner> with_wrong_contract(std::unique_ptr<AdapterRunner> runner, const std::string& id) {
  return std::make_unique<WrongContractRunner>(std::move(runner), *find_catalogue_mutant(id));
}

}  // namespace qkcts
