// SPDX-License-Identifier: Apache-2.0
#include "vectors/layout.hpp"

#include "vectors/schema.hpp"

namespace qkcts {
namespace {

std::string inner_dimension(qkcts_stage stage) {
  switch (stage) {
    case QKCTS_STAGE_SCORES:
    case QKCTS_STAGE_CAPPED:
    case QKCTS_STAGE_MASKED:
    case QKCTS_STAGE_PROBS:
      return "key";
    case QKCTS_STAGE_V_NORM:
    case QKCTS_STAGE_OUTPUT:
      return "v_lane";
    default:
      return "lane";
  }
}

}  // namespace

StoredType stored_type(ElementType type) {
  switch (type) {
    case ElementType::binary64:
      return StoredType::binary64;
    case ElementType::binary32:
      return StoredType::binary32;
    case ElementType::binary16:
      return StoredType::binary16;
    case ElementType::bfloat16:
      return StoredType::bfloat16;
    case ElementType::int32:
      return StoredType::int32;
    case ElementType::boolean:
      break;
  }
  return StoredType::uint8;
}

std::vector<std::string> input_dimensions(Input input, std::size_t rank) {
  switch (input) {
    case Input::q:
      return {"batch", "q_head", "query", "lane"};
    case Input::k:
      return {"batch", "kv_head", "key", "lane"};
    case Input::v:
      return {"batch", "kv_head", "key", "v_lane"};
    case Input::q_x:
      return {"batch", "query", "entry"};
    case Input::k_x:
      return {"batch", "key", "entry"};
    case Input::q_weight:
    case Input::k_weight:
      return {"entry", "head_lane"};
    case Input::q_weight_bias:
    case Input::k_weight_bias:
      return {"head_lane"};
    case Input::cos:
    case Input::sin:
      return rank == 3 ? std::vector<std::string>{"q_head", "position", "pair"}
                       : std::vector<std::string>{"position", "pair"};
    case Input::q_position_ids:
    case Input::q_document_ids:
      return {"batch", "query"};
    case Input::k_position_ids:
    case Input::k_document_ids:
      return {"batch", "key"};
    case Input::mask:
    case Input::bias:
      return {"batch", "q_head", "query", "key"};
    case Input::kv_len:
    case Input::prefix_len:
      return {"batch"};
    case Input::alibi_slopes:
    case Input::sink:
      return {"q_head"};
    default:  // gains, biases, scale: [1], [D], [H], [H*D], [E] or [H, D], as the contract's axes say
      return rank == 2 ? std::vector<std::string>{"head", "lane"} : std::vector<std::string>{"entry"};
  }
}

bool is_of_keys(qkcts_stage stage) {
  return stage == QKCTS_STAGE_K_PROJ || stage == QKCTS_STAGE_K_NORM || stage == QKCTS_STAGE_K_ROPE ||
         stage == QKCTS_STAGE_V_NORM;
}

StageLayout stage_layout(qkcts_stage stage, const qkcts_shape& shape, std::uint64_t stored_rows) {
  const bool of_keys = is_of_keys(stage);
  const auto length = static_cast<std::uint64_t>(row_length(stage, shape));
  const std::string inner = inner_dimension(stage);
  if (stored_rows != static_cast<std::uint64_t>(row_count(stage, shape)))
    return {{stored_rows, length}, {std::string(schema::rows_dimension), inner}};
  StageLayout layout;
  for (const std::int64_t extent : stage_shape(stage, shape))
    layout.extents.push_back(static_cast<std::uint64_t>(extent));
  layout.dimensions = {"batch", of_keys ? "kv_head" : "q_head", of_keys ? "key" : "query"};
  if (layout.extents.size() == 4) layout.dimensions.push_back(inner);
  return layout;
}

StageLayout per_profile(const StageLayout& layout, std::size_t profiles) {
  StageLayout result = layout;
  result.extents.insert(result.extents.begin(), profiles);
  result.dimensions.emplace(result.dimensions.begin(), schema::profile_dimension);
  return result;
}

StageLayout separation_layout(std::size_t neighbours, StageSet stages, std::size_t profiles) {
  std::size_t count = 0;
  for (const qkcts_stage stage : all_stages)
    if ((stages & bit(stage)) != 0) ++count;
  return {{neighbours, count, profiles}, {"neighbour", "stage", std::string(schema::profile_dimension)}};
}

StageLayout with_coordinates(const StageLayout& layout) {
  StageLayout result = layout;
  result.extents.push_back(2);
  result.dimensions.emplace_back("coordinate");
  return result;
}

}  // namespace qkcts
