// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

// ---- far_positions ------------------------------------------------------------------------------------------------

constexpr std::int32_t farthest = 32768;

std::string far_positions_fault(const Draft& draft) {
  if (!draft.rotates()) return "needs a rotary embedding";
  return draft.has_tables() ? "needs computed angles: tables would have 32,769 rows" : std::string();
}

// From 0 to 32,768, neighbours far apart: the error of an angle grows with the position, not with the distance. Most
// tokens stand nearer than the farthest, whose scores binary32 may know to a hundredth only, so that small ones say
// nothing.
void draw_far_positions(Draft& draft) {
  constexpr std::int32_t queries[] = {farthest, 0, 2047, 31, 511, 255, 7};        // of the first batch entry
  constexpr std::int32_t keys[] = {0, farthest, 127, 4095, 1, 255, 3, 1023, 31};  // of the last one
  const qkcts_shape& s = draft.shape;
  const RandomStream order = draft.stream(Draw::order);
  draft.first_position = 0;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const auto near = [&](std::uint64_t index, std::int64_t t) {
      return static_cast<std::int32_t>(order.below(index, 4096U >> static_cast<unsigned>(t % 8)));
    };
    for (std::int64_t t = 0; t < s.q_len; ++t) {
      const auto at = static_cast<std::size_t>(b * s.q_len + t);
      draft.q_position_ids[at] = b == 0 && t < std::ssize(queries) ? queries[t] : near(at, t);
    }
    for (std::int64_t t = 0; t < s.k_len; ++t) {
      const auto at = static_cast<std::size_t>(b * s.k_len + t);
      draft.k_position_ids[at] =
          b == s.batch - 1 && t < std::ssize(keys) ? keys[t] : near(at + (std::uint64_t{1} << 32U), t);
    }
  }
}

std::string far_positions_broken(const GoldenCase& golden) {
  for (const Input input : {Input::q_position_ids, Input::k_position_ids}) {
    const std::vector<double> ids = golden.input.inputs.at(input).values();
    const auto [low, high] = std::minmax_element(ids.begin(), ids.end());
    if (*high != farthest || (ids.size() > 1 && *low != 0))
      return fmt::format("{} run from {} to {}", input_name(input), *low, *high);
  }
  return {};
}

// ---- temperature_steps --------------------------------------------------------------------------------------------

constexpr double farthest_step = 0x1p24;  // a position is a number of binary32 up to there

std::string temperature_steps_fault(const Draft& draft) {
  const qkcts_logits& logits = draft.contract.terms.logits;
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE) return "needs a query temperature";
  if (logits.query_temperature != QKCTS_QUERY_TEMPERATURE_LOG) return "needs a query temperature that steps";
  if (draft.has_tables()) return "needs positions that no table limits";
  if (logits.query_period + logits.query_shift > farthest_step / 16) return "its first steps lie too far away";
  return draft.shape.q_len < 2 ? "needs at least 2 queries" : std::string();
}

double floor_of(const qkcts_logits& logits, double position) {
  return std::floor((position + logits.query_shift) / logits.query_period);
}

// Queries 2t and 2t + 1 stand on both sides of a step, the last position below it and the first above.
void draw_temperature_steps(Draft& draft) {
  constexpr double steps[] = {1, 2, 7, 100, 1000};
  const qkcts_logits& logits = draft.contract.terms.logits;
  const double before_zero = std::floor(logits.query_shift / logits.query_period);  // steps at positions below 1
  draft.first_position = 0;
  for (std::size_t i = 0; i < draft.q_position_ids.size(); ++i) {
    const auto t = i % static_cast<std::size_t>(draft.shape.q_len);
    const auto b = i / static_cast<std::size_t>(draft.shape.q_len);
    double step = before_zero + steps[(t / 2 + b) % std::size(steps)];
    if (step * logits.query_period > farthest_step) step = before_zero + 1;
    const double first_above = step * logits.query_period - logits.query_shift;
    draft.q_position_ids[i] = static_cast<std::int32_t>(first_above) - (t % 2 == 0 ? 1 : 0);
  }
}

std::string temperature_steps_broken(const GoldenCase& golden) {
  const qkcts_logits& logits = golden.input.contract.terms.logits;
  const std::vector<double> ids = golden.input.inputs.at(Input::q_position_ids).values();
  for (std::size_t t = 0; t + 1 < static_cast<std::size_t>(golden.input.shape.q_len); t += 2)
    if (ids[t + 1] != ids[t] + 1 || floor_of(logits, ids[t + 1]) != floor_of(logits, ids[t]) + 1)
      return fmt::format("no step lies between positions {} and {}", ids[t], ids[t + 1]);
  return {};
}

// ---- temperature_ratio --------------------------------------------------------------------------------------------

std::string temperature_ratio_fault(const Draft& draft) {
  const qkcts_logits& logits = draft.contract.terms.logits;
  if (logits.query_temperature != QKCTS_QUERY_TEMPERATURE_LOG_RATIO) return "needs a query temperature of the ratio";
  if (draft.has_tables()) return "needs positions that no table limits";
  if (logits.query_period > farthest_step / 16) return "its period is too long";
  if (logits.query_period < logits.query_shift + 2) return "needs a period beyond its shift, to stand below it";
  return draft.shape.q_len < 4 ? "needs at least 4 queries" : std::string();
}

double ratio_of(const qkcts_logits& logits, double position) {
  return (position + logits.query_shift) / logits.query_period;
}

// Where the logarithm begins: the last position without effect, the one of ratio exactly 1, the first with an effect;
// then 0 and places further and further away.
void draw_temperature_ratio(Draft& draft) {
  const qkcts_logits& logits = draft.contract.terms.logits;
  const double begin = logits.query_period - logits.query_shift;
  const double places[] = {begin - 1, begin, begin + 1, 0, 7 * logits.query_period, farthest_step / 3};
  draft.first_position = 0;
  for (std::size_t i = 0; i < draft.q_position_ids.size(); ++i) {
    const auto t = i % static_cast<std::size_t>(draft.shape.q_len);
    draft.q_position_ids[i] = static_cast<std::int32_t>(places[t % std::size(places)]);
  }
}

std::string temperature_ratio_broken(const GoldenCase& golden) {
  const qkcts_logits& logits = golden.input.contract.terms.logits;
  const std::vector<double> ids = golden.input.inputs.at(Input::q_position_ids).values();
  const double below = ratio_of(logits, ids[0]), at = ratio_of(logits, ids[1]), above = ratio_of(logits, ids[2]);
  if (below < 1 && at == 1 && above > 1 && ids[0] + 2 == ids[2]) return {};
  return fmt::format("the ratios of the first queries are {}, {}, {}", below, at, above);
}

constexpr InputFamily list[] = {
    {"far_positions", "positions from 0 to 32,768 in no order: angles that binary32 knows to a hundredth", "QK-ROPE",
     "positions of q and of k reach from 0 to 32,768", far_positions_fault, draw_far_positions, far_positions_broken},
    {"temperature_steps", "queries on both sides of a step of the temperature, near and far", "QK-QTEMP",
     "a step lies between queries 2t and 2t + 1", temperature_steps_fault, draw_temperature_steps,
     temperature_steps_broken},
    {"temperature_ratio", "queries around the position where the logarithm begins, at 0 and far away", "QK-QTEMP",
     "of the first three queries the ratio is below 1, exactly 1 and above 1, one position apart",
     temperature_ratio_fault, draw_temperature_ratio, temperature_ratio_broken},
};

}  // namespace

std::span<const InputFamily> position_families() {
  return list;
}

}  // namespace qkcts
