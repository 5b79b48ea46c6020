// SPDX-License-Identifier: Apache-2.0
#include "harness/bundled_kernel.hpp"

#include <cstring>

#include "harness/adapter_runner.hpp"
#include "harness/judgement.hpp"

namespace qkcts {

BundledKernel::BundledKernel(const std::string& spec)
    : BundledKernel(spec, description_from_adapter(AdapterLibrary(resolve_adapter(spec).path).describe(), spec)) {}

BundledKernel::BundledKernel(const std::string& spec, AdapterDescription description)
    : spec_(spec), library_(resolve_adapter(spec).path), description_(std::move(description)) {
  std::string reason;
  usable_ = library_.probe(reason) == QKCTS_OK && library_.prepare(resolve_adapter(spec).options, reason) == QKCTS_OK;
}

std::optional<StageBytes> BundledKernel::outputs(const Case& c) const {
  if (!usable_ || !unsupported_reason(description_, c).empty()) return std::nullopt;
  ExecutionRequest request;
  request.terms = c.contract.terms;
  request.contract_json = canonical_json(c.contract);
  request.shape = c.shape;
  request.inputs = c.inputs;
  request.stages = stages_of(c.contract.terms) & description_.stages;
  request.alignment = description_.alignment;
  Execution execution = execute(library_, request, Placement::end_aligned);
  if (execution.status != QKCTS_OK || execution.violation != Verdict::pass) return std::nullopt;
  return std::move(execution.outputs);
}

std::vector<double> stage_values(const StageBytes& outputs, qkcts_stage stage, Format storage) {
  const std::vector<std::byte>& bytes = outputs[stage];
  const Format format = stage_format(stage, storage);
  const auto size = static_cast<std::size_t>(parameters(format).bits / 8);
  std::vector<double> values(bytes.size() / size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t pattern = 0;  // little-endian, as tensors are
    std::memcpy(&pattern, bytes.data() + i * size, size);
    values[i] = decode(format, pattern);
  }
  return values;
}

StageSet failing_stages(const GoldenCase& golden, const StageBytes& outputs, std::size_t profile) {
  StageSet failing = 0;
  for (const qkcts_stage stage : all_stages)
    if (golden.stages[stage].present && !outputs[stage].empty() &&
        judge_stage(golden, stage, profile, outputs[stage]).verdict == Verdict::fail)
      failing |= bit(stage);
  return failing;
}

}  // namespace qkcts
