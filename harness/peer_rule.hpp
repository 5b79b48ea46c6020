// SPDX-License-Identifier: Apache-2.0
// The rules by which other test suites accept a result, as conformance/peer_rules.json states them: our reading of
// public files. docs/comparison.md. Nothing here judges an adapter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract.hpp"
#include "conformance/format.hpp"

namespace qkcts {

enum class PeerRuleKind : std::uint8_t {
  allclose,      // |t - r| <= atol + rtol |r| at every point
  max_abs,       // |t - r| <= atol at every point
  relative,      // t = r', or |t - r'| <= limit |r'| (of |r'| <= 1e-5: <= limit, or < 2^-23), or an escape; r' rounded
  nmse,          // sum (t - r)^2 / sum t^2 not above the limit, once NaN and infinities match
  ratio,         // max |t - r| <= factor max |p - r| + atol; p: a run in which every step is rounded to the format
  measured,      // |t - r| <= max(|p - r|, atol) + max(|(p - r) / r|, rtol) |r|, maxima over the tensor
  ulp_distance,  // so many representable numbers lie between t and r'
  dot_product,  // TOSA: bounds on the error of each point, and on the sum of its squares, in units of a sum of products
  none,         // the suite compares no such thing
};

// Of what the result is compared with.
enum class PeerRuleScope : std::uint8_t {
  pipeline,      // the whole way from q, k and v to this stage
  one_operator,  // the last operation alone, on the operands that the kernel itself had
};

struct PeerRule {
  std::string stage;  // "norm", "scores", "softcap", "probs", "output", "rope"
  Format format = Format::binary32;
  PeerRuleKind kind = PeerRuleKind::none;
  PeerRuleScope scope = PeerRuleScope::pipeline;
  double atol = 0, rtol = 0;
  // What `relative`, `nmse` and `ulp_distance` allow: limit + by_key * keys + by_lane * head size.
  double limit = 0, by_key = 0, by_lane = 0;
  double factor = 0;          // of `ratio`
  double detour = 0;          // of `ratio`: so many times max |((r + 0.3) - 0.3) - r|, in the format, on top of atol
  double escape_abs = 0;      // of `relative`: |t - r'| below it passes
  double escape_weights = 0;  // of `relative`: |t - r'| <= it times sum p |v| passes
  bool nan_equals_nan = false;
  std::string why;  // of `none`, or what the reading leaves out
};

struct Peer {
  std::string id, title, reference, caveat;
  std::vector<std::string> sources;
  std::vector<PeerRule> rules;
};

// conformance/peer_rules.json. Throws InputError.
std::vector<Peer> peers_from_json(std::string_view text, std::string_view origin);
// Those that are compiled in.
std::vector<Peer> shipped_peers();

// The points of one stage that a rule can look at. Empty spans: there is no such thing.
struct PeerSubject {
  Format format = Format::binary32;  // of the stage
  std::span<const double> got;
  std::span<const double> exact;     // proven values
  std::span<const double> low;       // of a run in which every step is rounded to the format
  std::span<const double> weighted;  // sum p |v|, of outputs
  // Of the last operation on the kernel's own operands, in binary64, and the sum of absolute values of its products.
  std::span<const double> own, own_absolute;
  double keys = 0, lanes = 0;  // Lk and D
};

enum class PeerVerdict : std::uint8_t { accepts, rejects, not_applicable };
struct PeerFinding {
  PeerVerdict verdict = PeerVerdict::not_applicable;
  double share = 0;   // the largest error in units of what is allowed there; above 1: rejected; infinite: a class
  std::string why;    // of not_applicable
  std::string stage;  // where several rules were applied: of the one with the largest share
};
PeerFinding apply_peer_rule(const PeerRule& rule, const PeerSubject& subject);

}  // namespace qkcts
