// SPDX-License-Identifier: Apache-2.0
#include "reference/sample_case.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "reference/attention.hpp"

namespace qkcts {
namespace {

class Random {  // SplitMix64
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u) {}
  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n)); }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)

 private:
  std::uint64_t state_;
};

double draw(Random& random, const SampleSpec& spec) {
  const double sign = random.below(2) == 0 ? -1.0 : 1.0;
  const double significand = sign * (1.0 + random.unit());
  switch (spec.values) {
    case SampleValues::coarse:
      return static_cast<double>(random.below(9) - 4) / 4;
    case SampleValues::wide: {
      const int reach = parameters(spec.format).emax / 6;
      return std::ldexp(significand, static_cast<int>(random.below(2 * reach + 1)) - reach);
    }
    case SampleValues::tiny:
      return std::ldexp(significand, static_cast<int>(random.below(3)) - 10);
    default:
      return std::ldexp(significand, static_cast<int>(random.below(4)) - 2);
  }
}

// Position ids lie below `positions`.
void fill(Tensor& tensor, Input input, const SampleSpec& spec, std::int64_t positions, Random& random) {
  for (std::size_t i = 0; i < tensor.count(); ++i) {
    switch (input) {
      case Input::q_position_ids:
      case Input::k_position_ids:
        tensor.set_pattern(i, static_cast<std::uint64_t>(random.below(positions)));
        break;
      case Input::kv_len:
      case Input::prefix_len:
        tensor.set_pattern(i, static_cast<std::uint64_t>(random.below(spec.shape.k_len + 1)));
        break;
      case Input::mask:
        tensor.set_pattern(i, static_cast<std::uint64_t>(random.below(3) == 0 ? 0 : 1));
        break;
      case Input::q_document_ids:
      case Input::k_document_ids:
        tensor.set_pattern(i, static_cast<std::uint64_t>(random.below(2)));
        break;
      case Input::alibi_slopes:
        tensor.set_pattern(i, encode(accumulator_format(spec.format), draw(random, spec)));
        break;
      case Input::bias: {
        const bool hides = random.below(5) == 0;
        const double value = hides ? -std::numeric_limits<double>::infinity() : draw(random, spec);
        tensor.set_pattern(i, encode(spec.format, value));
        break;
      }
      default:
        tensor.set_pattern(i, encode(spec.format, draw(random, spec)));
    }
  }
}

constexpr std::int64_t any_extent = -2;  // of an input: the length of a table, the width of what is projected

// Rotary tables for positions 11 to 17; those of a head start a little later than those of the head before it.
Tensor table(const qkcts_contract& terms, const SampleSpec& spec, bool cosine) {
  const bool per_head = terms.rotation.tables == QKCTS_TABLES_PER_HEAD;
  const std::int64_t heads = per_head ? spec.shape.q_heads : 1;
  Tensor all;
  for (std::int64_t h = 0; h < heads; ++h) {
    const RopeTables tables =
        rope_tables(terms.rope, terms.rotation, spec.shape.head_dim, 11 + 3 * h, 7, accumulator_format(spec.format));
    const Tensor& one = cosine ? tables.cos : tables.sin;
    if (!per_head) return one;
    all.type = one.type;
    all.shape = {heads, one.shape[0], one.shape[1]};
    all.bytes.insert(all.bytes.end(), one.bytes.begin(), one.bytes.end());
  }
  return all;
}

// NaN, an infinity or the largest number throughout k (or what it is projected from) and v of every key that no query
// of the batch entry sees.
void poison_unseen_keys(Case& c) {
  const Visibility visibility(c);
  const auto seen = [&](std::int64_t b, std::int64_t key) {
    for (std::int64_t h = 0; h < c.shape.q_heads; ++h)
      for (std::int64_t t = 0; t < c.shape.q_len; ++t)
        if (visibility.visible(b, h, t, key)) return true;
    return false;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const double poison[] = {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity,
                           parameters(c.inputs.format).largest};
  for (const Input input : {Input::k, Input::v, Input::k_x}) {
    if (!c.inputs.has(input)) continue;
    Tensor tensor = c.inputs.at(input);
    const std::int64_t width = tensor.shape.back();
    const std::int64_t heads = input == Input::k_x ? 1 : c.shape.kv_heads;
    for (std::size_t i = 0; i < tensor.count(); ++i) {
      const std::int64_t token = static_cast<std::int64_t>(i) / width;
      if (!seen(token / (c.shape.k_len * heads), token % c.shape.k_len))
        tensor.set_pattern(i, encode(c.inputs.format, poison[token % 4]));
    }
    c.inputs.set(input, std::move(tensor));
  }
}

}  // namespace

Case sample_case(const Contract& contract, const SampleSpec& spec) {
  Case c;
  c.slug = "sample/" + contract.name;
  c.contract = contract;
  c.shape = spec.shape;
  c.inputs.format = spec.format;
  Random random(spec.seed);
  const bool is_ratio = contract.terms.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_LOG_RATIO;
  const bool has_table = contract.terms.rope.order != QKCTS_ROPE_NONE;  // of 7 rows
  const std::int64_t positions = is_ratio && !has_table ? 64 : 7;       // small ids have the ratio 1
  for (const InputRequirement& need : required_inputs(contract.terms, spec.shape, spec.format)) {
    if (need.input == Input::cos || need.input == Input::sin) {
      c.inputs.set(need.input, table(contract.terms, spec, need.input == Input::cos));
      continue;
    }
    std::vector<std::int64_t> shape = need.shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] == any_extent) {
        shape[axis] = spec.width;
      } else if (shape[axis] < 0) {
        shape[axis] = axis == 1 ? spec.shape.q_heads : 1;
      }
    Tensor tensor = Tensor::zeros(need.type, shape);
    fill(tensor, need.input, spec, positions, random);
    c.inputs.set(need.input, std::move(tensor));
  }
  if (contract.terms.softmax.hidden_values == QKCTS_HIDDEN_EXCLUDED) poison_unseen_keys(c);
  return c;
}

StageRows every_row(const Case& c) {
  StageRows rows;
  for (const qkcts_stage stage : all_stages) {
    if ((stages_of(c.contract.terms) & bit(stage)) == 0) continue;
    for (std::int64_t row = 0; row < row_count(stage, c.shape); ++row)
      rows[stage].push_back(static_cast<std::uint32_t>(row));
  }
  return rows;
}

void set_values(Case& c, Input input, std::span<const double> values) {
  Tensor tensor = c.inputs.at(input);
  if (values.size() != tensor.count()) throw std::logic_error("set_values: wrong number of values");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (tensor.type == ElementType::int32 || tensor.type == ElementType::boolean) {
      tensor.set_pattern(i, static_cast<std::uint64_t>(values[i]));
    } else {
      tensor.set_pattern(i, encode(static_cast<Format>(tensor.type), values[i]));
    }
    if (tensor.value(i) != values[i]) throw std::logic_error("set_values: value is not representable");
  }
  c.inputs.set(input, std::move(tensor));
}

}  // namespace qkcts
