// SPDX-License-Identifier: Apache-2.0
// scalar and avx2 on the same call: norm with gain, half-split rotation, attention; output alone.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <random>

#include "adapters/adapter_tables.hpp"
#include "adapters/sample_case.hpp"

namespace {

using namespace qkcts;

struct Shape {
  const char* name;
  qkcts_shape extents;
  std::uint32_t causal;
};

// Heads of a small model: 16 query heads, 8 key heads, D = 128.
constexpr Shape shapes[] = {{"prefill_512_causal", {1, 16, 8, 512, 512, 128, 128}, 1},
                            {"prefill_512_full", {1, 16, 8, 512, 512, 128, 128}, 0},
                            {"prefill_257_d64", {1, 8, 4, 257, 257, 64, 64}, 1},
                            {"decode_1024", {1, 16, 8, 1, 1024, 128, 128}, 0}};

struct Call {
  const qkcts_adapter_table* table;
  benchmark::State* state;
};
Call current;

// run_sample() prepares the arguments; the loop runs inside, so that nothing else is timed.
qkcts_status timed_run(const qkcts_run_args* args) {
  while (current.state->KeepRunning()) current.table->run(args);
  return QKCTS_OK;
}

void measure(benchmark::State& state, const qkcts_adapter_table* table, const Shape& shape) {
  std::mt19937_64 source(1);
  SampleCase sample;
  sample.terms = plain_contract();
  for (qkcts_norm* norm : {&sample.terms.q_norm, &sample.terms.k_norm}) {
    norm->applied = 1;
    norm->gain = QKCTS_GAIN_W;
    norm->gain_axes = QKCTS_AXES_HEAD_DIM;
    norm->eps = 1e-6;
  }
  sample.terms.rope.order = QKCTS_NORM_THEN_ROPE;
  sample.terms.rope.theta = 1e6;
  sample.terms.mask.causal = shape.causal;
  sample.shape = shape.extents;
  draw_inputs(sample, source, SampleLayout::contiguous);
  current = {table, &state};
  qkcts_adapter_table timed = *table;
  timed.run = timed_run;
  run_sample(timed, sample, 1u << QKCTS_STAGE_OUTPUT, SampleLayout::contiguous);
  const qkcts_shape& n = shape.extents;
  const double products = static_cast<double>(n.batch * n.q_heads * n.q_len * n.k_len * (n.head_dim + n.v_head_dim)) *
                          (shape.causal != 0 ? 0.5 : 1.0);
  state.counters["flops"] = benchmark::Counter(2 * products, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Shape& shape : shapes) {
    for (const NamedTable& adapter :
         {NamedTable{"scalar", qkcts_adapter_scalar()}, NamedTable{"avx2", qkcts_adapter_avx2()}}) {
      benchmark::RegisterBenchmark(
          (std::string(shape.name) + '/' + adapter.name).c_str(),
          [table = adapter.table, &shape](benchmark::State& state) { measure(state, table, shape); })
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
