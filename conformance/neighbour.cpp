// SPDX-License-Identifier: Apache-2.0
#include "conformance/neighbour.hpp"

#include <charconv>

#include <fmt/format.h>

#include "conformance/contract_field.hpp"

namespace qkcts {
namespace {

// The decimal that is meant: 10 times 1e-6 is 1e-5, not the binary64 number beside it.
double tidy(double x) {
  const std::string text = fmt::format("{:.12g}", x);
  double decimal = 0;
  std::from_chars(text.data(), text.data() + text.size(), decimal);
  return decimal;
}

// Other values of a number that a kernel may have by mistake.
std::vector<double> other_numbers(const ContractField& field, double x) {
  if (field.key == "eps")
    return x == 0 ? std::vector<double>{1e-6} : std::vector<double>{0, tidy(10 * x), tidy(x / 10)};
  if (field.key == "softcap" && x == 0) return {50};
  if (field.key == "query_shift") return {x + 1, x - 1};
  if (field.key == "query_period") return {x + 1, x - 1};
  if (field.key == "query_alpha") return {0, 2 * x};
  if (field.key == "theta") return {10 * x};
  if (field.standard != 0) return x == field.standard ? std::vector<double>{2} : std::vector<double>{1, 1 / x, x * x};
  if (field.type == FieldType::optional_number) return x == 0 ? std::vector<double>{} : std::vector<double>{0, 2 * x};
  return {2 * x, x / 2};
}

// Each way to change one field; `set` may be applied to further fields of the same kind.
struct Change {
  ContractField field;
  std::uint32_t word = 0;
  double number = 0;
  std::int64_t integer = 0;

  void set(qkcts_contract& terms, const ContractField& target) const {
    switch (target.type) {
      case FieldType::enumeration:
      case FieldType::flag:
      case FieldType::lanes:
        return set_field_value(terms, target, word);
      case FieldType::number:
      case FieldType::optional_number:
        return set_field_value(terms, target, number);
      case FieldType::integer:
      case FieldType::optional_integer:
        return set_field_value(terms, target, integer);
    }
  }
};

// A rounding point left out, or one of the format that is taken for it.
std::vector<std::uint32_t> other_points(std::uint32_t point) {
  switch (point) {
    case 0:
      return {};
    case QKCTS_BINARY16:
      return {0, QKCTS_BFLOAT16};
    case QKCTS_BFLOAT16:
      return {0, QKCTS_BINARY16};
    case QKCTS_E4M3FN:
      return {0, QKCTS_E5M2};
    case QKCTS_E5M2:
      return {0, QKCTS_E4M3FN};
    default:
      return {0};
  }
}

std::vector<Change> changes(const qkcts_contract& terms, const ContractField& field) {
  std::vector<Change> list;
  const auto word = [&](std::uint32_t value) { list.push_back({field, value}); };
  if (field.section == "v_norm" && !transforms(terms.v_norm, terms.v_range)) return list;
  if (field.section == "rounding" && field.type == FieldType::enumeration) {
    for (const std::uint32_t point : other_points(field_value<std::uint32_t>(terms, field))) word(point);
    return list;
  }
  const auto integer = [&](std::int64_t value) { list.push_back({field, 0, 0, value}); };
  switch (field.type) {
    case FieldType::enumeration:
      for (std::uint32_t value = 0; value < field.texts.size(); ++value)
        if (value != field_value<std::uint32_t>(terms, field)) word(value);
      break;
    case FieldType::flag:
      word(field_value<std::uint32_t>(terms, field) == 0 ? 1 : 0);
      break;
    case FieldType::lanes:
      if (const auto lanes = field_value<std::uint32_t>(terms, field); lanes != 0) {
        word(0);
        word(lanes + 2);
        word(lanes - 2);
      }
      break;
    case FieldType::number:
    case FieldType::optional_number:
      for (const double value : other_numbers(field, field_value<double>(terms, field)))
        list.push_back({field, 0, value});
      break;
    case FieldType::integer:
    case FieldType::optional_integer:
      if (const auto value = field_value<std::int64_t>(terms, field); value != 0 || field.type == FieldType::integer) {
        integer(value + 1);
        integer(value - 1);
        if (field.type == FieldType::optional_integer) integer(0);
      }
      break;
  }
  return list;
}

class Collection {
 public:
  explicit Collection(const qkcts_contract& terms) : own_(normalised(terms)) {}

  const qkcts_contract& own() const { return own_; }

  void add(const std::string& path, const std::string& shown_as, const qkcts_contract& changed) {
    const qkcts_contract terms = normalised(changed);
    if (!contract_fault(terms).empty() || same(terms, own_)) return;
    for (const Neighbour& neighbour : list_)
      if (same(neighbour.terms, terms)) return;
    std::string value;
    for (const FieldValue& field : contract_field_values(terms))
      if (field.path == path) value = field.json;
    std::erase(value, '"');
    list_.push_back({shown_as + "=" + value, terms});
  }

  std::vector<Neighbour> take() { return std::move(list_); }

 private:
  static bool same(const qkcts_contract& a, const qkcts_contract& b) {
    const auto bytes = [](const qkcts_contract& terms) {
      return std::string_view(reinterpret_cast<const char*>(&terms), sizeof terms);
    };
    return bytes(a) == bytes(b);
  }

  qkcts_contract own_;
  std::vector<Neighbour> list_;
};

const ContractField* counterpart(const ContractField& field) {
  for (const ContractField& other : contract_field_table())
    if (field.section == "q_norm" && other.section == "k_norm" && other.key == field.key) return &other;
  return nullptr;
}

void add_fields(Collection& collection) {
  const qkcts_contract& own = collection.own();
  for (const ContractField& field : contract_field_table()) {
    if (!field.meant(own)) continue;
    const ContractField* other = counterpart(field);
    for (const Change& change : changes(own, field)) {
      qkcts_contract changed = own;
      change.set(changed, field);
      collection.add(field.path(), field.path(), changed);
      if (other == nullptr || !other->meant(own)) continue;
      change.set(changed, *other);
      collection.add(field.path(), "norm." + std::string(field.key), changed);
    }
  }
}

// A norm left out; on q and k also one where there is none. An order beside a norm falls back to that without.
void add_kinds(Collection& collection) {
  const auto toggled = [](qkcts_norm norm) {
    if (norm.applied != 0) return qkcts_norm{};
    norm = qkcts_norm{};
    norm.applied = 1;
    norm.eps = 1e-6;
    return norm;
  };
  const qkcts_contract& own = collection.own();
  qkcts_contract q = own, k = own, both = own;
  q.q_norm = both.q_norm = toggled(own.q_norm);
  k.k_norm = both.k_norm = toggled(own.k_norm);
  if (both.rope.order == QKCTS_ROPE_THEN_NORM && both.q_norm.applied == 0 && both.k_norm.applied == 0)
    both.rope.order = QKCTS_NORM_THEN_ROPE;
  collection.add("q_norm.kind", "q_norm.kind", q);
  collection.add("k_norm.kind", "k_norm.kind", k);
  collection.add("q_norm.kind", "norm.kind", both);
  for (const NormSection& section : norm_sections()) {
    if (section.presence == Presence::always || norm_of(own, section).applied == 0) continue;
    qkcts_contract without = own;
    norm_of(without, section) = qkcts_norm{};
    collection.add(section.path(), section.path(), without);
  }
}

void add_windows(Collection& collection) {
  const qkcts_contract& own = collection.own();
  if (own.mask.has_window == 0) return;
  const auto add = [&](auto change) {
    qkcts_contract changed = own;
    change(changed.mask);
    collection.add("mask.window", "mask.window", changed);
  };
  add([](qkcts_mask& mask) { mask.has_window = 0; });
  for (const std::int64_t step : {1, -1}) {
    if (own.mask.window_left + step >= 0 && own.mask.window_left >= 0)
      add([step](qkcts_mask& mask) { mask.window_left += step; });
    if (own.mask.window_right + step >= 0 && own.mask.window_right >= 0)
      add([step](qkcts_mask& mask) { mask.window_right += step; });
  }
}

}  // namespace

std::vector<Neighbour> neighbours(const qkcts_contract& terms) {
  Collection collection(terms);
  add_kinds(collection);
  add_fields(collection);
  add_windows(collection);
  return collection.take();
}

std::optional<Case> case_under(const Case& c, const qkcts_contract& terms) {
  Case other = c;
  other.contract.terms = terms;
  if (!shape_fault(terms, c.shape).empty()) return std::nullopt;
  std::array<bool, input_count> used{};
  for (const InputRequirement& need : required_inputs(terms, c.shape, c.inputs.format))
    used[static_cast<std::size_t>(need.input)] = true;
  for (std::size_t i = 0; i < input_count; ++i)
    if (!used[i]) other.inputs.tensors[i].reset();
  if (!case_fault(other).empty()) return std::nullopt;
  return other;
}

}  // namespace qkcts
