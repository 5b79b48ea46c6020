// SPDX-License-Identifier: Apache-2.0
#include "harness/handmade_case.hpp"

#include <cstring>

namespace qkcts {
namespace {

// Puts the elements, row by row, into the stage; both budgets are the same.
void fill(GoldenCase& golden, qkcts_stage stage, const std::vector<HandmadeElement>& elements) {
  GoldenStage& stored = golden.stages[stage];
  stored.present = true;
  stored.budgets.resize(golden.profiles.size());
  const Format format = stage_format(stage, golden.input.inputs.format);
  const auto length = static_cast<std::size_t>(row_length(stage, golden.input.shape));
  for (std::uint32_t row = 0; row < elements.size() / length; ++row) stored.values.rows.push_back(row);
  for (const HandmadeElement& element : elements) {
    stored.values.expected.push_back(encode(format, element.hi));
    stored.values.hi.push_back(element.hi);
    stored.values.lo.push_back(element.lo);
    stored.values.rule.push_back(element.rule);
    for (StageBudget& budget : stored.budgets) {
      budget.delta.push_back(element.delta);
      budget.trust.push_back(element.trust);
    }
  }
}

Tensor binary32_tensor(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  Tensor tensor = Tensor::zeros(ElementType::binary32, std::move(shape));
  std::memcpy(tensor.bytes.data(), values.data(), values.size() * sizeof(float));
  return tensor;
}

}  // namespace

GoldenCase plain_golden_case() {
  GoldenCase golden;
  golden.input.slug = "hand/plain";
  golden.input.contract.name = "plain_sdpa";
  golden.input.contract.terms.struct_size = sizeof(qkcts_contract);
  golden.input.contract.terms.version = QKCTS_CONTRACT_VERSION;
  golden.input.contract.terms.score.temperature = 1;
  golden.input.shape = {1, 1, 1, 2, 2, 4, 2};
  golden.input.inputs.format = Format::binary32;
  golden.input.inputs.set(Input::q, binary32_tensor({1, 1, 2, 4}, std::vector<float>(8, 0.0f)));
  golden.input.inputs.set(Input::k, binary32_tensor({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
  golden.input.inputs.set(Input::v, binary32_tensor({1, 1, 2, 2}, {1, 2, 3, 5}));
  golden.family = "by_hand";
  golden.description = "every score is 0";
  golden.profiles = {"f32", "f32_ftz"};
  const float delta = 0x1p-20f;
  const HandmadeElement zero = {0, 0x1p-140f}, half = {0.5, delta}, two = {2, delta}, mean = {3.5, delta};
  const HandmadeElement log_two = {0x1.62e42fefa39efp-1, delta, ElementRule::budget, Trust::judged, 53};
  fill(golden, QKCTS_STAGE_SCORES, {zero, zero, zero, zero});
  fill(golden, QKCTS_STAGE_PROBS, {half, half, half, half});
  fill(golden, QKCTS_STAGE_LSE, {log_two, log_two});
  fill(golden, QKCTS_STAGE_OUTPUT, {two, mean, two, mean});
  return golden;
}

GoldenCase plain_golden_batch() {
  GoldenCase golden = plain_golden_case();
  golden.input.slug = "hand/batch";
  golden.input.shape.batch = 2;
  const std::vector<float> keys = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8};
  golden.input.inputs.set(Input::q, binary32_tensor({2, 1, 2, 4}, std::vector<float>(16, 0.0f)));
  golden.input.inputs.set(Input::k, binary32_tensor({2, 1, 2, 4}, keys));
  golden.input.inputs.set(Input::v, binary32_tensor({2, 1, 2, 2}, {1, 2, 3, 5, 5, 1, 7, 3}));
  golden.stages = {};
  const float delta = 0x1p-20f;
  const HandmadeElement two = {2, delta}, mean = {3.5, delta}, six = {6, delta};
  const HandmadeElement log_two = {0x1.62e42fefa39efp-1, delta, ElementRule::budget, Trust::judged, 53};
  fill(golden, QKCTS_STAGE_SCORES, std::vector<HandmadeElement>(8, {0, 0x1p-140f}));
  fill(golden, QKCTS_STAGE_PROBS, std::vector<HandmadeElement>(8, {0.5, delta}));
  fill(golden, QKCTS_STAGE_LSE, std::vector<HandmadeElement>(4, log_two));
  fill(golden, QKCTS_STAGE_OUTPUT, {two, mean, two, mean, six, two, six, two});
  return golden;
}

GoldenCase one_row_case(qkcts_stage stage, Format storage, const std::vector<HandmadeElement>& elements) {
  GoldenCase golden;
  golden.input.slug = "hand/one_row";
  golden.input.contract.name = "plain_sdpa";
  const auto n = static_cast<std::int64_t>(elements.size());
  golden.input.shape = {1, 1, 1, 1, n, n, n};
  golden.input.inputs.format = storage;
  golden.profiles = {"f32"};
  fill(golden, stage, elements);
  return golden;
}

std::vector<std::byte> stage_bytes(Format format, const std::vector<double>& values) {
  const auto size = static_cast<std::size_t>(parameters(format).bits / 8);
  std::vector<std::byte> bytes(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t pattern = encode(format, values[i]);
    std::memcpy(bytes.data() + i * size, &pattern, size);
  }
  return bytes;
}

}  // namespace qkcts
