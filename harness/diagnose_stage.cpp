// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_stage.hpp"

#include <numeric>

#include <fmt/format.h>

#include "conformance/neighbour.hpp"
#include "reference/evaluation.hpp"

namespace qkcts {
namespace {

struct VectorStages {
  qkcts_stage projection, norm, rope;
  Input input;
};
constexpr VectorStages of_q = {QKCTS_STAGE_Q_PROJ, QKCTS_STAGE_Q_NORM, QKCTS_STAGE_Q_ROPE, Input::q};
constexpr VectorStages of_k = {QKCTS_STAGE_K_PROJ, QKCTS_STAGE_K_NORM, QKCTS_STAGE_K_ROPE, Input::k};

bool exists(const qkcts_contract& terms, qkcts_stage stage) {
  return (stages_of(terms) & bit(stage)) != 0;
}

// In the order in which they are evaluated, the last one last.
std::vector<qkcts_stage> steps(const qkcts_contract& terms, const VectorStages& side) {
  std::vector<qkcts_stage> list;
  const bool rope_first = terms.rope.order == QKCTS_ROPE_THEN_NORM;
  for (const qkcts_stage stage :
       {side.projection, rope_first ? side.rope : side.norm, rope_first ? side.norm : side.rope})
    if (exists(terms, stage)) list.push_back(stage);
  return list;
}

// Every row of the stage, correctly rounded.
Tensor golden_tensor(const Case& c, qkcts_stage stage) {
  StageRows rows;
  rows[stage].resize(static_cast<std::size_t>(row_count(stage, c.shape)));
  std::iota(rows[stage].begin(), rows[stage].end(), 0U);
  Evaluation evaluation(c, rows);
  evaluation.evaluate_stored_vectors();
  const ReferenceResult result = evaluation.result();
  Tensor tensor = Tensor::zeros(element_type(c.inputs.format), stage_shape(stage, c.shape));
  for (std::size_t i = 0; i < tensor.count(); ++i) tensor.set_pattern(i, result.stages[stage].expected[i]);
  return tensor;
}

void remove_norms(qkcts_contract& terms) {
  terms.q_norm = terms.k_norm = qkcts_norm{};
  terms.q_range = terms.k_range = qkcts_norm_range{};
  for (qkcts_vector_rounding* rounding : {&terms.rounding.q, &terms.rounding.k})
    rounding->root = rounding->reciprocal = rounding->unit = rounding->norm = 0;
}

void remove_rotation(qkcts_contract& terms) {
  terms.rope = qkcts_rope{};
  terms.rotation = qkcts_rotation{};
  for (qkcts_vector_rounding* rounding : {&terms.rounding.q, &terms.rounding.k})
    rounding->rope_product = rounding->rope = 0;
}

void remove_projection(qkcts_contract& terms) {
  terms.projection = qkcts_projection{};
  terms.rounding.q.projection = terms.rounding.k.projection = 0;
  terms.rounding.q_input = terms.rounding.k_input = qkcts_input_rounding{};
}

std::string_view step_text(qkcts_stage stage) {
  switch (stage) {
    case QKCTS_STAGE_Q_ROPE:
    case QKCTS_STAGE_K_ROPE:
      return "the rotation";
    case QKCTS_STAGE_Q_NORM:
    case QKCTS_STAGE_K_NORM:
      return "the norm";
    default:
      return "the projection";
  }
}

// The longer list of steps of q and k.
std::vector<qkcts_stage> vector_steps(const qkcts_contract& terms) {
  const std::vector<qkcts_stage> q = steps(terms, of_q), k = steps(terms, of_k);
  return q.size() >= k.size() ? q : k;
}

Verdict verdict_with(LastStep last, const GoldenCase& golden, const Rerunner& rerunner, const CaseResult& failed) {
  std::optional<Case> part;
  try {
    part = substituted(golden.input, last);
  } catch (const UndecidedError&) {
    return Verdict::not_run;
  }
  if (!part) return Verdict::not_run;
  const std::optional<Rerun> made = rerun(rerunner, std::move(*part), golden, failed.profile);
  return made ? made->result.verdict : Verdict::not_run;
}

}  // namespace

std::optional<Case> substituted(const Case& c, LastStep last) {
  qkcts_contract terms = c.contract.terms;
  Case part = c;
  for (const VectorStages& side : {of_q, of_k}) {
    std::vector<qkcts_stage> list = steps(terms, side);
    if (last == LastStep::kept && !list.empty()) list.pop_back();
    if (!list.empty()) part.inputs.set(side.input, golden_tensor(c, list.back()));
  }
  const std::vector<qkcts_stage> list = vector_steps(terms);
  if (list.empty() || (last == LastStep::kept && list.size() == 1)) return std::nullopt;
  const qkcts_stage kept = last == LastStep::kept ? list.back() : QKCTS_STAGE_COUNT;
  const bool keeps_rope = kept == QKCTS_STAGE_Q_ROPE || kept == QKCTS_STAGE_K_ROPE;
  const bool keeps_norm = kept == QKCTS_STAGE_Q_NORM || kept == QKCTS_STAGE_K_NORM;
  remove_projection(terms);
  if (keeps_norm) terms.rope.order = QKCTS_NORM_THEN_ROPE;
  if (!keeps_norm) remove_norms(terms);
  if (!keeps_rope) remove_rotation(terms);
  if (!contract_fault(terms).empty()) return std::nullopt;
  part.contract.terms = terms;
  return case_under(part, terms);
}

Divergence observed_divergence(const Observation& observation) {
  const qkcts_stage failing = observation.first_failing();
  const StageSet existing = stages_of(observation.golden().input.contract.terms);
  StageSet before = 0;
  for (const qkcts_stage stage : all_stages) {
    if (stage == failing) break;
    before |= existing & bit(stage);
  }
  // The output does not come out of the lse, nor what is done to v out of q and k.
  before &= ~(bit(QKCTS_STAGE_LSE) | bit(QKCTS_STAGE_V_NORM));
  if (before == 0) return {failing, "observed: it is the first stage"};
  if ((before & ~observation.stages()) == 0) return {failing, "observed: every stage before it passes"};
  return {failing, {}};
}

Divergence substituted_divergence(qkcts_stage failing, const GoldenCase& golden, const Rerunner& rerunner,
                                  const CaseResult& failed) {
  const std::vector<qkcts_stage> list = vector_steps(golden.input.contract.terms);
  if (list.empty()) return {failing, "q and k are used as they come in, so it lies in the attention"};
  const Verdict alone = verdict_with(LastStep::replaced, golden, rerunner, failed);
  if (violates(alone))
    return {QKCTS_STAGE_SCORES, "on golden q and k, without norm and rotation, it fails too: in the attention"};
  const std::string unknown =
      fmt::format("not located before {}: the adapter does not take golden q and k instead", stage_name(failing));
  if (alone != Verdict::pass) return {failing, unknown};
  const qkcts_stage last = list.back();
  if (list.size() == 1) return {last, fmt::format("on golden q and k it passes: in {} of q or k", step_text(last))};
  const Verdict with_last = verdict_with(LastStep::kept, golden, rerunner, failed);
  if (violates(with_last))
    return {last, fmt::format("on what comes before {} it fails, on what comes after it passes", step_text(last))};
  if (with_last == Verdict::pass)
    return {list[list.size() - 2], fmt::format("{} passes on golden rows: in {} of q or k", step_text(last),
                                               step_text(list[list.size() - 2]))};
  return {list.front(), "on golden q and k it passes: in what makes them"};
}

}  // namespace qkcts
