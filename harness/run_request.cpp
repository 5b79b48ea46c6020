// SPDX-License-Identifier: Apache-2.0
#include "harness/run_request.hpp"

#include "harness/offline_runner.hpp"

namespace qkcts {

std::unique_ptr<AdapterRunner> adapter_runner(const RunRequest& request) {
  if (request.adapter.kind == AdapterKind::results) return results_runner(request.adapter);
  if (request.isolation == Isolation::in_process) return in_process_runner(request.adapter);
  return worker_runner(request.adapter, request.limits);
}

AdapterDescription described(const RunRequest& request, const std::string& description) {
  AdapterDescription result = description_from_adapter(description, request.adapter.given);
  // Where its tensors lie in memory is a command's own affair.
  if (request.adapter.kind == AdapterKind::command) result.layouts.clear();
  return result;
}

}  // namespace qkcts
