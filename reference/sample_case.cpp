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

void fill(Tensor& tensor, Input input, const SampleSpec& spec, Random& random) {
  for (std::size_t i = 0; i < tensor.count(); ++i) {
    switch (input) {
      case Input::q_position_ids:
      case Input::k_position_ids:
        tensor.set_pattern(i, static_cast<std::uint64_t>(random.below(7)));
        break;
      case Input::kv_len:
        tensor.set_pattern(i, static_cast<std::uint64_t>(random.below(spec.shape.k_len + 1)));
        break;
      case Input::mask:
        tensor.set_pattern(i, static_cast<std::uint64_t>(random.below(3) == 0 ? 0 : 1));
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

}  // namespace

Case sample_case(const Contract& contract, const SampleSpec& spec) {
  Case c;
  c.slug = "sample/" + contract.name;
  c.contract = contract;
  c.shape = spec.shape;
  c.inputs.format = spec.format;
  Random random(spec.seed);
  for (const InputRequirement& need : required_inputs(contract.terms, spec.shape, spec.format)) {
    if (need.input == Input::cos || need.input == Input::sin) {
      const RopeTables tables =
          rope_tables(contract.terms.rope.theta, 2 * need.shape[1], 11, 7, accumulator_format(spec.format));
      c.inputs.set(need.input, need.input == Input::cos ? tables.cos : tables.sin);
      continue;
    }
    std::vector<std::int64_t> shape = need.shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] < 0) shape[axis] = axis == 1 ? spec.shape.q_heads : 1;
    Tensor tensor = Tensor::zeros(need.type, shape);
    fill(tensor, need.input, spec, random);
    c.inputs.set(need.input, std::move(tensor));
  }
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
