// SPDX-License-Identifier: Apache-2.0
// The wrong kernels as an adapter: `mutants?mutant=ID` picks one, `mutant=none` is the control.
#include <qkcts/adapter.h>

#include <exception>
#include <new>
#include <string>

#include "adapters/mutants/catalogue.hpp"
#include "adapters/scalar/claims.hpp"

namespace {

using qkcts::mutants::Mutant;
using qkcts::mutants::stage_text;

// What prepare() hands to run().
struct State {
  const Mutant* mutant = nullptr;
  std::string implementation = "scalar, mutant=none";
};

std::string quoted(std::string_view text) {
  return '"' + std::string(text) + '"';
}

std::string describe_all() {
  std::string mutants;
  for (const Mutant* mutant : qkcts::mutants::catalogue()) {
    if (!mutants.empty()) mutants += ",\n    ";
    mutants += quoted(mutant->id) + R"(: {"clause": )" + quoted(mutant->clause) + R"(, "stage": )" +
               quoted(stage_text(mutant->stage)) + R"(, "wrong": )" + quoted(mutant->wrong) + R"(, "verdict": )" +
               quoted(verdict_text(mutant->expectation));
    if (!mutant->source.empty()) mutants += R"(, "source": )" + quoted(mutant->source);
    if (!mutant->invisible.empty()) mutants += R"(, "invisible": )" + quoted(mutant->invisible);
    mutants += "}";
  }
  return R"({"name": "mutants", "version": "0.1.0", "build": ")" __VERSION__ R"(, -ffp-contract=off", "device": "cpu",
  "formats": ["binary64", "binary32", "binary16", "bfloat16"],
  "stages": )" +
         std::string(qkcts::scalar::stages) + R"(,
  "profile": {"binary64": "f64", "binary32": "f32", "binary16": "f16_f32acc", "bfloat16": "bf16_f32acc"},
  "supports": )" +
         std::string(qkcts::scalar::supports) + R"(, "limits": {},
  "arithmetic": {"control": "scalar", "option": "mutant=ID, or mutant=none", "mutants": {
    )" + mutants +
         R"(}},
  "layouts": ["bshd", "padded", "strided", "byte_offset"],
  "claims": {"bitwise_repeatable": true, "batch_invariant": true}})";
}

qkcts_status describe(qkcts_text* json) {
  try {
    qkcts_set_text(json, describe_all().c_str());
    return QKCTS_OK;
  } catch (const std::bad_alloc&) {
    return QKCTS_OUT_OF_MEMORY;
  }
}

qkcts_status probe(qkcts_text* reason) {
  qkcts_set_text(reason, "");
  return QKCTS_OK;
}

qkcts_status choose(std::string_view options, State& state, qkcts_text* message) {
  constexpr std::string_view key = "mutant=";
  if (options.empty() || options == "mutant=none") return QKCTS_OK;
  if (options.substr(0, key.size()) != key) {
    qkcts_set_text(message, "the one option is mutant=ID; `qkcts adapters --mutants` lists the ids");
    return QKCTS_INVALID;
  }
  options.remove_prefix(key.size());
  state.mutant = qkcts::mutants::find_mutant(options);
  if (state.mutant == nullptr) {
    qkcts_set_text(message,
                   ("no mutant " + std::string(options) + "; `qkcts adapters --mutants` lists the ids").c_str());
    return QKCTS_INVALID;
  }
  state.implementation = "scalar, mutant=" + std::string(options);
  return QKCTS_OK;
}

qkcts_status prepare(const char* options, void** state, qkcts_text* message) {
  *state = nullptr;
  try {
    State chosen;
    const qkcts_status status = choose(options == nullptr ? "" : options, chosen, message);
    if (status == QKCTS_OK) *state = new State(chosen);
    return status;
  } catch (const std::bad_alloc&) {
    return QKCTS_OUT_OF_MEMORY;
  }
}

qkcts_status run(const qkcts_run_args* args) {
  const auto* state = static_cast<const State*>(args->state);
  try {
    qkcts_set_text(args->implementation, state == nullptr ? "scalar, mutant=none" : state->implementation.c_str());
    return run_mutant(state == nullptr ? nullptr : state->mutant, *args);
  } catch (const std::bad_alloc&) {
    qkcts_set_text(args->message, "out of memory");
    return QKCTS_OUT_OF_MEMORY;
  } catch (const qkcts::scalar::InvalidArguments& invalid) {
    qkcts_set_text(args->message, invalid.what());
    return QKCTS_INVALID;
  } catch (const std::exception& failure) {
    qkcts_set_text(args->message, failure.what());
    return QKCTS_INTERNAL;
  }
}

void release(void* state) {
  delete static_cast<State*>(state);
}

constexpr qkcts_adapter_table table = {sizeof(qkcts_adapter_table),
                                       QKCTS_ADAPTER_ABI_MAJOR,
                                       QKCTS_ADAPTER_ABI_MINOR,
                                       0,
                                       describe,
                                       probe,
                                       prepare,
                                       run,
                                       release};

}  // namespace

const qkcts_adapter_table* qkcts_adapter(void) {
  return &table;
}
