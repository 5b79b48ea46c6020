// SPDX-License-Identifier: Apache-2.0
// A relation: what the outputs of one case must keep to, or those of two cases to each other, whatever the right values
// are. docs/relations.md states and proves each; docs/vector_format.md says how one is stored.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract.hpp"
#include "conformance/format.hpp"

namespace qkcts {

enum class RelationKind : std::uint8_t {
  score_bound,      // P1
  eps_rescaling,    // P2
  common_shift,     // P3, of a centred norm
  shift_seen,       // P3, of a norm that does not centre
  weight_bound,     // P4
  score_shift,      // P5
  temperature,      // P5
  sums_and_hull,    // P6
  rotation_order,   // P7
  batch_position,   // P8
  value_scale,      // P9
  value_sign,       // P9
  joint_sign,       // P9
  key_permutation,  // P9
  repeated_heads,   // P10
  prefix,           // P11
  liveness,         // P12
};
constexpr std::size_t relation_kind_count = 17;

enum class RelationRule : std::uint8_t {
  bitwise,  // the same bits after the transformation, unless the adapter's order depends on the data: then Delta
  bitwise_in_batch,  // the same bits if the adapter claims batch_invariant, else Delta
  delta,             // |f got1 + shift - got2| <= |f| Delta1 + Delta2
  bound,             // one case: its elements keep to a bound, up to Delta
  order,             // weights majorise each other, up to Delta
  differ,            // some bits must differ
  apart,             // some element must differ by more than Delta1 + Delta2
  reference,         // proven on the reference, nothing is asked of an adapter
};
std::string_view relation_rule_name(RelationRule rule);
std::optional<RelationRule> relation_rule_named(std::string_view name);

struct RelationRow {
  RelationKind kind;
  std::string_view id;    // "P2"
  std::string_view name;  // "eps_rescaling"
  RelationRule rule;
  std::size_t cases;           // 1 or 2
  std::string_view statement;  // what must hold
  std::string_view violation;  // what it means if it does not
};
std::span<const RelationRow> relation_table();
const RelationRow& row(RelationKind kind);
std::optional<RelationKind> relation_kind_named(std::string_view name);

struct Relation {
  std::string slug;
  RelationKind kind = RelationKind::score_bound;
  std::vector<std::string> cases;  // slugs; of a pair the second is made from the first
  StageSet stages = 0;             // compared
  // What the transformation was. Of these each kind uses its own; the others stay at their defaults.
  int exponent = 0;                        // eps_rescaling, value_scale: inputs times 2^exponent
  double shift = 0;                        // common_shift, score_shift: added to inputs
  std::int64_t entry = 0;                  // batch_position: where the lone entry stands in the batch
  std::int64_t from_key = 0;               // prefix: keys and values from here on were replaced
  std::vector<std::uint32_t> rows;         // prefix: rows of [B, Hq, Lq] that see none of them, ascending
  std::vector<std::uint32_t> permutation;  // key_permutation: key j of the second was permutation[j] of the first
  std::string neighbour;                   // liveness: the field that differs, "norm.eps=0"
  std::array<double, QKCTS_STAGE_COUNT> bounds{};  // score_bound: of |element|, per stage; 0: none
  std::vector<double> row_bounds;                  // weight_bound: of the weights of each row of [B, Hq, Lq]
};

// The canonical text that a corpus holds, and its reading: throws InputError "ORIGIN: reason" for a text that is not
// canonical, or says what its kind has no use for.
std::string relation_text(const Relation& relation);
Relation relation_from_text(const std::string& slug, const std::string& text, std::string_view origin);

// Whether a relation fits its cases: as many as its kind needs, the stages there, parameters inside the shapes. Empty
// or one line.
struct RelationCase {
  const qkcts_contract& terms;
  const qkcts_shape& shape;
  Format format;
};
std::string relation_fault(const Relation& relation, std::span<const RelationCase> cases);

}  // namespace qkcts
