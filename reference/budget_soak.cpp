// SPDX-License-Identifier: Apache-2.0
#include "reference/budget_soak.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "conformance/further_profiles.hpp"
#include "reference/attention.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

// |got - z| / Delta, z = hi + lo/256 ulp64(hi). Two neighbouring numbers of binary64 differ exactly in long double.
double error_ratio(double got, const ProvenStage& proven, std::size_t i, float delta) {
  const auto fine =
      static_cast<long double>(proven.lo[i]) / 256 * static_cast<long double>(ulp(Format::binary64, proven.hi[i]));
  const long double error = std::fabs((static_cast<long double>(got) - static_cast<long double>(proven.hi[i])) - fine);
  return error == 0 ? 0 : static_cast<double>(error / static_cast<long double>(delta));
}

// QK-SPECIAL: is the class of `got` one that the element may have?
bool class_holds(double got, const ProvenStage& proven, std::size_t i) {
  if (proven.rule[i] == ElementRule::not_finite) {
    return !std::isfinite(got);
  }
  return std::isnan(got) || (std::isinf(proven.hi[i]) && got == proven.hi[i]);
}

void judge(const Case& c, const ReferenceResult& truth, const std::array<StageBudget, QKCTS_STAGE_COUNT>& budgets,
           const StageValues& got, const Profile& profile, const LegalVariant& variant, std::string_view family,
           SoakTally& tally) {
  ++tally.runs;
  for (const qkcts_stage stage : all_stages) {
    const ProvenStage& proven = truth.stages[stage];
    const double largest = parameters(stage_format(stage, c.inputs.format)).largest;
    Worst worst;
    for (std::size_t i = 0; i < proven.hi.size(); ++i) {
      if (is_by_class(proven.rule[i])) {
        ++tally.by_class;
        if (!class_holds(got[stage][i], proven, i)) {
          ++tally.rejects;
          if (tally.first_reject.empty()) {
            tally.first_reject = fmt::format(
                "{} {} {}[{}]: got {} due {} ({}); {}; {}", c.slug, profile.name, stage_name(stage), i, got[stage][i],
                proven.hi[i], static_cast<int>(proven.rule[i]), variant.text(), canonical_json(c.contract));
          }
        }
      }
      if (proven.rule[i] != ElementRule::budget && proven.rule[i] != ElementRule::budget_exact) {
        continue;
      }
      ++tally.elements;
      if (budgets[stage].trust[i] == Trust::domain) {
        ++tally.domain;
        continue;
      }
      tally.mistrusted += budgets[stage].trust[i] == Trust::mistrusted ? 1 : 0;
      const float delta = budgets[stage].delta[i];
      double ratio = error_ratio(got[stage][i], proven, i, delta);
      if (std::isinf(got[stage][i]) && std::fabs(proven.hi[i]) + static_cast<double>(delta) >= largest) {
        ratio = 0;  // both readings are right this close to overflow
      }
      if (!(ratio <= 1)) {
        ++tally.rejects;
        if (tally.first_reject.empty()) {
          tally.first_reject = fmt::format("{} {} {}[{}]: got {} exact {} Delta {} ratio {}; {}; {}", c.slug,
                                           profile.name, stage_name(stage), i, got[stage][i], proven.hi[i], delta,
                                           ratio, variant.text(), canonical_json(c.contract));
        }
      }
      if (ratio > worst.ratio) {
        worst = {ratio, fmt::format("{}[{}] {}", c.slug, i, variant.text())};
      }
    }
    if (!proven.hi.empty()) {
      Worst& known = tally.worst[{profile.name, std::string(stage_name(stage))}][std::string(family)];
      if (worst.ratio > known.ratio) {
        known = worst;
      }
    }
  }
}

// The case that a faulty implementation evaluates.
Case with_fault(const Case& c, const SoakFault& fault) {
  Case wrong = c;
  wrong.contract.terms.q_norm.eps *= fault.eps_factor;
  wrong.contract.terms.k_norm.eps *= fault.eps_factor;
  wrong.contract.terms.v_norm.eps *= fault.eps_factor;
  wrong.contract.terms.projection.q_input.eps *= fault.eps_factor;
  wrong.contract.terms.projection.k_input.eps *= fault.eps_factor;
  if (fault.scale_factor != 1) {
    wrong.contract.terms.score.temperature = 1 / fault.scale_factor;
  }
  if (fault.weight_factor != 1) {
    Tensor weight = c.inputs.at(Input::q_weight);
    for (std::size_t i = 0; i < weight.count(); ++i) {
      weight.set_pattern(i, encode(c.inputs.format, weight.value(i) * fault.weight_factor));
    }
    wrong.inputs.set(Input::q_weight, weight);
  }
  if (fault.drop_last_key) {
    wrong.contract.terms.mask.has_window = 1;
    wrong.contract.terms.mask.alignment = QKCTS_OFFSET;
    wrong.contract.terms.mask.offset = c.shape.k_len - 2;
    wrong.contract.terms.mask.window_left = -1;
    wrong.contract.terms.mask.window_right = 0;
  }
  if (fault.change != nullptr) {
    fault.change(wrong.contract.terms);
  }
  return wrong;
}

template <typename Enum>
void mutate(SoakRandom& random, std::uint32_t& field, int count) {
  if (random.below(4) == 0) {
    field = static_cast<std::uint32_t>(random.choose<Enum>(count));
  }
}

// Clauses that most contracts leave at their defaults, each at random.
void vary_rotation(SoakRandom& random, qkcts_contract& terms) {
  qkcts_rotation& rotation = terms.rotation;
  mutate<qkcts_rope_sense>(random, rotation.sense, 2);
  mutate<qkcts_rope_angles>(random, rotation.angles, 2);
  mutate<qkcts_rope_scaling>(random, rotation.scaling, 6);
  if (terms.rope.pairing == QKCTS_INTERLEAVED) {
    mutate<qkcts_rope_layout>(random, rotation.layout, 2);
  }
  rotation.factor = random.choose<double>(
      {rotation.scaling == QKCTS_SCALING_PROPORTIONAL ? 0.3 : 2.7, rotation.factor > 0 ? rotation.factor : 0.5});
  rotation.original_length = random.choose<double>({64, 1000});
  rotation.low = random.choose<double>({1, 0.7});
  rotation.high = random.choose<double>({4, 31.3});
  rotation.attention_factor = random.choose<double>({0, 1.2079441541679836});
  mutate<std::uint32_t>(random, rotation.untruncated, 2);
  if (rotation.angles == QKCTS_ANGLES_TABLE) {
    mutate<qkcts_rope_tables>(random, rotation.tables, 2);
  }
}

// Norms that a contract of version 1.0 has not: of v, and before a projection.
qkcts_norm random_norm(SoakRandom& random, bool row) {
  qkcts_norm norm{};
  norm.applied = random.below(4) == 0 ? 0 : 1;
  if (norm.applied == 0) {
    return norm;
  }
  const std::uint32_t whole = row ? QKCTS_AXES_FULL_WIDTH : QKCTS_AXES_HEAD_DIM;
  norm.axis = !row && random.below(3) == 0 ? QKCTS_AXIS_FULL_WIDTH : QKCTS_AXIS_HEAD;
  norm.center = random.choose<std::uint32_t>(2);
  norm.statistic = random.choose<qkcts_statistic>(2);
  norm.root = random.choose<qkcts_root>(4);
  norm.variance = norm.center != 0 && norm.statistic == QKCTS_MEAN_SQUARE ? random.choose<qkcts_variance>(2)
                                                                          : QKCTS_VARIANCE_TWO_PASS;
  norm.eps = random.choose<double>({1e-5, 1e-6, 1e-12, 0.1, 3e-39});
  norm.gain = random.choose<qkcts_gain>(3);
  if (norm.gain != QKCTS_GAIN_NONE) {
    norm.gain_axes = random.choose<std::uint32_t>({whole, whole, QKCTS_AXES_SCALAR});
  }
  norm.bias_axes = random.below(3) == 0 ? whole : static_cast<std::uint32_t>(QKCTS_AXES_NONE);
  return norm;
}

void vary_rows(SoakRandom& random, qkcts_contract& terms) {
  if (random.below(3) == 0) {
    terms.v_norm = random_norm(random, false);
  }
  if (random.below(3) == 0) {
    terms.projection.form = QKCTS_PROJECTION_LINEAR;
    terms.projection.bias = static_cast<std::uint32_t>(random.below(2));
    terms.projection.q_input = random_norm(random, true);
    terms.projection.k_input = random.below(3) == 0 ? random_norm(random, true) : terms.projection.q_input;
  }
}

void vary_later_clauses(SoakRandom& random, qkcts_contract& terms) {
  vary_rows(random, terms);
  for (qkcts_norm_range* range : {&terms.q_range, &terms.k_range, &terms.v_range}) {
    if (random.below(3) == 0) {
      range->clip_before = random.choose<double>({0, 0.4, 1.25});
      range->multiplier = random.choose<double>({0, 1.7, 0.3});
      range->clip_after = random.choose<double>({0, 0.7, 2.5});
    }
  }
  if (terms.rope.order != QKCTS_ROPE_NONE && random.below(2) == 0) {
    vary_rotation(random, terms);
  }
  if (random.below(4) == 0) {
    terms.score.scale_form = QKCTS_SCALE_LEARNED_SCALAR;
    terms.logits.scale_axes = random.choose<qkcts_scale_axes>(2);
    terms.logits.scale_exp_cap = random.choose<double>({0, 1.3});
  }
  mutate<qkcts_alibi>(random, terms.logits.alibi, 4);
  mutate<qkcts_query_temperature>(random, terms.logits.query_temperature, 3);
  terms.logits.query_alpha = 0.3;
  terms.logits.query_period = 4;
  mutate<qkcts_sink>(random, terms.softmax.sink, 3);
  mutate<qkcts_base>(random, terms.softmax.base, 2);
  mutate<qkcts_base>(random, terms.softmax.lse_base, 2);
  mutate<qkcts_head_mapping>(random, terms.heads.mapping, 2);
}

}  // namespace

std::vector<SoakProfile> soak_profiles(Format format) {
  std::vector<SoakProfile> profiles;
  for (Profile& profile : selectable_profiles(format)) {
    const bool eight_lanes = profile.lanes == 8;
    const int block = profile.online_block > 1 ? profile.online_block : 0;
    profiles.push_back({std::move(profile), eight_lanes, block});
  }
  if (format == Format::binary32) {
    Profile blocks = shipped_profile("f32");
    blocks.name = "f32_online16";
    blocks.online_block = 16;
    profiles.push_back({blocks, false, 16});
    Profile exact = shipped_profile("f32");
    exact.name = "f32_rounded_functions";
    exact.k_sqrt = exact.k_exp = exact.k_tanh = exact.k_log = exact.k_div = 0.5;
    exact.k_rsqrt = 1;
    exact.shift_slack = 3;
    profiles.push_back({exact, false, 0});
    Profile zero = shipped_profile("f32_ftz");
    zero.name = "f32_daz";
    zero.flush_to_zero = false;
    profiles.push_back({zero, false, 0});
  }
  return profiles;
}

LegalVariant random_variant(SoakRandom& random, const SoakProfile& profile) {
  LegalVariant v;
  v.sum = random.choose<LegalVariant::Sum>(6);
  // Units of three generations, each with its own width and precision: docs/budgets.md, "Arithmetic".
  v.matrix_products = random.choose<int>(profile.profile.name.ends_with("_hopper")   ? std::vector<int>{16}
                                         : profile.profile.name.ends_with("_ampere") ? std::vector<int>{8, 16}
                                                                                     : std::vector<int>{4, 8, 16});
  v.matrix_fraction = v.matrix_products == 4 ? 23 : (v.matrix_products == 8 ? 24 : 25);
  if (profile.profile.u_q > 0) {  // units for tf32
    v.matrix_products = random.choose<int>({4, 8});
    v.matrix_fraction = v.matrix_products == 4 ? 24 : 25;
  }
  if (profile.profile.product_growth < 1) {
    v.sum = LegalVariant::Sum::matrix;
    v.variance = LegalVariant::Variance::two_pass;
  }
  v.feed = random.choose<LegalVariant::Feed>(3);
  v.variance = random.choose<LegalVariant::Variance>(4);
  v.root = random.choose<LegalVariant::Root>(3);
  v.association = random.choose<LegalVariant::Association>(3);
  v.scale = random.choose<LegalVariant::Scale>(4);
  v.base = random.choose<LegalVariant::Base>(5);
  v.softmax = random.choose<LegalVariant::Softmax>(4);
  v.order = random.choose<LegalVariant::Order>(2);
  v.normalise = random.choose<LegalVariant::Normalise>(2);
  v.quotient = random.choose<LegalVariant::Quotient>(2);
  v.row_sum = random.choose<LegalVariant::RowSum>(2);
  v.factor = random.choose<LegalVariant::Factor>(4);
  v.frequency = random.choose<LegalVariant::Frequency>(4);
  v.temperature = random.choose<LegalVariant::Temperature>(3);
  v.biases = random.choose<LegalVariant::Biases>(4);
  v.sink = random.choose<LegalVariant::Sink>(4);
  v.functions = random.choose<LegalVariant::Functions>(5);
  v.block = random.choose<int>({1, 2, 5, 16});
  v.afresh = random.below(2) == 0;
  v.lazy = random.below(2) == 0;
  v.scaled_positions = random.below(2) == 0;
  v.converts_by_quotient = random.below(2) == 0;
  v.store_weights = random.below(4) != 0;
  v.fold = random.choose<LegalVariant::Fold>(4);
  v.weight_bias = random.choose<LegalVariant::WeightBias>(2);
  v.logarithm_first = random.below(2) == 0;
  v.target = static_cast<std::uint32_t>(random.below(64));
  v.matrix_aligns_stored = v.target % 2 == 0;  // no draw of its own: the runs stay those that reach their bounds
  if (profile.eight_lanes) {
    v.sum = LegalVariant::Sum::lanes8;
    v.variance = LegalVariant::Variance::two_pass;
  }
  if (profile.block != 0) {
    v.block = profile.block;
  }
  return v;
}

Contract random_contract(SoakRandom& random) {
  const std::vector<std::string> names = shipped_contracts();
  for (;;) {
    Contract contract = shipped_contract(random.choose(names));
    if (random.below(2) == 0) {
      return contract;
    }
    qkcts_contract& terms = contract.terms;
    for (qkcts_norm* norm : {&terms.q_norm, &terms.k_norm}) {
      if (norm->applied == 0) {
        continue;
      }
      mutate<std::uint32_t>(random, norm->center, 2);
      mutate<qkcts_statistic>(random, norm->statistic, 2);
      mutate<qkcts_root>(random, norm->root, 4);
      mutate<qkcts_norm_axis>(random, norm->axis, 2);
      mutate<qkcts_variance>(random, norm->variance, 2);
      norm->eps = random.choose<double>({norm->eps, 1e-6, 1e-12, 0.1, 3e-39});
    }
    if (terms.rope.order != QKCTS_ROPE_NONE && terms.q_norm.applied + terms.k_norm.applied > 0) {
      terms.rope.order = random.below(2) == 0 ? QKCTS_NORM_THEN_ROPE : QKCTS_ROPE_THEN_NORM;
    }
    terms.score.temperature = random.choose<double>({0, 0.7, 3});
    if (terms.score.bias_order == QKCTS_BIAS_NONE) {
      terms.score.softcap = random.choose<double>({0, 0.9, 30, 41.7});
    }
    vary_later_clauses(random, terms);
    contract.name += "_varied";
    if (contract_fault(terms).empty()) {
      return contract;
    }
  }
}

Worst SoakTally::largest(const std::string& profile, const std::string& stage) const {
  Worst best;
  const auto found = worst.find({profile, stage});
  if (found != worst.end()) {
    for (const auto& [family, value] : found->second) {
      if (value.ratio > best.ratio) {
        best = {value.ratio, family};
      }
    }
  }
  return best;
}

std::string SoakTally::text() const {
  std::string table = fmt::format("{} runs, {} elements: {} rejects, {} mistrusted, {} domain; {} cases refused\n",
                                  runs, elements, rejects, mistrusted, domain, refused);
  for (const auto& [key, families] : worst) {
    const Worst best = largest(key.first, key.second);
    table += fmt::format("{:22} {:8} {:.3f} {}\n", key.first, key.second, best.ratio, best.where);
  }
  return table;
}

void soak_one(const Case& c, std::string_view family, int variants, SoakRandom& random, SoakTally& tally,
              const SoakFault& fault, TermSet terms) {
  ReferenceResult truth;
  try {
    truth = evaluate(c, every_row(c));
  } catch (const std::runtime_error&) {  // undecided, or 0/0 in a norm without epsilon
    ++tally.refused;
    return;
  }
  const Case wrong = with_fault(c, fault);
  for (const SoakProfile& profile : soak_profiles(c.inputs.format)) {
    const auto budgets = stage_budgets(c, truth.exact, every_row(c), profile.profile, terms);
    for (int k = 0; k < variants; ++k) {
      LegalVariant variant = random_variant(random, profile);
      variant.cut_at_points = fault.cut_at_points;
      const StageValues got = run_legal_variant(wrong, truth.exact, profile.profile, variant);
      judge(c, truth, budgets, got, profile.profile, variant, family, tally);
    }
  }
}

void soak(std::uint64_t seed, int cases, int variants, SoakTally& tally, Contract (*contract_of)(SoakRandom&)) {
  SoakRandom random(seed);
  for (int i = 0; i < cases; ++i) {
    const Contract contract = contract_of(random);
    const auto format = random.choose<Format>(
        {Format::binary32, Format::binary32, Format::bfloat16, Format::binary16, Format::binary64});
    const auto family = random.choose<SoakFamily>(soak_family_count);
    qkcts_shape shape{1, 2, 1, 2, 0, 0, 3};
    shape.k_len = random.choose<std::int64_t>({1, 2, 3, 7, 24, 65});
    shape.head_dim = random.choose<std::int64_t>({2, 6, 18, 32, 64});
    if (contract.terms.rotation.tables == QKCTS_TABLES_PER_HEAD) {
      shape.kv_heads = shape.q_heads;
    }
    if (!shape_fault(contract.terms, shape).empty()) {
      shape.head_dim = 32;
    }
    soak_one(soak_case(contract, format, family, shape, random.below(1u << 30)), soak_family_name(family), variants,
             random, tally);
  }
}

}  // namespace qkcts
