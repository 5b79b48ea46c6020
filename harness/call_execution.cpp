// SPDX-License-Identifier: Apache-2.0
#include "harness/call_execution.hpp"

#include <optional>

#include "harness/batch_arrangement.hpp"
#include "harness/placed_case.hpp"

namespace qkcts {

ExecutedCall execute_call(const AdapterLibrary& adapter, const ExecutionRequest& request, const Call& call,
                          const StageBytes* first) {
  std::optional<ExecutionRequest> arranged;  // a copy of all inputs, where those of the case will not do
  if (!call.entries.empty() || stages_of_call(call, request.stages) != request.stages)
    arranged = request_of_call(request, call);
  PlacedCase placed(arranged ? *arranged : request, call.placement, layout_of(call.variant));
  ExecutedCall result;
  result.execution = run_placed(adapter, placed);
  if (result.execution.status != QKCTS_OK) return result;
  result.same_as_first = first != nullptr && placed.holds(*first, call.entries, request.shape.batch);
  if (!result.same_as_first) result.execution.outputs = placed.outputs();
  return result;
}

}  // namespace qkcts
