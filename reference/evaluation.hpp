// SPDX-License-Identifier: Apache-2.0
// A case, some rows of attention at a time: memory and time grow with the rows that are asked for and with the vectors
// of q, k and v that they need, not with the square of the length.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/attention.hpp"
#include "reference/same_vectors.hpp"

namespace qkcts {

struct RefinementLimits;

class Evaluation {
 public:
  // `stored` are the rows of each stage whose proof is kept once they are evaluated. Nothing is evaluated yet, but for
  // rounding points of q, k and v. `c` must outlive the object. Throws what evaluate() throws.
  Evaluation(const Case& c, const StageRows& stored, Tier tier = Tier::automatic);
  Evaluation(const Case& c, const StageRows& stored, const RefinementLimits& limits);
  // The same inputs under another contract, where have_same_vectors(): shares q, k and v with `other`, in one thread.
  // Their stages are evaluated and stored with the one that was first, not in this result.
  Evaluation(const Case& c, const StageRows& stored, const Evaluation& other);
  // The same inputs under another contract: vectors of its own, for which the rounding points of a side that means the
  // same under both (have_same_side) are those of `other`.
  static Evaluation beside(const Case& c, const StageRows& stored, const Evaluation& other);
  Evaluation(Evaluation&&) noexcept;
  Evaluation& operator=(Evaluation&&) noexcept;
  ~Evaluation();

  // All stages of q, k and v.
  void evaluate_vectors();
  // The stored rows of the stages of q, k and v, and no others; some of them.
  void evaluate_stored_vectors();
  void evaluate_vectors_of(const StageRows& rows);
  // Rows of [B,Hq,Lq], ascending: all their stages, after the q, k and v that they use. rows() holds these and no
  // others then; what is stored of them adds to the result.
  void evaluate_rows(std::span<const std::uint32_t> rows);

  // Stages of q, k and v, as far as they have been evaluated (else NaN), and those of the rows of attention evaluated
  // last. Both stay where they are.
  const ExactStages& vectors() const;
  const ExactStages& rows() const;

  // Some of the stored rows of a stage of q, k or v, which have been evaluated. Not of inputs with NaN and infinities.
  ProvenStage proven(qkcts_stage stage, std::span<const std::uint32_t> rows) const;

  // What has been proven so far, and of how many elements how. `exact` is empty.
  ReferenceResult result() const;
  // The same with `exact`: vectors, and the rows evaluated last. Not while vectors are shared. Nothing may be asked of
  // the object afterwards.
  ReferenceResult take() &&;

 private:
  Evaluation();
  class State;
  std::unique_ptr<State> state_;
};

// Rows of [B,Hq,Lq] that some stage of them is asked for, ascending.
std::vector<std::uint32_t> attention_rows_of(const Case& c, const StageRows& rows);

// Proven stages and budgets, `rows` of each stage; a block of rows of attention at a time. `exact` is empty.
struct BudgetedResult {
  ReferenceResult values;
  std::vector<std::array<StageBudget, QKCTS_STAGE_COUNT>> budgets;  // one per profile
};
BudgetedResult evaluate_with_budgets(const Case& c, const StageRows& rows, const std::vector<Profile>& profiles,
                                     Tier tier = Tier::automatic);

}  // namespace qkcts
