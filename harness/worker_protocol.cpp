// SPDX-License-Identifier: Apache-2.0
#include "harness/worker_protocol.hpp"

namespace qkcts {
namespace {

void write(MessageWriter& message, const Tensor& tensor) {
  message.put(tensor.type);
  message.put(static_cast<std::uint64_t>(tensor.shape.size()));
  for (const std::int64_t extent : tensor.shape) message.put(extent);
  message.put_bytes(tensor.bytes);
}

Tensor read_tensor(MessageReader& message) {
  Tensor tensor;
  tensor.type = message.get<ElementType>();
  for (auto axes = message.get<std::uint64_t>(); axes > 0; --axes) tensor.shape.push_back(message.get<std::int64_t>());
  tensor.bytes = message.get_bytes();
  return tensor;
}

Verdict read_verdict(MessageReader& message) {
  const auto verdict = message.get<Verdict>();
  if (verdict > Verdict::error_abi) throw MessageError("the worker reports an unknown verdict");
  return verdict;
}

void write(MessageWriter& message, const Execution& execution) {
  message.put(execution.status);
  message.put_text(execution.message);
  message.put_text(execution.implementation);
  message.put(execution.violation);
  message.put_text(execution.violation_detail);
  message.put(execution.seconds);
  for (const auto& bytes : execution.outputs) message.put_bytes(bytes);
}

Execution read_execution(MessageReader& message) {
  Execution execution;
  execution.status = message.get<std::uint32_t>();
  execution.message = message.get_text();
  execution.implementation = message.get_text();
  execution.violation = read_verdict(message);
  execution.violation_detail = message.get_text();
  execution.seconds = message.get<double>();
  for (auto& bytes : execution.outputs) bytes = message.get_bytes();
  return execution;
}

}  // namespace

bool fits(const RunAnswer& answer, const RunOrder& order) {
  if (answer.executions.size() != order.calls.size()) return false;
  const ExecutionRequest& request = order.request;
  for (std::size_t call = 0; call < answer.executions.size(); ++call) {
    const Execution& execution = answer.executions[call];
    const bool same = answer.same_as_first[call];
    const bool ended_well = execution.status == QKCTS_OK && execution.violation == Verdict::pass;
    if (!ended_well || (same && call > 0)) continue;
    if (same) return false;
    qkcts_shape shape = request.shape;
    if (!order.calls[call].entries.empty()) shape.batch = static_cast<std::int64_t>(order.calls[call].entries.size());
    const StageSet stages = stages_of_call(order.calls[call], request.stages);
    for (const qkcts_stage stage : all_stages) {
      const Format format = stage_format(stage, request.inputs.format);
      const bool asked = (stages & bit(stage)) != 0;
      const std::size_t size =
          extent_product(stage_shape(stage, shape)) * static_cast<std::size_t>(parameters(format).bits / 8);
      if (execution.outputs[stage].size() != (asked ? size : 0)) return false;
    }
  }
  return true;
}

void write(MessageWriter& message, const OpenOrder& order) {
  message.put(Order::open);
  message.put_text(order.path);
  message.put_text(order.options);
  message.put(order.prepare);
  message.put(order.kind);
  message.put_text(order.folder);
  message.put(order.strictness);
}

OpenOrder read_open_order(MessageReader& message) {
  OpenOrder order;
  order.path = message.get_text();
  order.options = message.get_text();
  order.prepare = message.get_flag();
  order.kind = message.get<AdapterKind>();
  order.folder = message.get_text();
  order.strictness = message.get<Strictness>();
  return order;
}

void write(MessageWriter& message, const OpenAnswer& answer) {
  message.put_text(answer.error);
  message.put(answer.verdict);
  message.put_text(answer.description);
  message.put(answer.probe);
  message.put_text(answer.probe_reason);
}

OpenAnswer read_open_answer(MessageReader& message) {
  OpenAnswer answer;
  answer.error = message.get_text();
  answer.verdict = read_verdict(message);
  answer.description = message.get_text();
  answer.probe = message.get<std::uint32_t>();
  answer.probe_reason = message.get_text();
  return answer;
}

void write(MessageWriter& message, const RunOrder& order) {
  message.put(Order::run);
  const ExecutionRequest& request = order.request;
  message.put(request.terms);
  message.put_text(request.contract_json);
  message.put(request.shape);
  message.put(request.inputs.format);
  for (const auto& tensor : request.inputs.tensors) {
    message.put(tensor.has_value());
    if (tensor) write(message, *tensor);
  }
  message.put(request.stages);
  message.put(request.alignment);
  message.put(static_cast<std::uint64_t>(order.calls.size()));
  for (const Call& call : order.calls) {
    message.put(call.variant);
    message.put(call.placement);
    message.put(static_cast<std::uint64_t>(call.entries.size()));
    for (const std::uint32_t entry : call.entries) message.put(entry);
  }
}

void write_close_order(MessageWriter& message) {
  message.put(Order::close);
}

RunOrder read_run_order(MessageReader& message) {
  RunOrder order;
  ExecutionRequest& request = order.request;
  request.terms = message.get<qkcts_contract>();
  request.contract_json = message.get_text();
  request.shape = message.get<qkcts_shape>();
  request.inputs.format = message.get<Format>();
  for (auto& tensor : request.inputs.tensors) {
    if (message.get_flag()) tensor = read_tensor(message);
  }
  request.stages = message.get<StageSet>();
  request.alignment = message.get<std::size_t>();
  for (auto n = message.get<std::uint64_t>(); n > 0; --n) {
    Call& call = order.calls.emplace_back();
    call.variant = message.get<Variant>();
    call.placement = message.get<Placement>();
    for (auto m = message.get<std::uint64_t>(); m > 0; --m) call.entries.push_back(message.get<std::uint32_t>());
  }
  return order;
}

void write(MessageWriter& message, const RunAnswer& answer) {
  message.put(answer.out_of_memory);
  message.put(answer.death);
  message.put_text(answer.death_detail);
  message.put(static_cast<std::uint64_t>(answer.executions.size()));
  for (std::size_t i = 0; i < answer.executions.size(); ++i) {
    const bool same = answer.same_as_first[i];
    message.put(same);
    write(message, answer.executions[i]);
  }
}

RunAnswer read_run_answer(MessageReader& message) {
  RunAnswer answer;
  answer.out_of_memory = message.get_flag();
  answer.death = read_verdict(message);
  answer.death_detail = message.get_text();
  for (auto n = message.get<std::uint64_t>(); n > 0; --n) {
    answer.same_as_first.push_back(message.get_flag());
    answer.executions.push_back(read_execution(message));
  }
  return answer;
}

}  // namespace qkcts
