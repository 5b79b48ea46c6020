// SPDX-License-Identifier: Apache-2.0
#include "harness/placed_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

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

// A whole number of elements. What is full already is copied, in blocks that stay in the cache.
void fill_with_poison(std::span<std::byte> bytes, Format format) {
  constexpr std::size_t block = 4096;
  const std::uint64_t pattern = poison_pattern(format);
  std::size_t full = std::min(bytes.size(), static_cast<std::size_t>(parameters(format).bits / 8));
  if (full > 0) std::memcpy(bytes.data(), &pattern, full);
  while (full < bytes.size()) {
    const std::size_t next = std::min({full, block, bytes.size() - full});
    std::memcpy(bytes.data() + full, bytes.data(), next);
    full += next;
  }
}

std::span<std::byte> all_of(GuardedBuffer& buffer) {
  return {buffer.data(), buffer.size()};
}

std::optional<Format> float_format(ElementType type) {
  if (type == ElementType::int32 || type == ElementType::boolean) return std::nullopt;
  return static_cast<Format>(type);
}

// What lies in the gaps of an input: NaN, or integers that name no row of anything.
void fill_gaps(GuardedBuffer& buffer, ElementType type) {
  if (const std::optional<Format> format = float_format(type)) return fill_with_poison(all_of(buffer), *format);
  std::fill(buffer.data(), buffer.data() + buffer.size(), std::byte{0xC5});
}

TensorAxes axes_of(Input input) {
  return input == Input::q || input == Input::k || input == Input::v ? TensorAxes::batch_head_token_lane
                                                                     : TensorAxes::others;
}

// Those of scores and what follows from them are heads, queries and keys, which nobody stores otherwise.
TensorAxes axes_of(qkcts_stage stage) {
  switch (stage) {
    case QKCTS_STAGE_SCORES:
    case QKCTS_STAGE_CAPPED:
    case QKCTS_STAGE_MASKED:
    case QKCTS_STAGE_PROBS:
    case QKCTS_STAGE_LSE:
      return TensorAxes::others;
    default:
      return TensorAxes::batch_head_token_lane;
  }
}

}  // namespace

PlacedCase::PlacedCase(const ExecutionRequest& request, Placement placement, TensorLayout layout)
    : request_(request),
      placement_(placement),
      layout_(layout),
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

PlacedCase::Placed PlacedCase::place(std::string name, ElementType type, const std::vector<std::int64_t>& shape,
                                     TensorAxes axes) {
  const std::size_t element = element_size(type), alignment = std::max(request_.alignment, element);
  Placed placed;
  placed.places.emplace(shape, layout_, axes, static_cast<std::int64_t>(alignment / element));
  placed.buffer = &add(std::move(name), placed.places->extent() * element, alignment);
  return placed;
}

const qkcts_tensor* PlacedCase::describe(const Placed& placed, ElementType type,
                                         const std::vector<std::int64_t>& shape) {
  auto* const extents = carve<std::int64_t>(shape.size());
  auto* const strides = carve<std::int64_t>(shape.size());
  std::copy(shape.begin(), shape.end(), extents);
  std::copy(placed.places->strides().begin(), placed.places->strides().end(), strides);
  auto* const tensor = carve<qkcts_tensor>();
  tensor->data = placed.buffer->data();
  tensor->byte_offset = placed.places->offset() * element_size(type);
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
    const auto input = static_cast<Input>(i);
    Placed placed = place(fmt::format("input {}", input_name(input)), tensor->type, tensor->shape, axes_of(input));
    if (layout_ != TensorLayout::dense) fill_gaps(*placed.buffer, tensor->type);
    placed.places->scatter(tensor->bytes, element_size(tensor->type), placed.buffer->data());
    placed.buffer->make_read_only();
    input_table_->*input_fields[i] = describe(placed, tensor->type, tensor->shape);
    inputs_[i] = std::move(placed);
  }
}

void PlacedCase::place_outputs() {
  output_table_ = carve<qkcts_outputs>();
  output_table_->struct_size = sizeof(qkcts_outputs);
  output_table_->count = QKCTS_STAGE_COUNT;
  for (const qkcts_stage stage : all_stages) {
    if ((request_.stages & bit(stage)) == 0) continue;
    const Format format = stage_format(stage, request_.inputs.format);
    const std::vector<std::int64_t> shape = stage_shape(stage, request_.shape);
    Placed placed = place(fmt::format("output {}", stage_name(stage)), element_type(format), shape, axes_of(stage));
    fill_with_poison(all_of(*placed.buffer), format);
    output_table_->stage[stage] = describe(placed, element_type(format), shape);
    outputs_[stage] = std::move(placed);
  }
}

const qkcts_run_args* PlacedCase::args(void* state) {
  const auto text = [](GuardedBuffer& buffer) {
    return qkcts_text{sizeof(qkcts_text), static_cast<std::uint32_t>(buffer.size()), 0, 0,
                      reinterpret_cast<char*>(buffer.data())};
  };
  text_table_ = &add("text descriptors", sizeof given_texts_, alignof(qkcts_text));
  given_texts_ = {text(*implementation_), text(*message_)};
  std::memcpy(text_table_->data(), given_texts_.data(), sizeof given_texts_);
  auto* const texts = reinterpret_cast<qkcts_text*>(text_table_->data());
  std::memset(implementation_->data(), 0, implementation_->size());
  std::memset(message_->data(), 0, message_->size());
  auto* const terms = carve<qkcts_contract>();
  *terms = request_.terms;
  auto* const shape = carve<qkcts_shape>();
  *shape = request_.shape;
  auto* const json = carve<char>(request_.contract_json.size() + 1);
  std::copy(request_.contract_json.begin(), request_.contract_json.end(), json);
  auto* const args = carve<qkcts_run_args>();
  *args = {sizeof(qkcts_run_args), 0, state, terms, json, shape, input_table_, output_table_, &texts[0], &texts[1]};
  descriptors_.make_read_only();
  return args;
}

std::optional<PlacedCase::Harm> PlacedCase::harm() const {
  for (std::size_t i = 0; i < input_count; ++i) {
    if (inputs_[i].buffer == nullptr) continue;
    const Tensor& tensor = *request_.inputs.tensors[i];
    if (inputs_[i].places->holds(tensor.bytes, element_size(tensor.type), inputs_[i].buffer->data())) continue;
    const std::vector<std::byte> now = inputs_[i].places->gather(inputs_[i].buffer->data(), element_size(tensor.type));
    const auto [changed, unused] = std::mismatch(tensor.bytes.begin(), tensor.bytes.end(), now.begin());
    if (changed != tensor.bytes.end()) {
      return Harm{Verdict::error_input_modified,
                  fmt::format("{} changed at byte {}", inputs_[i].buffer->name(), changed - tensor.bytes.begin())};
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
  if (std::optional<Harm> harm = harm_to_texts()) return harm;
  return harm_between_elements();
}

// Whoever thinks that the struct is another one writes to fields that are not his.
std::optional<PlacedCase::Harm> PlacedCase::harm_to_texts() const {
  if (text_table_ == nullptr) return std::nullopt;
  std::array<qkcts_text, 2> now{};
  std::memcpy(now.data(), text_table_->data(), sizeof now);
  for (std::size_t i = 0; i < now.size(); ++i) {
    const char* const name = i == 0 ? "implementation" : "message";
    if (now[i].struct_size != given_texts_[i].struct_size)
      return Harm{Verdict::error_abi, fmt::format("struct_size of the text `{}` was {} and became {}", name,
                                                  given_texts_[i].struct_size, now[i].struct_size)};
    if (now[i].capacity != given_texts_[i].capacity || now[i].text != given_texts_[i].text)
      return Harm{Verdict::error_abi,
                  fmt::format("the text `{}` came back with another buffer than it was given", name)};
  }
  return std::nullopt;
}

std::optional<PlacedCase::Harm> PlacedCase::harm_between_elements() const {
  if (layout_ == TensorLayout::dense) return std::nullopt;
  for (const qkcts_stage stage : all_stages) {
    const Placed& placed = outputs_[stage];
    if (placed.buffer == nullptr) continue;
    const Format format = stage_format(stage, request_.inputs.format);
    const std::uint64_t poison = poison_pattern(format);
    const std::size_t element = element_size(element_type(format));
    // What it would hold, had nothing but its elements been written.
    std::vector<std::byte> due(placed.buffer->size());
    fill_with_poison(due, format);
    placed.places->copy(placed.buffer->data(), element, due.data());
    if (due.empty() || std::memcmp(due.data(), placed.buffer->data(), due.size()) == 0) continue;
    for (const std::size_t gap : placed.places->gaps()) {
      if (std::memcmp(placed.buffer->data() + gap * element, &poison, element) == 0) continue;
      return Harm{Verdict::error_overrun,
                  fmt::format("{} was written between its elements, at byte {}: strides or byte_offset were ignored",
                              placed.buffer->name(), gap * element)};
    }
  }
  return std::nullopt;
}

StageBytes PlacedCase::outputs() const {
  StageBytes bytes;
  for (const qkcts_stage stage : all_stages) {
    const Placed& placed = outputs_[stage];
    if (placed.buffer == nullptr) continue;
    bytes[stage] = placed.places->gather(placed.buffer->data(),
                                         element_size(element_type(stage_format(stage, request_.inputs.format))));
  }
  return bytes;
}

bool PlacedCase::holds(const StageBytes& due, std::span<const std::uint32_t> entries, std::int64_t batch) const {
  if (!entries.empty() && layout_ != TensorLayout::dense) return false;
  const std::size_t copies = entries.empty() ? 1 : entries.size(),
                    parts = entries.empty() ? 1 : static_cast<std::size_t>(batch);
  for (const qkcts_stage stage : all_stages) {
    const Placed& placed = outputs_[stage];
    const std::size_t part = due[stage].size() / parts;
    if (placed.buffer == nullptr || part == 0) {
      if (placed.buffer != nullptr || !due[stage].empty()) return false;
      continue;
    }
    const std::size_t element = element_size(element_type(stage_format(stage, request_.inputs.format)));
    if (part * copies != extent_product(stage_shape(stage, request_.shape)) * element) return false;
    if (entries.empty()) {
      if (!placed.places->holds(due[stage], element, placed.buffer->data())) return false;
      continue;
    }
    for (std::size_t place = 0; place < copies; ++place)
      if (std::memcmp(placed.buffer->data() + place * part, due[stage].data() + entries[place] * part, part) != 0)
        return false;
  }
  return true;
}

std::string PlacedCase::text_of(const GuardedBuffer& buffer) {
  const char* const begin = reinterpret_cast<const char*>(buffer.data());
  return std::string(begin, std::find(begin, begin + buffer.size(), '\0'));
}

}  // namespace qkcts
