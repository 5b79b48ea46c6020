// SPDX-License-Identifier: Apache-2.0
#include "harness/execution.hpp"

#include <chrono>

#include "harness/floating_point_environment.hpp"
#include "harness/placed_case.hpp"

namespace qkcts {

Execution run_placed(const AdapterLibrary& adapter, PlacedCase& placed) {
  const qkcts_run_args* const args = placed.args(adapter.state());
  Execution result;
  const auto start = std::chrono::steady_clock::now();
  {
    const FloatingPointEnvironment environment;
    result.status = status_number(adapter.table().run(args));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.implementation = placed.implementation();
  result.message = placed.message();
  if (const auto harm = placed.harm()) {
    result.violation = harm->verdict;
    result.violation_detail = harm->detail;
  }
  return result;
}

Execution execute(const AdapterLibrary& adapter, const ExecutionRequest& request, Placement placement,
                  TensorLayout layout) {
  PlacedCase placed(request, placement, layout);
  Execution result = run_placed(adapter, placed);
  if (result.status == QKCTS_OK) result.outputs = placed.outputs();
  return result;
}

}  // namespace qkcts
