// SPDX-License-Identifier: Apache-2.0
#include "reference/budget_soak_case.hpp"

#include <array>
#include <cmath>

#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

class Random {  // SplitMix64
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double sign() { return (bits() >> 63) != 0 ? 1.0 : -1.0; }
  // About normal: sum of uniform numbers.
  double normal() { return 2 * (unit() + unit() + unit() - 1.5); }

 private:
  std::uint64_t state_;
};

// Writes value(i) into the tensor, rounded to its format and kept finite.
template <typename Value>
void fill(Case& c, Input input, Value value) {
  Tensor tensor = c.inputs.at(input);
  const Format format = c.inputs.format;
  const double largest = parameters(format).largest / 4;
  for (std::size_t i = 0; i < tensor.count(); ++i) {
    double x = value(i);
    x = x > largest ? largest : (x < -largest ? -largest : x);
    tensor.set_pattern(i, encode(format, x));
  }
  c.inputs.set(input, std::move(tensor));
}

double accumulator_roundoff(Format format) {
  return unit_roundoff(accumulator_format(format));
}

// One factor in six subnormal and the other one huge; the products between them, all of one sign, lie below that one.
double subnormal_factor(Format format, bool first, bool outer, Random& random) {
  if (outer) {
    return first ? smallest_subnormal(format) : parameters(format).largest / 4;
  }
  return std::fabs(random.normal()) * (first ? 0x1p-5 : -0x1p-7);
}

// Rows and matrices of a projection. With a norm before it, what absorbs is its statistic; the products with the first
// column absorb in any case.
void fill_projection(Case& c, SoakFamily family, Random& random) {
  const Format format = c.inputs.format;
  const double tail = std::sqrt(accumulator_roundoff(format)) * 0.98;
  const struct { Input rows, weight; } sides[] = {{Input::q_x, Input::q_weight}, {Input::k_x, Input::k_weight}};
  for (const auto& side : sides) {
    const auto width = static_cast<std::size_t>(c.inputs.at(side.rows).shape.back());
    const auto columns = static_cast<std::size_t>(c.inputs.at(side.weight).shape.back());
    const double unit = 1 / std::sqrt(static_cast<double>(width));
    const auto entry = [&](std::size_t i) { return i % width; };
    const auto plain = [&](double size, double weight) {
      fill(c, side.rows, [&](std::size_t) { return size * random.normal(); });
      fill(c, side.weight, [&](std::size_t) { return weight * unit * random.normal(); });
    };
    switch (family) {
      case SoakFamily::small:
        plain(std::ldexp(1.0, -10 - static_cast<int>(random.bits() % 12)), 1);
        break;
      case SoakFamily::absorbed_squares:
        fill(c, side.rows, [&](std::size_t i) { return entry(i) == 0 ? 1.0 : tail * (0.9 + 0.1 * random.unit()); });
        fill(c, side.weight,
             [&](std::size_t i) { return i / columns == 0 ? 1.0 : tail * (0.9 + 0.1 * random.unit()); });
        break;
      case SoakFamily::cancelling:
        plain(1, 1);
        fill(c, side.weight, [&](std::size_t i) {
          const std::size_t e = i / columns;
          const double x = c.inputs.at(side.rows).value(e + 1 < width || e % 2 == 1 ? e ^ 1u : e);
          return (e % 2 == 0 ? x : -x) * (1 + 0x1p-9 * random.normal());
        });
        break;
      case SoakFamily::saturating:
        plain(8, 4);
        break;
      case SoakFamily::offset:
        plain(1, 1);
        fill(c, side.rows, [&](std::size_t) { return 40 + 0.1 * random.normal(); });
        break;
      case SoakFamily::storage_bound:
        plain(1, std::ldexp(smallest_normal(format), -static_cast<int>(random.bits() % 6)));
        break;
      case SoakFamily::near_underflow:
        plain(smallest_normal(format) * 0x1p2, std::ldexp(1.0, static_cast<int>(random.bits() % 9) - 4));
        break;
      case SoakFamily::subnormal_factors:
        fill(c, side.rows, [&](std::size_t i) { return subnormal_factor(format, true, entry(i) % 6 == 1, random); });
        fill(c, side.weight,
             [&](std::size_t i) { return subnormal_factor(format, false, i / columns % 6 == 1, random); });
        break;
      default:
        plain(1, 1);
    }
  }
}

void fill_operands(Case& c, SoakFamily family, Random& random) {
  if (c.contract.terms.projection.form != QKCTS_PROJECTION_NONE) {
    fill_projection(c, family, random);
    return;
  }
  const auto head_dim = static_cast<std::size_t>(c.shape.head_dim);
  const auto k_len = static_cast<std::size_t>(c.shape.k_len);
  const Format format = c.inputs.format;
  const double tail = std::sqrt(accumulator_roundoff(format)) * 0.98;
  const double tau = 1 / std::sqrt(static_cast<double>(head_dim));
  std::vector<double> direction(head_dim);
  for (double& x : direction) {
    x = random.sign() * (0.75 + 0.5 * random.unit());
  }
  const auto d = [&](std::size_t i) { return i % head_dim; };
  const auto token = [&](std::size_t i) { return i / head_dim % k_len; };
  const auto plain = [&](double size) {
    fill(c, Input::q, [&](std::size_t) { return size * random.normal(); });
    fill(c, Input::k, [&](std::size_t) { return size * random.normal(); });
  };
  // Scores of a contract without norms follow `level` of the key.
  const auto levels = [&](auto level) {
    fill(c, Input::q, [&](std::size_t i) { return direction[d(i)]; });
    const double unit = tau * static_cast<double>(head_dim);
    fill(c, Input::k, [&](std::size_t i) { return level(token(i)) / unit / direction[d(i)]; });
  };
  switch (family) {
    case SoakFamily::small:
      plain(std::ldexp(1.0, -10 - static_cast<int>(random.bits() % 12)));
      break;
    case SoakFamily::absorbed_squares:
      for (const Input input : {Input::q, Input::k}) {
        fill(c, input,
             [&](std::size_t i) { return d(i) == 0 ? 1.0 : random.sign() * tail * (0.9 + 0.1 * random.unit()); });
      }
      break;
    case SoakFamily::absorbed_weights: {
      const double gap = -std::log(accumulator_roundoff(format) * 0.97);
      levels([&](std::size_t t) { return t == 0 ? gap : 0.02 * random.unit(); });
      break;
    }
    case SoakFamily::stored_weights: {
      const double weight = (1 + unit_roundoff(format) * 1.03) * (random.sign() > 0 ? 0.5 : 0.25);
      levels([&](std::size_t t) { return 0.5 + (t == 0 ? 0 : std::log(weight)); });
      break;
    }
    case SoakFamily::ascending:
      levels([&](std::size_t t) { return (0.02 + 0.05 * random.unit()) * static_cast<double>(t + 1); });
      break;
    case SoakFamily::cancelling:
      plain(1);
      fill(c, Input::k, [&](std::size_t i) {
        const double q = c.inputs.at(Input::q).value(d(i) ^ 1u);
        return (d(i) % 2 == 0 ? q : -q) * (1 + 0x1p-9 * random.normal());
      });
      break;
    case SoakFamily::saturating:
      plain(8);
      break;
    case SoakFamily::large_scores:
      levels([&](std::size_t) { return 1000 + random.normal(); });
      break;
    case SoakFamily::falling: {
      const double highest = 1500 + 3000 * random.unit();
      levels([&](std::size_t t) { return highest - 0.1 * static_cast<double>(t); });
      break;
    }
    case SoakFamily::rising: {
      const double lowest = 100 + 900 * random.unit();
      levels([&](std::size_t t) { return lowest + 0.02 * static_cast<double>(t) * lowest / 100; });
      break;
    }
    case SoakFamily::offset:
      for (const Input input : {Input::q, Input::k}) {
        fill(c, input, [&](std::size_t) { return 40 + 0.1 * random.normal(); });
      }
      break;
    case SoakFamily::near_underflow:
      fill(c, Input::q, [&](std::size_t) {
        return smallest_normal(format) * std::ldexp(random.normal(), static_cast<int>(random.bits() % 6) - 2);
      });
      fill(c, Input::k,
           [&](std::size_t) { return random.normal() * std::ldexp(1.0, static_cast<int>(random.bits() % 9) - 4); });
      break;
    case SoakFamily::subnormal_factors:
      fill(c, Input::q, [&](std::size_t i) { return subnormal_factor(format, true, d(i) % 6 == 1, random); });
      fill(c, Input::k, [&](std::size_t i) { return subnormal_factor(format, false, d(i) % 6 == 1, random); });
      break;
    default:
      plain(1);
  }
}

void fill_values(Case& c, SoakFamily family, Random& random) {
  const Format format = c.inputs.format;
  const auto length = static_cast<std::size_t>(c.shape.v_head_dim);
  const auto values = static_cast<std::size_t>(c.shape.k_len);
  const bool normed = c.contract.terms.v_norm.applied != 0;
  const double tail = std::sqrt(accumulator_roundoff(format)) * 0.98;
  fill(c, Input::v, [&](std::size_t i) {
    if (normed && family == SoakFamily::absorbed_squares) {
      return i % length == 0 ? 1.0 : tail * (0.9 + 0.1 * random.unit());
    }
    if (normed && family == SoakFamily::offset) {
      return 40 + 0.1 * random.normal();
    }
    if (normed && family == SoakFamily::small) {
      return 0x1p-12 * random.normal();
    }
    switch (family) {
      case SoakFamily::storage_bound:
        return smallest_normal(format) * std::ldexp(random.normal(), static_cast<int>(random.bits() % 8) - 7);
      case SoakFamily::stored_weights:
        return i < length ? 1.0 : (i / length < values / 2 ? -1.0 : -1.0 + 0.1 * random.unit());
      case SoakFamily::near_equal_values:
      case SoakFamily::rising:
        return 1 + 0x1p-6 * random.unit();
      case SoakFamily::near_underflow:
        return random.normal() * std::ldexp(1.0, parameters(format).emin + static_cast<int>(random.bits() % 4) - 1);
      default:
        return random.normal();
    }
  });
}

// Positions of computed angles are numbers, not rows of a table; a third of the cases goes far.
void fill_positions(Case& c, Random& random) {
  const int bits = random.bits() % 3 == 0 ? 14 : 8;
  for (const Input input : {Input::q_position_ids, Input::k_position_ids}) {
    if (!c.inputs.has(input) || c.inputs.has(Input::cos)) {
      continue;
    }
    Tensor tensor = c.inputs.at(input);
    for (std::size_t i = 0; i < tensor.count(); ++i) {
      tensor.set_pattern(i, random.bits() >> (64 - bits));
    }
    c.inputs.set(input, std::move(tensor));
  }
}

// Sinks beside the scores of the family: among them, far above and far below.
void fill_sink(Case& c, SoakFamily family, Random& random) {
  if (!c.inputs.has(Input::sink)) {
    return;
  }
  // What a contract without norms makes of query 0 and key 0; a norm or a cap leaves scores of ordinary size.
  const qkcts_contract& terms = c.contract.terms;
  double first = 0;
  const bool given = terms.projection.form == QKCTS_PROJECTION_NONE;
  if (given && terms.q_norm.applied + terms.k_norm.applied == 0 && terms.score.softcap == 0) {
    for (std::int64_t d = 0; d < c.shape.head_dim; ++d) {
      const auto lane = static_cast<std::size_t>(d);
      first += c.inputs.at(Input::q).value(lane) * c.inputs.at(Input::k).value(lane);
    }
    first /= std::sqrt(static_cast<double>(c.shape.head_dim));
  }
  const bool large =
      family == SoakFamily::large_scores || family == SoakFamily::falling || family == SoakFamily::rising;
  fill(c, Input::sink, [&](std::size_t) {
    const double middle = large ? first : 0;
    switch (random.bits() % 3) {
      case 0:
        return middle + random.normal();
      case 1:
        return middle + 8 * random.normal();
      default:
        return middle + (random.sign() > 0 ? 1 : -1) * 20 * random.unit();
    }
  });
}

}  // namespace

std::string_view soak_family_name(SoakFamily family) {
  constexpr std::array<std::string_view, soak_family_count> names = {
      "normal",           "small",         "absorbed_squares", "absorbed_weights",  "stored_weights",
      "ascending",        "cancelling",    "saturating",       "large_scores",      "falling",
      "offset",           "storage_bound", "near_underflow",   "near_equal_values", "rising",
      "subnormal_factors"};
  return names.at(static_cast<std::size_t>(family));
}

Case soak_case(const Contract& contract, Format format, SoakFamily family, const qkcts_shape& shape,
               std::uint64_t seed) {
  SampleSpec spec;
  spec.format = format;
  spec.shape = shape;
  spec.seed = seed;
  constexpr std::array<std::int64_t, 6> widths = {1, 2, 5, 24, 48, 96};
  spec.width = widths[seed % widths.size()];
  Case c = sample_case(contract, spec);
  c.slug = "soak/" + contract.name + "/" + std::string(soak_family_name(family));
  Random random(seed * 977 + static_cast<std::uint64_t>(family));
  fill_operands(c, family, random);
  fill_values(c, family, random);
  fill_positions(c, random);
  fill_sink(c, family, random);
  // A third of the cases with gains near 0, where underflow and cancellation in 1 + w show.
  for (const Input gain : {Input::q_gain, Input::k_gain, Input::v_gain, Input::q_x_gain, Input::k_x_gain}) {
    if (c.inputs.has(gain) && family == SoakFamily::storage_bound) {
      fill(c, gain, [&](std::size_t) {
        return smallest_normal(format) * std::ldexp(random.normal(), static_cast<int>(random.bits() % 10) - 6);
      });
    }
  }
  return c;
}

}  // namespace qkcts
