// SPDX-License-Identifier: Apache-2.0
#include "harness/record_values.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace qkcts {
namespace {

template <class T>
T named(const std::optional<T>& found, const JsonAt& at) {
  if (!found) at.refuse(fmt::format("is {}, which there is not", at.json().dump()));
  return *found;
}

}  // namespace

Json figure_json(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json shape_json(const qkcts_shape& s) {
  return {{"batch", s.batch}, {"q_heads", s.q_heads},   {"kv_heads", s.kv_heads},    {"q_len", s.q_len},
          {"k_len", s.k_len}, {"head_dim", s.head_dim}, {"v_head_dim", s.v_head_dim}};
}

double figure_from(const JsonAt& at) {
  return at.is_null() ? std::numeric_limits<double>::infinity() : at.get<double>();
}

qkcts_shape shape_from(const JsonAt& at) {
  qkcts_shape s{};
  s.batch = at["batch"].get<std::int64_t>();
  s.q_heads = at["q_heads"].get<std::int64_t>();
  s.kv_heads = at["kv_heads"].get<std::int64_t>();
  s.q_len = at["q_len"].get<std::int64_t>();
  s.k_len = at["k_len"].get<std::int64_t>();
  s.head_dim = at["head_dim"].get<std::int64_t>();
  s.v_head_dim = at["v_head_dim"].get<std::int64_t>();
  return s;
}

Format format_from(const JsonAt& at) {
  return named(storage_format_named(at.text()), at);
}

qkcts_stage stage_from(const JsonAt& at) {
  return named(stage_named(at.text()), at);
}

Verdict verdict_from(const JsonAt& at) {
  return named(verdict_named(at.text()), at);
}

std::uint64_t bits_from(const JsonAt& at, Format format) {
  const std::string text = at.text();
  const auto digits = static_cast<std::size_t>(parameters(format).bits / 4);
  std::uint64_t bits = 0;
  const char* const end = text.data() + text.size();
  const bool prefixed = text.size() == digits + 2 && text.rfind("0x", 0) == 0;
  const auto [stop, error] = std::from_chars(text.data() + (prefixed ? 2 : 0), end, bits, 16);
  if (!prefixed || error != std::errc{} || stop != end)
    at.refuse(fmt::format("must be 0x and {} hexadecimal digits", digits));
  return bits;
}

ElementCoordinates place_from(const JsonAt& at, qkcts_stage stage, const qkcts_shape& shape) {
  const std::vector<std::int64_t> extents = stage_shape(stage, shape);
  if (at.json().size() != extents.size()) at.refuse(fmt::format("must have {} indices", extents.size()));
  std::int64_t flat = 0;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const auto index = at.json().at(axis).get<std::int64_t>();
    if (index < 0 || index >= extents[axis]) at.refuse(fmt::format("lies outside of {}", stage_name(stage)));
    if (__builtin_mul_overflow(flat, extents[axis], &flat) || __builtin_add_overflow(flat, index, &flat))
      at.refuse("lies beyond what can be counted");
  }
  const std::int64_t length = row_length(stage, shape);
  return {static_cast<std::uint32_t>(flat / length), static_cast<std::uint32_t>(flat % length)};
}

}  // namespace qkcts
