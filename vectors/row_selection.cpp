// SPDX-License-Identifier: Apache-2.0
#include "vectors/row_selection.hpp"

#include <numeric>
#include <set>

#include "conformance/contract.hpp"
#include "vectors/counter_generator.hpp"

namespace qkcts {
namespace {

constexpr std::uint32_t row_stream = 64;  // plus the stage; apart from the streams of the input families
constexpr std::uint64_t tiles[] = {128, 256, 64, 16, 32};

std::vector<std::uint32_t> drawn_rows(std::uint64_t heads, std::uint64_t tokens, std::uint32_t limit,
                                      const RandomStream& stream) {
  const std::uint64_t all = heads * tokens;
  std::set<std::uint64_t> rows{0, all - 1};
  std::uint64_t draws = 0;
  for (const std::uint64_t tile : tiles)
    for (const std::uint64_t token : {tile - 1, tile})
      if (token < tokens && rows.size() < limit) rows.insert(stream.below(draws++, heads) * tokens + token);
  while (rows.size() < limit) rows.insert(stream.below(draws++, all));
  while (rows.size() > limit) rows.erase(std::prev(rows.end()));
  return {rows.begin(), rows.end()};
}

}  // namespace

StageRows select_rows(const qkcts_contract& terms, const qkcts_shape& shape, std::uint32_t limit, std::uint64_t seed) {
  StageRows selected;
  for (const qkcts_stage stage : all_stages) {
    if ((stages_of(terms) & bit(stage)) == 0) continue;
    const auto all = static_cast<std::uint64_t>(row_count(stage, shape));
    const bool whole = limit == 0 || limit >= all || stage == QKCTS_STAGE_OUTPUT || stage == QKCTS_STAGE_LSE;
    if (whole) {
      selected[stage].resize(all);
      std::iota(selected[stage].begin(), selected[stage].end(), 0U);
      continue;
    }
    const auto tokens = static_cast<std::uint64_t>(stage_shape(stage, shape)[2]);
    selected[stage] = drawn_rows(all / tokens, tokens, limit, RandomStream(seed, row_stream + stage));
  }
  return selected;
}

}  // namespace qkcts
