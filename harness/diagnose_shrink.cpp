// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_shrink.hpp"

#include <algorithm>
#include <array>

#include "harness/diagnose_slice.hpp"

namespace qkcts {
namespace {

using Clock = std::chrono::steady_clock;
using Indices = std::vector<std::int64_t>;
using Axis = Indices Slice::*;

// The order matters for the time alone: what costs most goes first.
constexpr std::array<Axis, 7> axes = {&Slice::batch, &Slice::kv_heads, &Slice::group,     &Slice::q_len,
                                      &Slice::k_len, &Slice::head_dim, &Slice::v_head_dim};

// Where the case fails worst, as indices of the axes; -1: unknown.
struct Focus {
  std::int64_t batch = -1, kv_head = -1, group = -1, query = -1;
};

Focus focus_of(const GoldenCase& golden, const CaseResult& failed) {
  Focus focus;
  const qkcts_shape& shape = golden.input.shape;
  const std::int64_t group = shape.q_heads / shape.kv_heads;
  for (const StageResult& stage : failed.stages) {
    if (!stage.judgement || !stage.judgement->worst || stage.verdict != Verdict::fail) continue;
    const std::vector<std::int64_t> index = index_of(stage.stage, shape, stage.judgement->worst->place);
    focus.batch = index[0];
    const bool of_keys = stage.stage == QKCTS_STAGE_K_PROJ || stage.stage == QKCTS_STAGE_K_NORM ||
                         stage.stage == QKCTS_STAGE_K_ROPE || stage.stage == QKCTS_STAGE_V_NORM;
    if (of_keys) {
      focus.kv_head = index[1];
      continue;
    }
    focus.kv_head = kv_head_of(golden.input.contract.terms, shape, index[1]);
    focus.group =
        golden.input.contract.terms.heads.mapping == QKCTS_HEADS_TILE ? index[1] / shape.kv_heads : index[1] % group;
    focus.query = index[2];
  }
  return focus;
}

// Smaller lists, the smallest first: the one index that is known to fail, halves, all but one end.
std::vector<Indices> proposals(const Indices& now, std::int64_t focus) {
  std::vector<Indices> list;
  const std::size_t n = now.size();
  if (n < 2) return list;
  if (std::find(now.begin(), now.end(), focus) != now.end()) list.push_back({focus});
  const auto part = [&](std::size_t first, std::size_t last) {
    list.emplace_back(now.begin() + static_cast<std::ptrdiff_t>(first),
                      now.begin() + static_cast<std::ptrdiff_t>(last));
  };
  if (n > 3) part(0, 1);
  part(0, n / 2);
  part(n / 2, n);
  if (n > 2) {
    part(0, n - 1);
    part(1, n);
  }
  if (n > 3 && n % 2 == 0) part(0, n - 2);  // lanes that turn come in pairs
  return list;
}

class Shrinking {
 public:
  Shrinking(const Rerunner& rerunner, const GoldenCase& golden, const CaseResult& failed, const ShrinkLimits& limits)
      : rerunner_(rerunner),
        golden_(golden),
        failed_(failed),
        limits_(limits),
        end_(Clock::now() + limits.time),
        focus_(focus_of(golden, failed)) {}

  std::optional<Shrunk> run() {
    Slice now = whole_slice(golden_.input.shape);
    bool smaller = true;
    while (smaller && !is_over()) {
      smaller = false;
      for (const Axis axis : axes)
        while (!is_over() && step(now, axis)) smaller = true;
    }
    if (!smallest_ && !try_slice(now)) return std::nullopt;
    return Shrunk{std::move(*smallest_), tries_};
  }

 private:
  bool is_over() const { return tries_ >= limits_.tries || Clock::now() > end_; }

  bool step(Slice& now, Axis axis) {
    const std::int64_t focus = axis == &Slice::batch      ? focus_.batch
                               : axis == &Slice::kv_heads ? focus_.kv_head
                               : axis == &Slice::group    ? focus_.group
                               : axis == &Slice::q_len    ? focus_.query
                                                          : -1;
    for (const Indices& proposal : proposals(now.*axis, focus)) {
      if (is_over()) return false;
      Slice next = now;
      next.*axis = proposal;
      if (!try_slice(next)) continue;
      now = std::move(next);
      return true;
    }
    return false;
  }

  bool try_slice(const Slice& slice) {
    std::optional<Case> part = sliced(golden_.input, slice);
    if (!part) return false;
    ++tries_;
    std::optional<Rerun> made = rerun(rerunner_, std::move(*part), golden_, failed_.profile);
    if (!made || made->result.verdict != failed_.verdict) return false;
    smallest_ = std::move(made);
    return true;
  }

  const Rerunner& rerunner_;
  const GoldenCase& golden_;
  const CaseResult& failed_;
  const ShrinkLimits limits_;
  const Clock::time_point end_;
  const Focus focus_;
  std::optional<Rerun> smallest_;
  int tries_ = 0;
};

}  // namespace

std::optional<Shrunk> shrink(const Rerunner& rerunner, const GoldenCase& golden, const CaseResult& failed,
                             const ShrinkLimits& limits) {
  return Shrinking(rerunner, golden, failed, limits).run();
}

}  // namespace qkcts
