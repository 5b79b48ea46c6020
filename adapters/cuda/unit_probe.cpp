// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/unit_probe.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "adapters/cuda/element.hpp"
#include "adapters/cuda/launches.hpp"

namespace qkcts::cuda {

namespace {

constexpr std::size_t depth = 16;

// The unit, as a function of one sum: c + products.
struct Question {
  float accumulator = 0;
  std::array<std::uint16_t, depth> a{}, b{};
};

class Unit {
 public:
  Unit(Device& device, NarrowFormat format) : device_(device), format_(format) {}

  std::uint16_t narrowed(double value) const {
    const auto x = static_cast<float>(value);
    return format_ == NarrowFormat::bfloat16 ? to_bfloat16(x) : to_binary16(x);
  }

  void set(Question& question, std::size_t k, double a, double b) const {
    question.a[k] = narrowed(a);
    question.b[k] = narrowed(b);
  }

  // A whole tile has the question in every element: rows are alike, and so are columns.
  std::vector<float> answers(const std::vector<Question>& questions) const {
    const std::size_t tiles = (questions.size() + block_warps - 1) / block_warps * block_warps;
    std::vector<std::uint16_t> a(tiles * 256), b(tiles * 128);
    std::vector<float> c(tiles * 128);
    for (std::size_t q = 0; q < questions.size(); ++q) {
      for (std::size_t i = 0; i < 256; ++i) a[q * 256 + i] = questions[q].a[i % depth];
      for (std::size_t i = 0; i < 128; ++i) b[q * 128 + i] = questions[q].b[i % depth];
      for (std::size_t i = 0; i < 128; ++i) c[q * 128 + i] = questions[q].accumulator;
    }
    const std::vector<float> sums = multiplied(a, b, c);
    std::vector<float> answers;
    for (std::size_t q = 0; q < questions.size(); ++q) answers.push_back(sums[q * 128]);
    return answers;
  }

  float answer(const Question& question) const { return answers({question}).front(); }

  std::vector<float> multiplied(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b,
                                const std::vector<float>& c) const {
    DeviceArena arena(device_);
    const auto up = [&](const auto& list) {
      std::vector<std::byte> bytes(list.size() * sizeof list[0]);
      std::memcpy(bytes.data(), list.data(), bytes.size());
      return arena.take(bytes);
    };
    UnitTiles tiles{};
    tiles.a = static_cast<const std::uint16_t*>(up(a));
    tiles.b = static_cast<const std::uint16_t*>(up(b));
    tiles.c = static_cast<const float*>(up(c));
    tiles.d = static_cast<float*>(arena.take(c.size() * sizeof(float)));
    launch_tiles(device_, format_ == NarrowFormat::bfloat16, tiles, static_cast<std::int64_t>(c.size() / 128));
    device_.finish();
    std::vector<float> sums(c.size());
    device_.download(sums.data(), tiles.d, sums.size() * sizeof(float));
    return sums;
  }

 private:
  Device& device_;
  NarrowFormat format_;
};

// -1 + 1 + 2^-j is 2^-j as long as that bit is kept beside the ones.
int fraction_of(const Unit& unit) {
  int kept = 0;
  for (int j = 20; j <= 28; ++j) {
    Question question;
    question.accumulator = -1;
    unit.set(question, 0, 1, 1);
    unit.set(question, 1, std::ldexp(1, -j / 2), std::ldexp(1, -(j - j / 2)));
    if (unit.answer(question) == std::ldexp(1.0f, -j)) kept = j;
  }
  return kept;
}

// 1 - 1 + a bit that is not kept beside the ones: it is there if it comes in a later block than they.
int products_of(const Unit& unit, int fraction) {
  for (std::size_t k = 2; k < depth; ++k) {
    Question question;
    unit.set(question, 0, 1, 1);
    unit.set(question, 1, -1, 1);
    const int j = fraction + 1;
    unit.set(question, k, std::ldexp(1, -j / 2), std::ldexp(1, -(j - j / 2)));
    if (unit.answer(question) != 0) return static_cast<int>(k);
  }
  return static_cast<int>(depth);
}

// The middle between two neighbours, the lower of which is odd: to nearest it would grow, in either sign.
bool rounds_toward_zero(const Unit& unit) {
  for (const float odd : {1 + 0x1p-23f, -1 - 0x1p-23f}) {
    Question question;
    question.accumulator = odd;
    unit.set(question, 0, std::copysign(0x1p-12, odd), 0x1p-12);
    if (unit.answer(question) != odd) return false;
  }
  return true;
}

// A small product with bits to its end, beside 0 times the largest power of two.
bool zeros_align_in(const Unit& unit, NarrowFormat format) {
  const bool wide = format == NarrowFormat::bfloat16;
  const double small = wide ? 0x1p-50 * (1 + 0x1p-7) : 0x1p-14 * (1 + 0x1p-10), large = wide ? 0x1p127 : 0x1p15;
  for (const double zero : {0.0, -0.0}) {
    for (const bool on_the_left : {true, false}) {
      Question question;
      unit.set(question, 0, small, small);
      unit.set(question, 1, on_the_left ? zero : large, on_the_left ? large : zero);
      if (unit.answer(question) != static_cast<float>(small * small)) return true;
    }
  }
  return false;
}

// The smallest number times the largest power of two, beside a product that is cut off only where the first is taken
// for as large as its stored exponent.
bool subnormals_as_stored_in(const Unit& unit, NarrowFormat format) {
  const bool wide = format == NarrowFormat::bfloat16;
  const double smallest = wide ? 0x1p-133 : 0x1p-24, large = wide ? 0x1p127 : 0x1p15;
  Question question;
  unit.set(question, 0, smallest, large);
  unit.set(question, 1, 0x1p-14, 0x1p-14);
  return unit.answer(question) == static_cast<float>(smallest * large);
}

// Random sums with exponents far apart, near each other and with zeros among them; and one large product with the
// others just below the cut.
Question drawn(const Unit& unit, std::mt19937_64& source, int kind, int fraction) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(source);
  };
  const int spread = kind == 0 ? 10 : 1;
  const auto number = [&] {
    const int exponent = std::uniform_int_distribution<int>(-spread, spread)(source);
    return uniform(-2, 2) * std::ldexp(1.0, exponent);
  };
  Question question;
  question.accumulator = static_cast<float>(number() * number());
  for (std::size_t k = 0; k < depth; ++k)
    unit.set(question, k, kind == 2 && source() % 3 == 0 ? 0 : number(), kind == 2 && source() % 3 == 0 ? 0 : number());
  if (kind != 3) return question;
  question.accumulator = 0;
  for (std::size_t k = 0; k < depth; ++k)
    unit.set(question, k, 0x1p-12, std::ldexp(uniform(0.5, 1), 12 - fraction) * (source() % 2 == 0 ? 1 : -1));
  unit.set(question, source() % depth, 1, 1);
  return question;
}

void compare(const Unit& unit, NarrowFormat format, UnitFindings& findings) {
  const UnitModel model{findings.products, findings.fraction, findings.zeros_align, findings.subnormals_as_stored};
  std::mt19937_64 source(20250101);
  std::vector<Question> questions;
  for (int i = 0; i < 1024; ++i) questions.push_back(drawn(unit, source, i % 4, findings.fraction));
  const std::vector<float> answers = unit.answers(questions);
  for (std::size_t q = 0; q < questions.size(); ++q) {
    const Question& asked = questions[q];
    const float due = sum_on_unit(model, format, asked.accumulator, asked.a.data(), asked.b.data(), depth);
    // -0 and 0 are one number: the studies do not say which of them an empty sum is.
    findings.different += answers[q] == due ? 0 : 1;
  }
  findings.elements = static_cast<std::int64_t>(questions.size());
}

}  // namespace

UnitFindings probe_unit(Device& device, NarrowFormat format) {
  const Unit unit(device, format);
  UnitFindings findings;
  findings.fraction = fraction_of(unit);
  findings.products = products_of(unit, findings.fraction);
  findings.toward_zero = rounds_toward_zero(unit);
  findings.zeros_align = zeros_align_in(unit, format);
  findings.subnormals_as_stored = subnormals_as_stored_in(unit, format);
  if (findings.fraction != 0) compare(unit, format, findings);
  return findings;
}

std::string unit_line(const Device& device, NarrowFormat format, const UnitFindings& findings) {
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  return R"({"device": ")" + device.name() + R"(", "format": ")" +
         (format == NarrowFormat::bfloat16 ? "bfloat16" : "binary16") + R"(", "products": )" +
         std::to_string(findings.products) + R"(, "fraction": )" + std::to_string(findings.fraction) +
         R"(, "toward_zero": )" + flag(findings.toward_zero) + R"(, "zero_products_align": )" +
         flag(findings.zeros_align) + R"(, "subnormals_as_stored": )" + flag(findings.subnormals_as_stored) +
         R"(, "sums": )" + std::to_string(findings.elements) + R"(, "other_bits_than_the_model": )" +
         std::to_string(findings.different) + "}";
}

}  // namespace qkcts::cuda
