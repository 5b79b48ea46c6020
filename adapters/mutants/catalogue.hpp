// SPDX-License-Identifier: Apache-2.0
// Wrong kernels, each with one deliberate fault: what a conformance suite has to tell from a right one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <qkcts/adapter.h>

#include "adapters/scalar/attention.hpp"

namespace qkcts::mutants {

// The kernel of a mutant in both arithmetics: the control, or the control with one step replaced.
struct Kernel {
  void (*binary32)(const qkcts_contract&, const qkcts_run_args&);
  void (*binary64)(const qkcts_contract&, const qkcts_run_args&);
};

template <class Attention>
void run_attention(const qkcts_contract& terms, const qkcts_run_args& args) {
  Attention(terms, *args.shape, *args.inputs, *args.outputs).run();
}

template <template <class> class Attention>
constexpr Kernel kernel = {run_attention<Attention<float>>, run_attention<Attention<double>>};

// The contract is implemented as it stands, but another contract than the one that was asked for.
using ContractEdit = void (*)(qkcts_contract&, const qkcts_shape&);

// Does not compute wrongly but behaves wrongly: called after the control has run.
using Misdeed = qkcts_status (*)(const qkcts_run_args&);

// What the host has to call it.
enum class Expectation { fail, crash, timeout, unwritten, overrun, underrun, input_modified, protocol };
std::string_view verdict_text(Expectation expectation);
std::string_view stage_text(qkcts_stage stage);

// In the order in which the tables read best, not in that of least padding.
struct Mutant {  // NOLINT(clang-analyzer-optin.performance.Padding)
  std::string_view id;
  std::string_view clause;  // the clause that it violates
  qkcts_stage stage;        // the first stage in which that shows (of q and k: the one of q)
  std::string_view wrong;   // what is wrong, one line
  ContractEdit edit = nullptr;
  Kernel attention = kernel<scalar::Attention>;
  Misdeed misdeed = nullptr;
  Expectation expectation = Expectation::fail;
  std::string_view source = {};     // where it was seen, "owner/repository#thread"; empty: our own
  std::string_view invisible = {};  // inputs on which it equals the contract, if they are not obvious
};

std::span<const Mutant> norm_mutants();
std::span<const Mutant> rope_mutants();
std::span<const Mutant> score_mutants();
std::span<const Mutant> mask_mutants();
std::span<const Mutant> softmax_mutants();
std::span<const Mutant> output_mutants();
std::span<const Mutant> misdeed_mutants();
// Of the clauses that came with ABI 1.1.
std::span<const Mutant> range_mutants();
std::span<const Mutant> rotation_mutants();
std::span<const Mutant> logit_mutants();
std::span<const Mutant> region_mutants();
std::span<const Mutant> sink_mutants();
// Of those that came with ABI 1.2; rotation_mutants and logit_mutants hold some too.
std::span<const Mutant> value_mutants();
std::span<const Mutant> projection_mutants();
std::span<const Mutant> vector_rounding_mutants();
std::span<const Mutant> row_rounding_mutants();
// Of NaN and infinities.
std::span<const Mutant> special_mutants();
// Of any clause: what tiles, splits and buffers do to it.
std::span<const Mutant> tile_mutants();

// All of them, in the order of the pipeline, those of the later clauses at the end. The control `none` is not among
// them.
std::vector<const Mutant*> catalogue();
const Mutant* find_mutant(std::string_view id);

// Runs the mutant, or the control for a null pointer. May throw what scalar throws.
qkcts_status run_mutant(const Mutant* mutant, const qkcts_run_args& args);

}  // namespace qkcts::mutants
