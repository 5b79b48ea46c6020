// SPDX-License-Identifier: Apache-2.0
#include "harness/placed_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "harness/judgement.hpp"

namespace qkcts {
namespace {

constexpr std::size_t text_capacity = 1024;
constexpr std::size_t descriptor_alignment = 16;

// Room for the argument structs, all tensors with up to 8 axes each, and the JSON.
std::size_t descriptor_bytes(const ExecutionRequest& request) {
  constexpr std::size_t tensors = input_count + QKCTS_STAGE_COUNT;
  return tensors * (sizeof(qkcts_tensor) + 2 * 8 * sizeof(std::int64_t)) + sizeof(qkcts_inputs) +
         sizeof(qkcts_outputs) + sizeof(qkcts_run_args) + sizeof(qkcts_contract) + sizeof(qkcts_shape) +
         request.contract_json.size() + 1 + (3 * tensors + 8) * descriptor_alignment;
}

struct TypeCode {
  std::uint8_t code;
  std::uint8_t bits;
};

TypeCode type_code(ElementType type) {
  switch (type) {
    case ElementType::binary64:
      return {QKCTS_DL_FLOAT, 64};
    case ElementType::binary32:
      return {QKCTS_DL_FLOAT, 32};
    case ElementType::binary16:
      return {QKCTS_DL_FLOAT, 16};
    case ElementType::bfloat16:
      return {QKCTS_DL_BFLOAT, 16};
    case ElementType::int32:
      return {QKCTS_DL_INT, 32};
    case ElementType::boolean:
      return {QKCTS_DL_BOOL, 8};
  }
  return {};
}

// The fields of qkcts_inputs in the order of `Input`.
constexpr std::array<const qkcts_tensor * qkcts_inputs::*, input_count> input_fields = {&qkcts_inputs::q,
                                                                                        &qkcts_inputs::k,
                                                                                        &qkcts_inputs::v,
                                                                                        &qkcts_inputs::q_gain,
                                                                                        &qkcts_inputs::k_gain,
                                                                                        &qkcts_inputs::q_bias,
                                                                                        &qkcts_inputs::k_bias,
                                                                                        &qkcts_inputs::cos,
                                                                                        &qkcts_inputs::sin,
                                                                                        &qkcts_inputs::q_position_ids,
                                                                                        &qkcts_inputs::k_position_ids,
                                                                                        &qkcts_inputs::scale,
                                                                                        &qkcts_inputs::mask,
                                                                                        &qkcts_inputs::bias,
                                                                                        &qkcts_inputs::kv_len,
                                                                                        &qkcts_inputs::alibi_slopes,
                                                                                        &qkcts_inputs::sink,
                                                                                        &qkcts_inputs::q_document_ids,
                                                                                        &qkcts_inputs::k_document_ids,
                                                                                        &qkcts_inputs::prefix_len,
                                                                                        &qkcts_inputs::v_gain,
                                                                                        &qkcts_inputs::v_bias,
                                                                                        &qkcts_inputs::q_x,
                                                                                        &qkcts_inputs::k_x,
                                                                                        &qkcts_inputs::q_weight,
                                                                                        &qkcts_inputs::k_weight,
                                                                                        &qkcts_inputs::q_weight_bias,
                                                                                        &qkcts_inputs::k_weight_bias,
                                                                                        &qkcts_inputs::q_x_gain,
                                                                                        &qkcts_inputs::q_x_bias,
                                                                                        &qkcts_inputs::k_x_gain,
                                                                                        &qkcts_inputs::k_x_bias};
// An input that is missing above would be a null member pointer.
static_assert(input_fields.back() == &qkcts_inputs::k_x_bias && sizeof(qkcts_inputs) == 8 + 8 * input_count);

void fill_with_poison(GuardedBuffer& buffer, Format format) {
  const std::uint64_t pattern = poison_pattern(format);
  const auto size = static_cast<std::size_t>(parameters(format).bits / 8);
  for (std::size_t at = 0; at < buffer.size(); at += size) std::memcpy(buffer.data() + at, &pattern, size);
}

}  // namespace

PlacedCase::PlacedCase(const ExecutionRequest& request, Placement placement)
    : request_(request),
      placement_(placement),
      descriptors_("descriptors", descriptor_bytes(request), descriptor_alignment, placement) {
  place_inputs();
  place_outputs();
  implementation_ = &add("implementation text", text_capacity, 1);
  message_ = &add("message text", text_capacity, 1);
}

GuardedBuffer& PlacedCase::add(std::string name, std::size_t size, std::size_t alignment) {
  buffers_.push_back(std::make_unique<GuardedBuffer>(std::move(name), size, alignment, placement_));
  return *buffers_.back();
}

template <class T>
T* PlacedCase::carve(std::size_t count) {
  T* const object = reinterpret_cast<T*>(descriptors_.data() + carved_);
  const std::size_t bytes = count * sizeof(T);
  carved_ += (bytes + descriptor_alignment - 1) / descriptor_alignment * descriptor_alignment;
  std::memset(object, 0, bytes);
  return object;
}

const qkcts_tensor* PlacedCase::describe(GuardedBuffer& data, ElementType type,
                                         const std::vector<std::int64_t>& shape) {
  auto* const extents = carve<std::int64_t>(shape.size());
  auto* const strides = carve<std::int64_t>(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    extents[axis] = shape[axis];
    strides[axis] = stride;
    stride *= shape[axis];
  }
  auto* const tensor = carve<qkcts_tensor>();
  tensor->data = data.data();
  tensor->device = {QKCTS_DL_CPU, 0};
  tensor->ndim = static_cast<std::int32_t>(shape.size());
  tensor->dtype = {type_code(type).code, type_code(type).bits, 1};
  tensor->shape = extents;
  tensor->strides = strides;
  return tensor;
}

void PlacedCase::place_inputs() {
  input_table_ = carve<qkcts_inputs>();
  input_table_->struct_size = sizeof(qkcts_inputs);
  input_table_->format = static_cast<std::uint32_t>(request_.inputs.format);
  for (std::size_t i = 0; i < input_count; ++i) {
    const auto& tensor = request_.inputs.tensors[i];
    if (!tensor) continue;
    const std::size_t alignment = std::max(request_.alignment, element_size(tensor->type));
    GuardedBuffer& buffer =
        add(fmt::format("input {}", input_name(static_cast<Input>(i))), tensor->bytes.size(), alignment);
    std::copy(tensor->bytes.begin(), tensor->bytes.end(), buffer.data());
    buffer.make_read_only();
    inputs_[i] = &buffer;
    input_table_->*input_fields[i] = describe(buffer, tensor->type, tensor->shape);
  }
}

void PlacedCase::place_outputs() {
  output_table_ = carve<qkcts_outputs>();
  output_table_->struct_size = sizeof(qkcts_outputs);
  output_table_->count = QKCTS_STAGE_COUNT;
  for (const qkcts_stage stage : all_stages) {
    if ((request_.stages & bit(stage)) == 0) continue;
    const Format format = stage_format(stage, request_.inputs.format);
    const auto element = static_cast<std::size_t>(parameters(format).bits / 8);
    const std::vector<std::int64_t> shape = stage_shape(stage, request_.shape);
    GuardedBuffer& buffer = add(fmt::format("output {}", stage_name(stage)), extent_product(shape) * element,
                                std::max(request_.alignment, element));
    fill_with_poison(buffer, format);
    outputs_[stage] = &buffer;
    output_table_->stage[stage] = describe(buffer, element_type(format), shape);
  }
}

const qkcts_run_args* PlacedCase::args(void* state) {
  const auto text = [](GuardedBuffer& buffer) {
    return qkcts_text{sizeof(qkcts_text), static_cast<std::uint32_t>(buffer.size()), 0, 0,
                      reinterpret_cast<char*>(buffer.data())};
  };
  implementation_text_ = text(*implementation_);
  message_text_ = text(*message_);
  std::memset(implementation_->data(), 0, implementation_->size());
  std::memset(message_->data(), 0, message_->size());
  auto* const terms = carve<qkcts_contract>();
  *terms = request_.terms;
  auto* const shape = carve<qkcts_shape>();
  *shape = request_.shape;
  auto* const json = carve<char>(request_.contract_json.size() + 1);
  std::copy(request_.contract_json.begin(), request_.contract_json.end(), json);
  auto* const args = carve<qkcts_run_args>();
  *args = {sizeof(qkcts_run_args), 0, state, terms, json, shape, input_table_, output_table_, &implementation_text_,
           &message_text_};
  descriptors_.make_read_only();
  return args;
}

std::optional<PlacedCase::Harm> PlacedCase::harm() const {
  for (std::size_t i = 0; i < input_count; ++i) {
    if (inputs_[i] == nullptr) continue;
    const std::vector<std::byte>& original = request_.inputs.tensors[i]->bytes;
    const auto [changed, unused] = std::mismatch(original.begin(), original.end(), inputs_[i]->data());
    if (changed != original.end()) {
      return Harm{Verdict::error_input_modified,
                  fmt::format("{} changed at byte {}", inputs_[i]->name(), changed - original.begin())};
    }
  }
  for (const auto& buffer : buffers_) {
    const std::optional<GuardedSide> side = buffer->damage();
    if (!side) continue;
    const bool before = *side == GuardedSide::before_start;
    return Harm{before ? Verdict::error_underrun : Verdict::error_overrun,
                fmt::format("bytes {} {} of {} bytes were overwritten",
                            before ? "before the start of" : "behind the end of", buffer->name(), buffer->size())};
  }
  return std::nullopt;
}

StageBytes PlacedCase::outputs() const {
  StageBytes bytes;
  for (const qkcts_stage stage : all_stages) {
    if (outputs_[stage] == nullptr) continue;
    bytes[stage].assign(outputs_[stage]->data(), outputs_[stage]->data() + outputs_[stage]->size());
  }
  return bytes;
}

std::string PlacedCase::text_of(const GuardedBuffer& buffer) {
  const char* const begin = reinterpret_cast<const char*>(buffer.data());
  return std::string(begin, std::find(begin, begin + buffer.size(), '\0'));
}

}  // namespace qkcts
