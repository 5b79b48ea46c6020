// SPDX-License-Identifier: Apache-2.0
// A bundled adapter in this process: what it makes of a case under a contract that need not be the case's own. Bundled
// kernels neither crash nor hang, but for mutants made to, which are not asked. Several objects may be used at once.
#pragma once

#include <optional>
#include <string>

#include "harness/adapter_description.hpp"
#include "harness/adapter_library.hpp"
#include "harness/execution.hpp"
#include "vectors/golden_case.hpp"

namespace qkcts {

class BundledKernel {
 public:
  // "scalar", "mutants?mutant=ID". Throws AdapterError.
  explicit BundledKernel(const std::string& spec);
  // Of a library that was described before: a description is long, and its schema is checked each time.
  BundledKernel(const std::string& spec, AdapterDescription description);

  const std::string& spec() const { return spec_; }
  const AdapterDescription& description() const { return description_; }
  bool is_usable() const { return usable_; }

  // Every stage of `c`, whole; nothing where it lies outside of what the adapter declares, or is refused.
  std::optional<StageBytes> outputs(const Case& c) const;

 private:
  std::string spec_;
  AdapterLibrary library_;
  AdapterDescription description_;
  bool usable_ = false;
};

// Decoded elements of a stage, whole.
std::vector<double> stage_values(const StageBytes& outputs, qkcts_stage stage, Format storage);

// Stages that fail by this profile of the case.
StageSet failing_stages(const GoldenCase& golden, const StageBytes& outputs, std::size_t profile);

}  // namespace qkcts
