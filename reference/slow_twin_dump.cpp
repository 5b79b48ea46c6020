// SPDX-License-Identifier: Apache-2.0
// Prints sample cases with the reference's stages as JSON lines, for slow_twin.py to recompute.
// usage: reference_dump all | points | special | CONTRACT FORMAT full|coarse|wide|tiny SEED
#include <cstdio>
#include <iterator>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "conformance/json.hpp"
#include "conformance/special_values.hpp"
#include "reference/attention.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

std::string exact_text(double x) {
  std::string text(40, '\0');
  text.resize(static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%a", x)));
  return text;
}

Json tensor_json(const Tensor& tensor) {
  Json values = Json::array();
  for (const double x : tensor.values()) values.push_back(exact_text(x));
  return {{"shape", tensor.shape}, {"values", values}};
}

Json case_json(const Case& c) {
  const ReferenceResult result = evaluate(c, every_row(c));
  Json document = {{"slug", c.slug}, {"contract", parse_json(canonical_json(c.contract), c.slug)}};
  document["format"] = parameters(c.inputs.format).name;
  document["shape"] = {c.shape.batch, c.shape.q_heads,  c.shape.kv_heads,  c.shape.q_len,
                       c.shape.k_len, c.shape.head_dim, c.shape.v_head_dim};
  document["exact_cases"] = result.exact_cases;
  document["bits"] = result.highest_precision;
  for (std::size_t i = 0; i < input_count; ++i) {
    const auto input = static_cast<Input>(i);
    if (c.inputs.has(input)) document["inputs"][std::string(input_name(input))] = tensor_json(c.inputs.at(input));
  }
  for (const qkcts_stage stage : all_stages) {
    if ((stages_of(c.contract.terms) & bit(stage)) == 0) continue;
    const ProvenStage& proven = result.stages[stage];
    Json& target = document["stages"][std::string(stage_name(stage))];
    target["format"] = parameters(stage_format(stage, c.inputs.format)).name;
    for (std::size_t i = 0; i < proven.hi.size(); ++i) {
      target["elements"].push_back({proven.expected[i], exact_text(proven.hi[i]), proven.lo[i],
                                    static_cast<int>(proven.rule[i]), exact_text(result.exact.values[stage][i])});
    }
    for (const double before : result.exact.before[stage]) target["before"].push_back(exact_text(before));
  }
  for (const double product : result.exact.products) document["products"]["before"].push_back(exact_text(product));
  for (const auto& [name, values] : {std::pair{"entropy", &result.statistics.entropy},
                                     {"p_max", &result.statistics.p_max},
                                     {"score_max", &result.statistics.score_max}})
    for (const double x : *values) document["statistics"][name].push_back(exact_text(x));
  return document;
}

void print(const Contract& contract, const SampleSpec& spec) {
  std::puts(canonical_text(case_json(sample_case(contract, spec))).c_str());
}

// Values over a third of the exponent range of binary32 overflow the rounding points of a narrower format.
void print_what_fits(const Contract& contract, SampleSpec spec) {
  try {
    print(contract, spec);
  } catch (const InputError&) {
    if (!has_rounding_points(contract.terms.rounding)) throw;
    spec.values = SampleValues::full;
    print(contract, spec);
  }
}

void print_all() {
  constexpr SampleValues kinds[] = {SampleValues::full, SampleValues::coarse, SampleValues::wide, SampleValues::tiny};
  constexpr Format formats[] = {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16};
  std::uint64_t seed = 0;
  for (const std::string& name : shipped_contracts()) {
    for (int repeat = 0; repeat < 4; ++repeat) {
      SampleSpec spec;
      spec.seed = ++seed;
      spec.format = formats[(seed + seed / 4) % 4];
      spec.values = kinds[seed % 4];
      if (repeat % 2 == 1) spec.shape = {2, 2, 1, 4, 3, 6, 1};
      const Contract contract = shipped_contract(name);
      if (contract.terms.rotation.tables == QKCTS_TABLES_PER_HEAD) spec.shape.kv_heads = spec.shape.q_heads;
      if (!shape_fault(contract.terms, spec.shape).empty()) spec.shape.head_dim = 20;  // room for every rotated span
      print_what_fits(contract, spec);
    }
  }
}

// Every point that the contract has a place for: none or a format, by lot.
void draw_points(qkcts_contract& terms, std::uint64_t seed) {
  std::uint64_t state = seed;
  const auto draw = [&state]() -> std::uint32_t {
    state = state * 6364136223846793005u + 1442695040888963407u;
    constexpr std::uint32_t formats[] = {
        0, 0, QKCTS_BINARY64, QKCTS_BINARY32, QKCTS_BINARY16, QKCTS_BFLOAT16, QKCTS_BFLOAT16, QKCTS_E4M3FN, QKCTS_E5M2};
    return formats[(state >> 33) % std::size(formats)];
  };
  const auto vector_points = [&](bool with_inner) {
    qkcts_vector_rounding points{};
    points.projection = draw();
    points.norm = draw();
    if (points.norm != 0 && with_inner) {
      points.root = draw();
      points.reciprocal = draw();
      points.unit = draw();
    }
    points.rope = draw();
    if (points.rope != 0) points.rope_product = draw();
    return points;
  };
  terms.rounding.q = vector_points(terms.q_norm.applied != 0);
  terms.rounding.k = vector_points(terms.k_norm.applied != 0);
  terms.rounding.v = vector_points(terms.v_norm.applied != 0);
  terms.rounding.v.projection = terms.rounding.v.rope = terms.rounding.v.rope_product = 0;
  terms.rounding.scaled_q = draw();
  terms.rounding.scores = draw();
  terms.rounding.capped = draw();
  terms.rounding.probs = draw();
  terms.rounding.output = QKCTS_BFLOAT16;
  terms.rounding.saturate = 1;
  terms.rounding.product = terms.rounding.scaled_q == 0 ? draw() : 0;
  const auto input_points = [&](const qkcts_norm& norm) {
    qkcts_input_rounding points{};
    if (terms.projection.form == QKCTS_PROJECTION_NONE || norm.applied == 0) return points;
    points.norm = draw();
    if (points.norm != 0) points.unit = draw();
    return points;
  };
  terms.rounding.q_input = input_points(terms.projection.q_input);
  terms.rounding.k_input = input_points(terms.projection.k_input);
}

void print_points() {
  constexpr SampleValues kinds[] = {SampleValues::full, SampleValues::coarse};
  constexpr Format formats[] = {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16};
  std::uint64_t seed = 1000;
  for (const std::string& name : shipped_contracts())
    for (const SampleValues kind : kinds) {
      Contract contract = shipped_contract(name);
      SampleSpec spec;
      spec.seed = ++seed;
      spec.format = formats[(seed + seed / 4) % 4];
      spec.values = kind;
      if (contract.terms.rotation.tables == QKCTS_TABLES_PER_HEAD) spec.shape.kv_heads = spec.shape.q_heads;
      if (!shape_fault(contract.terms, spec.shape).empty()) spec.shape.head_dim = 20;
      draw_points(contract.terms, seed);
      print(contract, spec);
    }
}

// One NaN or infinity in each case, in q, k (or what they are projected from), v, a gain in turn, at the first place
// where it may stand.
void print_special() {
  constexpr Input inputs[] = {Input::q, Input::k, Input::v, Input::q_x, Input::k_x, Input::q_gain, Input::k_gain};
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double values[] = {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity};
  std::uint64_t seed = 2000;
  for (const std::string& name : shipped_contracts()) {
    const Contract contract = shipped_contract(name);
    if (has_rounding_points(contract.terms.rounding)) continue;
    for (const Input input : inputs) {
      SampleSpec spec;
      spec.seed = ++seed;
      spec.shape = {1, 2, 1, 3, 4, 20, 3};
      if (contract.terms.rotation.tables == QKCTS_TABLES_PER_HEAD) spec.shape.kv_heads = spec.shape.q_heads;
      if (!shape_fault(contract.terms, spec.shape).empty()) spec.shape.head_dim = 32;
      Case c = sample_case(contract, spec);
      if (!c.inputs.has(input)) continue;
      Tensor& tensor = *c.inputs.tensors[static_cast<std::size_t>(input)];
      for (std::size_t i = seed % 5; i < tensor.count(); ++i) {
        const std::uint64_t before = tensor.pattern(i);
        tensor.set_pattern(i, encode(c.inputs.format, values[seed % 3]));
        if (case_fault(c).empty() && has_special_values(c)) break;
        tensor.set_pattern(i, before);
      }
      if (has_special_values(c)) std::puts(canonical_text(case_json(c)).c_str());
    }
  }
}

SampleValues values_named(const std::string& name) {
  if (name == "coarse") return SampleValues::coarse;
  if (name == "wide") return SampleValues::wide;
  return name == "tiny" ? SampleValues::tiny : SampleValues::full;
}

}  // namespace
}  // namespace qkcts

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string(argv[1]) == "all") {
      qkcts::print_all();
      return 0;
    }
    if (argc == 2 && std::string(argv[1]) == "points") {
      qkcts::print_points();
      return 0;
    }
    if (argc == 2 && std::string(argv[1]) == "special") {
      qkcts::print_special();
      return 0;
    }
    if (argc != 5) return 2;
    qkcts::SampleSpec spec;
    spec.format = qkcts::format_named(argv[2]).value();
    spec.values = qkcts::values_named(argv[3]);
    spec.seed = std::stoull(argv[4]);
    qkcts::print(qkcts::shipped_contract(argv[1]), spec);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "reference_dump: {}\n", error.what());
    return 1;
  }
}
