// SPDX-License-Identifier: Apache-2.0
// One call of run(): buffers laid out and poisoned, the call made, and what can be seen of it afterwards.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "conformance/case.hpp"
#include "harness/adapter_library.hpp"
#include "harness/guarded_buffer.hpp"
#include "harness/tensor_layout.hpp"
#include "harness/verdict.hpp"

namespace qkcts {

// What run() is given, apart from the memory.
struct ExecutionRequest {
  qkcts_contract terms{};
  std::string contract_json;
  qkcts_shape shape{};
  CaseInputs inputs;
  StageSet stages = 0;        // to be written
  std::size_t alignment = 1;  // bytes that the adapter declares to need; at least the element's size is given
};

using StageBytes = std::array<std::vector<std::byte>, QKCTS_STAGE_COUNT>;  // empty: not asked for

struct Execution {
  std::uint32_t status = QKCTS_INTERNAL;  // a qkcts_status, or a number that is none
  std::string message;
  std::string implementation;
  Verdict violation = Verdict::pass;  // else one of the error verdicts: what the call did to memory
  std::string violation_detail;       // one line: which buffer, where
  double seconds = 0;                 // of the call alone
  StageBytes outputs;                 // poison where nothing was written
};

// May throw std::bad_alloc. An adapter that touches a guard ends the process (or, with the fault handler, the worker).
Execution execute(const AdapterLibrary& adapter, const ExecutionRequest& request, Placement placement,
                  TensorLayout layout = TensorLayout::dense);

}  // namespace qkcts
