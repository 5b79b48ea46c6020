// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/adequacy_view.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/contract_field.hpp"

namespace qkcts::cli {
namespace {

// A masked score below it stands for a hidden key.
constexpr double sentinel = -1e30;

std::vector<qkcts_stage> stages_named_by(const std::string& rule) {
  if (rule == "norm") return {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_NORM};
  if (rule == "rope") return {QKCTS_STAGE_Q_ROPE, QKCTS_STAGE_K_ROPE};
  if (rule == "scores") return {QKCTS_STAGE_SCORES};
  if (rule == "softcap") return {QKCTS_STAGE_CAPPED};
  if (rule == "probs") return {QKCTS_STAGE_PROBS};
  return {QKCTS_STAGE_OUTPUT};
}

// Every stage in the storage format, as a framework computes that knows nothing else.
std::optional<Case> low_case(const GoldenCase& golden) {
  Case c = golden.input;
  if (c.inputs.format == Format::binary32) return c;
  const auto point = static_cast<std::uint32_t>(c.inputs.format);
  qkcts_rounding& rounding = c.contract.terms.rounding;
  const StageSet stages = stages_of(c.contract.terms);
  const auto has = [&](qkcts_stage stage) { return (stages & bit(stage)) != 0; };
  if (has(QKCTS_STAGE_Q_NORM)) rounding.q.norm = point;
  if (has(QKCTS_STAGE_K_NORM)) rounding.k.norm = point;
  if (has(QKCTS_STAGE_V_NORM)) rounding.v.norm = point;
  if (has(QKCTS_STAGE_Q_ROPE)) rounding.q.rope = point;
  if (has(QKCTS_STAGE_K_ROPE)) rounding.k.rope = point;
  if (has(QKCTS_STAGE_CAPPED)) rounding.capped = point;
  rounding.scores = rounding.probs = rounding.output = point;
  c.contract.terms = normalised(c.contract.terms);
  if (!contract_fault(c.contract.terms).empty()) return std::nullopt;
  return c;
}

bool has_plain_softmax(const qkcts_contract& terms) {
  return terms.softmax.sink == QKCTS_SINK_NONE && terms.softmax.base == QKCTS_BASE_E;
}

}  // namespace

PeerQuestion question_of_fault(StageSet failing) {
  PeerQuestion question{failing, 0};
  for (const qkcts_stage stage : all_stages)
    if ((failing & bit(stage)) != 0) {
      question.operators = bit(stage);
      break;
    }
  return question;
}

struct PeerReference::Points {
  std::vector<double> got, exact, low, weighted, own, own_absolute;
};

PeerReference::PeerReference(const GoldenCase& golden, const BundledKernel& control)
    : golden_(golden), control_(control.outputs(golden.input)) {
  if (const std::optional<Case> low = low_case(golden)) low_ = control.outputs(*low);
}

PeerReference::Points PeerReference::points_of(qkcts_stage stage, const StageBytes& outputs) const {
  const Case& c = golden_.input;
  const Format storage = c.inputs.format;
  const qkcts_shape& s = c.shape;
  const ProvenStage& proven = golden_.stages[stage].values;
  const auto length = static_cast<std::size_t>(row_length(stage, s));
  const auto keys = static_cast<std::size_t>(s.k_len);
  const std::vector<double> all = stage_values(outputs, stage, storage);
  std::vector<double> low, probs, masked;
  if (low_ && !(*low_)[stage].empty()) low = stage_values(*low_, stage, storage);
  // Operands are seen as the operation had them where the storage format is that of the arithmetic.
  const bool shows_operands = storage == Format::binary32;
  const bool is_output = stage == QKCTS_STAGE_OUTPUT && c.inputs.has(Input::v) &&
                         !transforms(c.contract.terms.v_norm, c.contract.terms.v_range);
  if (is_output && shows_operands) probs = stage_values(outputs, QKCTS_STAGE_PROBS, storage);
  std::vector<double> right_probs;
  if (is_output && control_) right_probs = stage_values(*control_, QKCTS_STAGE_PROBS, storage);
  if (stage == QKCTS_STAGE_PROBS && shows_operands && has_plain_softmax(c.contract.terms))
    masked = stage_values(outputs, QKCTS_STAGE_MASKED, storage);
  const std::vector<double> v = is_output ? c.inputs.at(Input::v).values() : std::vector<double>{};

  Points points;
  for (std::size_t at = 0; at < proven.rows.size(); ++at) {
    const std::size_t row = proven.rows[at];
    double maximum = sentinel, sum = 0;
    for (std::size_t key = 0; key < keys && !masked.empty(); ++key)
      maximum = std::max(maximum, masked[row * keys + key]);
    for (std::size_t key = 0; key < keys && maximum > sentinel; ++key)
      sum += std::exp(masked[row * keys + key] - maximum);
    for (std::size_t column = 0; column < length; ++column) {
      const std::size_t i = at * length + column, place = row * length + column;
      const ElementRule rule = proven.rule[i];
      if (rule == ElementRule::hidden || rule == ElementRule::free || rule == ElementRule::not_finite) continue;
      points.got.push_back(all[place]);
      points.exact.push_back(proven.hi[i]);
      if (!low.empty()) points.low.push_back(low[place]);
      if (maximum > sentinel) points.own.push_back(std::exp(masked[place] - maximum) / sum);
      if (!is_output) continue;
      const std::int64_t b = static_cast<std::int64_t>(row) / (s.q_heads * s.q_len);
      const std::int64_t head = kv_head_of(c.contract.terms, s, static_cast<std::int64_t>(row) / s.q_len % s.q_heads);
      double product = 0, absolute = 0, weighted = 0;
      for (std::size_t key = 0; key < keys; ++key) {
        const std::size_t token = (static_cast<std::size_t>(b * s.kv_heads + head) * keys + key) * length + column;
        if (!probs.empty() && probs[row * keys + key] != 0) {
          product += probs[row * keys + key] * v[token];
          absolute += std::fabs(probs[row * keys + key] * v[token]);
        }
        if (!right_probs.empty() && right_probs[row * keys + key] != 0)
          weighted += right_probs[row * keys + key] * std::fabs(v[token]);
      }
      if (!right_probs.empty()) points.weighted.push_back(weighted);
      if (probs.empty()) continue;
      points.own.push_back(product);
      points.own_absolute.push_back(absolute);
    }
  }
  if (points.own.size() != points.got.size()) points.own.clear();  // a row without a visible key has no softmax
  return points;
}

PeerFinding PeerReference::judge(const PeerRule& rule, qkcts_stage stage, const StageBytes& outputs) const {
  if (!golden_.stages[stage].present || outputs[stage].empty()) return apply_peer_rule(rule, {});
  const Points points = points_of(stage, outputs);
  PeerSubject subject;
  subject.format = stage_format(stage, golden_.input.inputs.format);
  subject.got = points.got;
  subject.exact = points.exact;
  subject.low = points.low;
  subject.weighted = points.weighted;
  subject.own = points.own;
  subject.own_absolute = points.own_absolute;
  subject.keys = static_cast<double>(golden_.input.shape.k_len);
  subject.lanes = static_cast<double>(golden_.input.shape.head_dim);
  return apply_peer_rule(rule, subject);
}

PeerFinding PeerReference::judge(const Peer& peer, const StageBytes& outputs, const PeerQuestion& question) const {
  PeerFinding worst;
  for (const PeerRule& rule : peer.rules) {
    if (rule.format != golden_.input.inputs.format || rule.kind == PeerRuleKind::none) continue;
    const StageSet asked = rule.scope == PeerRuleScope::pipeline ? question.pipeline : question.operators;
    for (const qkcts_stage stage : stages_named_by(rule.stage)) {
      if ((asked & bit(stage)) == 0) continue;
      PeerFinding finding = judge(rule, stage, outputs);
      if (finding.verdict == PeerVerdict::not_applicable) continue;
      finding.stage = stage_name(stage);
      if (worst.verdict == PeerVerdict::not_applicable || finding.share > worst.share) worst = std::move(finding);
    }
  }
  return worst;
}

}  // namespace qkcts::cli
