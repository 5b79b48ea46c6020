// SPDX-License-Identifier: Apache-2.0
// Certified rotary tables: cos and sin of position * frequency, times the attention factor m.
//
// Termination: where the angle is 0 the entries are m and 0 exactly. Otherwise theta^(-2i/R) is a rational power of a
// rational, and so is the angle, up to a rational factor, under every scaling but llama3 and untruncated yarn; being
// algebraic and not 0, its cosine and sine are transcendental (Lindemann): never on a rounding boundary. Those two
// scalings mix in pi or logarithms; there the same is a conjecture, and a rounding that stays open is refused.
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reference/attention.hpp"
#include "reference/rope_frequency.hpp"
#include "reference/rounding.hpp"

namespace qkcts {
namespace {

// The entry at one (position, i): tried with the frequency of this level, then with the next.
template <std::size_t L>
double entry(const RopeFrequencies& frequencies, Format format, std::int64_t position, std::int64_t i, Wave wave,
             const Enclosure<level_digits[L]>& step) {
  using Number = Enclosure<level_digits[L]>;
  const Number angle = step * Number(static_cast<double>(position));
  Number x = wave_of(angle, wave);
  if (frequencies.attention_factor() != 1) x *= Number(frequencies.attention_factor());
  const double low = round_to_format(lower(x), format);
  const double high = round_to_format(upper(x), format);
  if (low == high) return low;
  if constexpr (L + 1 < level_count) {
    return entry<L + 1>(frequencies, format, position, i, wave, frequencies.frequency<level_digits[L + 1]>(i));
  } else {
    throw UndecidedError(fmt::format("rotary table: {}[position {}, pair {}]: rounding not proven with {} bits",
                                     wave == Wave::cosine ? "cos" : "sin", position, i,
                                     precision_bits<level_digits[L]>()));
  }
}

}  // namespace

RopeTables rope_tables(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t head_dim,
                       std::int64_t first, std::int64_t count, Format format) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  const std::int64_t rotated = rotated_lanes(rope, head_dim);
  qkcts_contract terms{};
  terms.rope = rope;
  terms.rotation = rotation;
  terms.rope.order = QKCTS_NORM_THEN_ROPE;  // the clauses of the rotation are checked only where there is one
  if (const std::string fault = contract_fault(terms); !fault.empty())
    throw InputError(fmt::format("rotary table: {}", fault));
  if (rotated < 2 || rotated % 2 != 0 || rotated > head_dim || first < 0 || count < 1 || first > most ||
      count > most / rotated || (rotation.scaling == QKCTS_SCALING_NTK && rotated == 2)) {
    throw InputError(
        fmt::format("rotary table: {} rotated lanes of {}, {} positions from {}: needs an even number of lanes within "
                    "the head, more than two under ntk, and positions from 0 on",
                    rotated, head_dim, count, first));
  }
  prepare_thread();
  const RopeFrequencies frequencies(rope, rotation, head_dim);
  const std::int64_t pairs = frequencies.pairs();
  RopeTables tables{Tensor::zeros(element_type(format), {count, pairs}),
                    Tensor::zeros(element_type(format), {count, pairs})};
  for (std::int64_t i = 0; i < pairs; ++i) {
    const Enclosure<level_digits[0]> step = frequencies.frequency<level_digits[0]>(i);
    for (std::int64_t row = 0; row < count; ++row) {
      const auto at = static_cast<std::size_t>(row * pairs + i);
      for (const Wave wave : {Wave::cosine, Wave::sine}) {
        Tensor& table = wave == Wave::cosine ? tables.cos : tables.sin;
        table.set_pattern(at, encode(format, entry<0>(frequencies, format, first + row, i, wave, step)));
      }
    }
  }
  return tables;
}

}  // namespace qkcts
