// SPDX-License-Identifier: Apache-2.0
// The contract that a mutant computes.
#include "conformance/mutant_contract.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "conformance/contract_field.hpp"
#include "conformance/format.hpp"
#include "conformance/json.hpp"

namespace qkcts {
namespace {

using Form = MutantChange::Form;

constexpr std::string_view sides[] = {"q_", "k_"};
constexpr std::string_view both_sides = "qk_";

// "qk_norm.eps" of side "q_" is "q_norm.eps".
std::string of_side(std::string path, std::string_view side) {
  if (const std::size_t at = path.find(both_sides); at != std::string::npos) path.replace(at, both_sides.size(), side);
  return path;
}

// The members of a window, which the table of fields leaves to JSON.
constexpr ContractField window_fields[] = {
    {"QK-MASK-05", "mask", "window", FieldType::flag, offsetof(qkcts_contract, mask.has_window), {}, nullptr},
    {"QK-MASK-05", "mask", "window.left", FieldType::integer, offsetof(qkcts_contract, mask.window_left), {}, nullptr},
    {"QK-MASK-05",
     "mask",
     "window.right",
     FieldType::integer,
     offsetof(qkcts_contract, mask.window_right),
     {},
     nullptr}};

const ContractField* field_at(std::string_view path) {
  for (const ContractField& field : contract_field_table())
    if (field.path() == path) return &field;
  for (const ContractField& field : window_fields)
    if (field.path() == path) return &field;
  return nullptr;
}

const NormSection* kind_at(std::string_view path) {
  for (const NormSection& section : norm_sections())
    if (section.path() == path) return &section;
  return nullptr;
}

std::optional<double> parsed(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// 10 times 1e-6 is 1e-5, as it would be written, and not the number beside it.
double tidy(double x) {
  return parsed(fmt::format("{:.15g}", x)).value_or(x);
}

double number_in(const qkcts_contract& terms, const ContractField& field) {
  switch (field.type) {
    case FieldType::number:
    case FieldType::optional_number: {
      const auto x = field_value<double>(terms, field);
      return x == 0 ? field.standard : x;
    }
    case FieldType::integer:
    case FieldType::optional_integer:
      return static_cast<double>(field_value<std::int64_t>(terms, field));
    default:
      return field_value<std::uint32_t>(terms, field);
  }
}

// false: the field cannot hold it.
bool put_number(qkcts_contract& terms, const ContractField& field, double x) {
  switch (field.type) {
    case FieldType::number:
    case FieldType::optional_number:
      set_field_value(terms, field, x);
      return std::isfinite(x);
    case FieldType::integer:
    case FieldType::optional_integer:
      set_field_value(terms, field, static_cast<std::int64_t>(x));
      return std::abs(x) < 0x1p53 && x == std::floor(x);
    default:
      set_field_value(terms, field, static_cast<std::uint32_t>(x));
      return x >= 0 && x < 0x1p31 && x == std::floor(x);
  }
}

// The text i of an enumeration, true, false, null or a number. An open side of a window is stored as -1.
std::optional<double> literal_number(const ContractField& field, std::string_view json) {
  if (json == "true") return 1;
  if (json == "false") return 0;
  if (json == "null") return field.key.starts_with("window.") ? -1 : 0;
  for (std::size_t i = 0; i < field.texts.size(); ++i)
    if (json == fmt::format("\"{}\"", field.texts[i])) return static_cast<double>(i);
  return field.texts.empty() ? parsed(json) : std::nullopt;
}

// Writes a kind, with what it names; false if there is no such kind.
bool put_kind(qkcts_norm& norm, std::string_view json) {
  for (const std::uint32_t applied : {0U, 1U})
    for (const std::uint32_t center : {0U, 1U})
      for (const std::uint32_t statistic : {0U, 1U}) {
        qkcts_norm candidate = norm;
        candidate.applied = applied;
        candidate.center = center;
        candidate.statistic = statistic;
        if (json != fmt::format("\"{}\"", norm_kind(candidate))) continue;
        norm = candidate;
        if (applied == 0) norm = qkcts_norm{};
        return true;
      }
  return false;
}

// Lengths that wrong kernels take for the right one.
constexpr std::string_view lengths[] = {"head_dim", "v_head_dim", "q_heads", "width", "model_width", "group_width"};

double length_of(std::string_view name, std::string_view path, const qkcts_contract& asked, const qkcts_shape& shape) {
  const auto of = [](std::int64_t x) { return static_cast<double>(x); };
  if (name == "head_dim") return of(shape.head_dim);
  if (name == "v_head_dim") return of(shape.v_head_dim);
  if (name == "q_heads") return of(shape.q_heads);
  if (name == "model_width") return of(shape.q_heads * shape.head_dim);
  if (name == "group_width") return of(shape.q_heads / shape.kv_heads * shape.head_dim);
  // "width": over how many numbers the norm of that side runs.
  const bool of_q = path.starts_with("q_");
  const bool full = (of_q ? asked.q_norm : asked.k_norm).axis == QKCTS_AXIS_FULL_WIDTH;
  return of((full ? (of_q ? shape.q_heads : shape.kv_heads) : 1) * shape.head_dim);
}

bool is_length(std::string_view text) {
  return std::find(std::begin(lengths), std::end(lengths), text) != std::end(lengths);
}

struct ShapeWord {
  std::string_view name;
  bool (*holds)(const qkcts_shape&);
};

constexpr ShapeWord shape_words[] = {
    {"one_query", [](const qkcts_shape& s) { return s.q_len == 1; }},
    {"several_queries", [](const qkcts_shape& s) { return s.q_len > 1; }},
    {"more_queries_than_keys", [](const qkcts_shape& s) { return s.q_len > s.k_len; }},
    // As if the first keys came from a cache.
    {"earlier_keys", [](const qkcts_shape& s) { return s.q_len > 1 && s.q_len < s.k_len; }},
    {"several_heads", [](const qkcts_shape& s) { return s.q_heads > 1; }},
    {"grouped_heads", [](const qkcts_shape& s) { return s.q_heads > s.kv_heads; }},
    {"other_value_width", [](const qkcts_shape& s) { return s.v_head_dim != s.head_dim; }},
};

const ShapeWord* shape_word(std::string_view json) {
  for (const ShapeWord& word : shape_words)
    if (json == fmt::format("\"{}\"", word.name)) return &word;
  return nullptr;
}

// What conditions speak of: the clauses that have a meaning, and the ends of a window.
std::vector<FieldValue> condition_values(const qkcts_contract& terms) {
  std::vector<FieldValue> values = contract_field_values(terms);
  if (terms.mask.has_window == 0) return values;
  const auto add = [&](const char* path, std::int64_t bound) {
    values.push_back({path, "QK-MASK-05", bound < 0 ? "null" : fmt::format("{}", bound)});
  };
  add("mask.window.left", terms.mask.window_left);
  add("mask.window.right", terms.mask.window_right);
  return values;
}

// The mutant before the contract `asked`, on one side of q and k.
class Application {
 public:
  Application(const qkcts_contract& asked, const qkcts_shape* shape, std::string_view side)
      : asked_(asked), shape_(shape), side_(side) {}

  bool meant(const std::vector<MutantCondition>& conditions) const {
    return std::all_of(conditions.begin(), conditions.end(), [this](const auto& one) { return holds(one); });
  }

  // false: the mutant does not apply.
  bool apply(const MutantChange& change, qkcts_contract& terms) const {
    const std::string path = of_side(change.path, side_);
    if (const NormSection* section = kind_at(path)) return put_kind(norm_of(terms, *section), change.value);
    const ContractField& field = *field_at(path);
    const std::optional<double> value = new_value(change, path, field);
    return value && put_number(terms, field, *value);
  }

 private:
  bool holds(const MutantCondition& condition) const {
    const auto listed = [&](auto has) {
      return std::any_of(condition.values.begin(), condition.values.end(), has) != condition.negated;
    };
    if (condition.path == "shape") {
      return shape_ != nullptr && listed([this](const std::string& word) { return shape_word(word)->holds(*shape_); });
    }
    const std::string path = of_side(condition.path, side_);
    for (const FieldValue& value : condition_values(asked_))
      if (value.path == path) return listed([&](const std::string& json) { return value.json == json; });
    return false;  // the field has no meaning here
  }

  std::optional<double> operand(const std::string& text, const std::string& path) const {
    if (const ContractField* other = field_at(of_side(text, side_))) return number_in(asked_, *other);
    if (!is_length(text)) return parsed(text);
    if (shape_ == nullptr) return std::nullopt;
    return length_of(text, path, asked_, *shape_);
  }

  std::optional<double> new_value(const MutantChange& change, const std::string& path,
                                  const ContractField& field) const {
    const double own = number_in(asked_, field);
    switch (change.form) {
      case Form::literal:
        return literal_number(field, change.value);
      case Form::other:
        return 1 - own;
      case Form::rounded: {
        const Format format = *format_named(change.value);
        return decode(format, encode(format, own));
      }
      default:
        break;
    }
    const std::optional<double> x = operand(change.value, path);
    if (!x) return std::nullopt;
    if (change.form == Form::plus) return own + *x;
    if (change.form == Form::times) return tidy(own * *x);
    if (change.form == Form::over) return tidy(own / *x);
    if (change.form == Form::power) return std::pow(own, *x);
    return *x;
  }

  const qkcts_contract& asked_;
  const qkcts_shape* shape_;
  std::string_view side_;
};

bool of_both_sides(const CatalogueMutant& mutant) {
  return std::any_of(mutant.fields.begin(), mutant.fields.end(),
                     [](const MutantChange& change) { return change.path.find(both_sides) != std::string::npos; });
}

bool same(const qkcts_contract& a, const qkcts_contract& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

bool has_path(std::string_view path) {
  return path == "mask.window" || field_at(path) != nullptr || kind_at(path) != nullptr;
}

std::string change_fault(const MutantChange& change, std::string_view side) {
  const std::string path = of_side(change.path, side);
  if (const NormSection* section = kind_at(path)) {
    qkcts_norm norm{};
    if (change.form == Form::literal && put_kind(norm, change.value)) return {};
    return fmt::format("{}: no kind of {} is {}", change.path, section->name, change.value);
  }
  const ContractField* const field = field_at(path);
  if (field == nullptr) return fmt::format("{}: no such field", change.path);
  bool sound = false;
  switch (change.form) {
    case Form::literal:
      sound = literal_number(*field, change.value).has_value();
      break;
    case Form::other:
      sound = field->type == FieldType::flag || field->texts.size() == 2;
      break;
    case Form::rounded:
      sound = format_named(change.value).has_value();
      break;
    case Form::field:
      sound = field_at(of_side(change.value, side)) != nullptr;
      break;
    case Form::shape:
      sound = is_length(change.value);
      break;
    default:
      sound = is_length(change.value) || field_at(of_side(change.value, side)) != nullptr || parsed(change.value);
  }
  return sound ? std::string() : fmt::format("{}: {} is no value of it", change.path, change.value);
}

}  // namespace

std::string mutant_fields_fault(const CatalogueMutant& mutant) {
  for (const std::string_view side : sides) {
    for (const MutantChange& change : mutant.fields)
      if (std::string fault = change_fault(change, side); !fault.empty()) return fault;
    for (const MutantCondition& condition : mutant.when) {
      if (condition.path == "shape") {
        for (const std::string& word : condition.values)
          if (shape_word(word) == nullptr) return fmt::format("when.shape: there is no {}", word);
        continue;
      }
      if (!has_path(of_side(condition.path, side))) return fmt::format("when.{}: no such field", condition.path);
    }
  }
  return {};
}

std::optional<qkcts_contract> contract_of(const CatalogueMutant& mutant, const qkcts_contract& asked,
                                          const qkcts_shape* shape) {
  if (mutant.fields.empty()) return std::nullopt;
  const qkcts_contract own = normalised(asked);
  qkcts_contract terms = own;
  const std::size_t rounds = of_both_sides(mutant) ? 2 : 1;
  for (std::size_t side = 0; side < rounds; ++side) {
    const Application application(own, shape, sides[side]);
    if (!application.meant(mutant.when)) continue;
    for (const MutantChange& change : mutant.fields)
      if (!application.apply(change, terms)) return std::nullopt;
  }
  terms = normalised(terms);
  if (!contract_fault(terms).empty() || same(terms, own)) return std::nullopt;
  return terms;
}

}  // namespace qkcts
