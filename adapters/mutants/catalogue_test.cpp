// SPDX-License-Identifier: Apache-2.0
#include "adapters/mutants/catalogue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <set>
#include <string>

#include "adapters/adapter_tables.hpp"
#include "adapters/sample_case.hpp"

namespace qkcts::mutants {
namespace {

// A prepared mutants adapter.
class Prepared {
 public:
  explicit Prepared(const std::string& options) {
    status_ = qkcts_adapter_mutants()->prepare(options.c_str(), &state_, nullptr);
  }
  ~Prepared() { qkcts_adapter_mutants()->release(state_); }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  qkcts_status status() const { return status_; }
  SampleRun run(SampleCase& sample, std::uint32_t stages) const {
    return run_sample(*qkcts_adapter_mutants(), sample, stages, SampleLayout::contiguous, state_);
  }

 private:
  void* state_ = nullptr;
  qkcts_status status_;
};

constexpr std::uint32_t bit(qkcts_stage stage) {
  return 1u << stage;
}

bool differ(const SampleRun& a, const SampleRun& b, qkcts_stage stage) {
  const auto& x = a.stages[stage];
  const auto& y = b.stages[stage];
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i] && !(std::isnan(x[i]) && std::isnan(y[i]))) return true;
  return false;
}

TEST(Catalogue, IdsAreUniqueAndClausesNamed) {
  std::set<std::string_view> ids;
  for (const Mutant* mutant : catalogue()) {
    EXPECT_TRUE(ids.insert(mutant->id).second) << mutant->id;
    EXPECT_EQ(mutant->id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string_view::npos);
    EXPECT_EQ(mutant->clause.substr(0, 3), "QK-") << mutant->id;
    EXPECT_FALSE(mutant->wrong.empty()) << mutant->id;
    EXPECT_EQ(find_mutant(mutant->id), mutant);
  }
  EXPECT_EQ(find_mutant("none"), nullptr);
  EXPECT_GE(ids.size(), 150u);
}

TEST(Catalogue, ControlIsScalarBitForBit) {
  std::mt19937_64 source(17);
  const Prepared control("mutant=none");
  ASSERT_EQ(control.status(), QKCTS_OK);
  for (int i = 0; i < 40; ++i) {
    SampleCase sample = random_sample(source, 1 + static_cast<std::uint32_t>(i % 4), ContractVersion::v1_2);
    const std::uint32_t stages = existing_stages(sample.terms);
    const SampleRun mine = control.run(sample, stages);
    const SampleRun scalar = run_sample(*qkcts_adapter_scalar(), sample, stages, SampleLayout::contiguous);
    ASSERT_EQ(mine.status, QKCTS_OK);
    for (int stage = 0; stage < QKCTS_STAGE_COUNT; ++stage)
      EXPECT_FALSE(differ(mine, scalar, static_cast<qkcts_stage>(stage))) << sample.text();
  }
}

struct LaterClause {
  std::string_view id;
  bool (*at_work)(const qkcts_contract&);  // has the contract more of it than its default?
  ContractVersion since = ContractVersion::v1_1;
};

bool rotates(const qkcts_contract& c) {
  return c.rope.order != QKCTS_ROPE_NONE;
}

bool learns_scale(const qkcts_contract& c) {
  return c.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR;
}

bool projects(const qkcts_contract& c) {
  return c.projection.form == QKCTS_PROJECTION_LINEAR;
}

bool rounds(const qkcts_contract& c) {
  constexpr qkcts_rounding none{};
  return std::memcmp(&c.rounding, &none, offsetof(qkcts_rounding, saturate)) != 0;
}

constexpr LaterClause later_clauses[] = {
    {"QK-HEADS-02", [](const qkcts_contract& c) { return c.heads.mapping == QKCTS_HEADS_TILE; }},
    {"QK-CLIP-01", [](const qkcts_contract& c) { return c.q_range.clip_before != 0 && c.k_range.clip_before != 0; }},
    {"QK-CLIP-02", [](const qkcts_contract& c) { return c.q_range.clip_after != 0 && c.k_range.clip_after != 0; }},
    {"QK-MULT-01", [](const qkcts_contract& c) { return c.q_range.multiplier > 1 && c.k_range.multiplier > 1; }},
    {"QK-ROPE-07", [](const qkcts_contract& c) { return rotates(c) && c.rotation.sense == QKCTS_SENSE_NEGATIVE; }},
    {"QK-ROPE-08", [](const qkcts_contract& c) { return rotates(c) && c.rotation.layout != QKCTS_LAYOUT_KEPT; }},
    {"QK-ROPE-09", [](const qkcts_contract& c) { return rotates(c) && c.rotation.angles == QKCTS_ANGLES_COMPUTED; }},
    {"QK-ROPE-10",
     [](const qkcts_contract& c) {
       return rotates(c) && c.rotation.angles == QKCTS_ANGLES_COMPUTED && c.rotation.scaling != QKCTS_SCALING_NONE;
     }},
    {"QK-ROPE-11",
     [](const qkcts_contract& c) {
       return rotates(c) && c.rotation.angles == QKCTS_ANGLES_COMPUTED && c.rotation.attention_factor != 0;
     }},
    {"QK-SCALE-03",
     [](const qkcts_contract& c) { return learns_scale(c) && c.logits.scale_axes == QKCTS_SCALE_PER_HEAD; }},
    {"QK-SCALE-04", [](const qkcts_contract& c) { return learns_scale(c) && c.logits.scale_exp_cap != 0; }},
    {"QK-QTEMP-01", [](const qkcts_contract& c) { return c.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_LOG; }},
    {"QK-QTEMP-02", [](const qkcts_contract& c) { return c.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_LOG; }},
    {"QK-ALIBI-01", [](const qkcts_contract& c) { return c.logits.alibi != QKCTS_ALIBI_NONE; }},
    {"QK-MASK-07", [](const qkcts_contract& c) { return c.regions.chunk != 0; }},
    {"QK-MASK-08", [](const qkcts_contract& c) { return c.regions.documents != 0; }},
    {"QK-MASK-09", [](const qkcts_contract& c) { return c.regions.prefix != 0; }},
    {"QK-HIDDEN-01", [](const qkcts_contract& c) { return c.softmax.hidden_values == QKCTS_HIDDEN_EXCLUDED; }},
    {"QK-SINK-01", [](const qkcts_contract& c) { return c.softmax.sink != QKCTS_SINK_NONE; }},
    {"QK-BASE-01", [](const qkcts_contract& c) { return c.softmax.base == QKCTS_BASE_TWO; }},
    {"QK-BASE-02", [](const qkcts_contract& c) { return c.softmax.lse_base == QKCTS_BASE_TWO; }},
    {"QK-VNORM-01", [](const qkcts_contract& c) { return c.v_norm.applied != 0; }, ContractVersion::v1_2},
    {"QK-PROJ-01", projects, ContractVersion::v1_2},
    {"QK-PROJ-02", projects, ContractVersion::v1_2},
    {"QK-PROJ-03",
     [](const qkcts_contract& c) {
       return projects(c) && c.projection.q_input.applied != 0 && c.projection.k_input.applied != 0;
     },
     ContractVersion::v1_2},
    {"QK-ROPE-12", [](const qkcts_contract& c) { return rotates(c) && c.rotation.tables == QKCTS_TABLES_PER_HEAD; },
     ContractVersion::v1_2},
    {"QK-ROUND-01", rounds, ContractVersion::v1_2},
    {"QK-ROUND-02", rounds, ContractVersion::v1_2},
};

// A later form of an older clause.
constexpr LaterClause log_ratio = {
    "QK-QTEMP-01",
    [](const qkcts_contract& c) { return c.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_LOG_RATIO; },
    ContractVersion::v1_2};

const LaterClause* later_clause(const Mutant& mutant) {
  if (mutant.id.find("log_ratio") != std::string_view::npos) return &log_ratio;
  for (const LaterClause& clause : later_clauses)
    if (clause.id == mutant.clause) return &clause;
  return nullptr;
}

// A clause of ABI 1.0 is looked at without the later ones, which would show by themselves.
qkcts_contract exposing_contract(const Mutant& mutant, std::mt19937_64& source, const qkcts_shape& shape) {
  const LaterClause* const later = later_clause(mutant);
  qkcts_contract terms{};
  do {
    terms = random_contract(source, shape, later == nullptr ? ContractVersion::v1_0 : later->since);
  } while (later != nullptr && !later->at_work(terms));
  terms.q_norm.applied = terms.k_norm.applied = 1;
  if (mutant.id == "overflow_saturated") terms.q_range.multiplier = 1e6;
  if (mutant.id == "mask_finite_sentinel") {  // rows whose visible scores all lie below the sentinel
    terms.score.scale_form = QKCTS_SCALE_CONSTANT;
    terms.score.scale_value = 1e7;
    terms.score.softcap = 0;
    return terms;
  }
  if (source() % 2 == 0 && later == nullptr) {
    // Large scores, far apart: what needs the maximum shows.
    terms.score.scale_form = QKCTS_SCALE_CONSTANT;
    terms.score.scale_value = 40;
  }
  return terms;
}

// Queries far beyond the largest number of e4m3fn, rounded to it after the rotation and nowhere before.
SampleCase overflowing_case(const SampleCase& drawn, std::mt19937_64& source) {
  SampleCase sample = drawn;
  sample.terms = plain_contract();
  sample.terms.rope = {QKCTS_NORM_THEN_ROPE, QKCTS_HALF_SPLIT, QKCTS_SPAN_FIRST, 0, 100};
  sample.terms.rounding.q.rope = sample.terms.rounding.k.rope = QKCTS_E4M3FN;
  sample.terms.rounding.saturate = 1;
  draw_inputs(sample, source, SampleLayout::contiguous);
  SampleTensor& q = sample.inputs[sample_q];
  for (std::size_t i = 0; i < q.count(); ++i) q.set(i, q.get(i) * 1024);
  return sample;
}

// NaN and infinities where every query may see them.
void spoil(SampleCase& sample) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto lanes = static_cast<std::size_t>(sample.shape.head_dim);
  sample.inputs[sample_q].set(0, std::nan(""));
  sample.inputs[sample_q].set(lanes * static_cast<std::size_t>(sample.shape.q_len), infinity);
  sample.inputs[sample_v].set(0, std::nan(""));
  sample.inputs[sample_v].set(2, -infinity);
}

// A case whose data exposes as many faults at once as one contract can hold.
SampleCase exposing_case(const Mutant& mutant, std::mt19937_64& source) {
  SampleCase sample;
  sample.format = mutant.id == "bf16_truncate" ? QKCTS_BFLOAT16 : QKCTS_BINARY32;
  if (mutant.id == "ftz_inputs" || mutant.id == "overflow_saturated") sample.format = QKCTS_BINARY16;
  // More keys than queries, fewer, and one query alone.
  const std::int64_t lengths[][2] = {{35, 37}, {37, 35}, {1, 37}};
  const auto& [q_len, k_len] = lengths[source() % 3];
  sample.shape = {2, 4, 2, q_len, k_len, 80, 24};
  if (mutant.id == "gqa_tile_boundary") sample.shape = {1, 48, 2, 3, 5, 8, 8};     // G = 24
  if (mutant.id == "rescale_missing_64") sample.shape = {1, 2, 1, 9, 130, 16, 8};  // more than one block of 64
  if (mutant.clause == "QK-ROPE-12") sample.shape.kv_heads = sample.shape.q_heads;
  sample.terms = exposing_contract(mutant, source, sample.shape);
  if (mutant.clause == "QK-ROUND-02") return overflowing_case(sample, source);
  draw_inputs(sample, source, mutant.id == "strides_ignored" ? SampleLayout::scattered : SampleLayout::contiguous);
  if (mutant.id.starts_with("special_")) spoil(sample);
  if (mutant.id == "ftz_inputs") sample.inputs[sample_q].set(0, 0x1p-20);
  return sample;
}

// Stages that are evaluated before the given one and before its twin of the other side.
std::vector<qkcts_stage> earlier_stages(const qkcts_contract& terms, qkcts_stage stage) {
  const std::vector<qkcts_stage> projection = {QKCTS_STAGE_Q_PROJ, QKCTS_STAGE_K_PROJ};
  const std::vector<qkcts_stage> norm = {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_NORM};
  const std::vector<qkcts_stage> rope = {QKCTS_STAGE_Q_ROPE, QKCTS_STAGE_K_ROPE};
  const bool rope_first = terms.rope.order == QKCTS_ROPE_THEN_NORM;
  std::vector<std::vector<qkcts_stage>> order = {projection, rope_first ? rope : norm, rope_first ? norm : rope};
  // v goes its own way, and meets the others in the output.
  if (stage == QKCTS_STAGE_V_NORM || stage == QKCTS_STAGE_OUTPUT) order.push_back({QKCTS_STAGE_V_NORM});
  for (int i = QKCTS_STAGE_SCORES; i <= QKCTS_STAGE_OUTPUT; ++i) order.push_back({static_cast<qkcts_stage>(i)});
  std::vector<qkcts_stage> earlier;
  for (const auto& step : order) {
    if (std::find(step.begin(), step.end(), stage) != step.end()) break;
    earlier.insert(earlier.end(), step.begin(), step.end());
  }
  return earlier;
}

// Each wrong kernel differs from the control in the stage that the catalogue names, and before it nowhere.
TEST(Catalogue, EveryMutantIsWrongWhereItSaysSo) {
  const Prepared control("mutant=none");
  for (const Mutant* mutant : catalogue()) {
    if (mutant->misdeed != nullptr || mutant->expectation != Expectation::fail) continue;
    const Prepared wrong("mutant=" + std::string(mutant->id));
    ASSERT_EQ(wrong.status(), QKCTS_OK) << mutant->id;
    std::mt19937_64 source(23);
    bool seen = false;
    for (int i = 0; i < 200 && !seen; ++i) {
      SampleCase sample = exposing_case(*mutant, source);
      const std::uint32_t stages = existing_stages(sample.terms) | bit(mutant->stage);
      const SampleRun right = control.run(sample, stages);
      const SampleRun run = wrong.run(sample, stages);
      ASSERT_EQ(run.status, QKCTS_OK) << mutant->id << ": " << run.message;
      seen = differ(right, run, mutant->stage);
      EXPECT_EQ(run.implementation, "scalar, mutant=" + std::string(mutant->id));
      if (!seen || mutant->clause == "QK-STAGE-01") continue;  // narrowing is every stage's
      for (const qkcts_stage stage : earlier_stages(sample.terms, mutant->stage))
        EXPECT_FALSE(differ(right, run, stage)) << mutant->id << ": " << stage_text(stage);
    }
    EXPECT_TRUE(seen) << mutant->id;
  }
}

TEST(Catalogue, UnknownIdIsRefused) {
  EXPECT_EQ(Prepared("mutant=no_such").status(), QKCTS_INVALID);
}

}  // namespace
}  // namespace qkcts::mutants
