// SPDX-License-Identifier: Apache-2.0
// cuda_race BARRIER: the kernels with one std::thread per CUDA thread, without the barrier of that name ("none": with
// all of them). Built with ThreadSanitizer, which has to report a race exactly if a barrier is missing.
#include <cstdio>
#include <random>
#include <string>

#include "adapters/cuda/adapter_state.hpp"
#include "adapters/sample_case.hpp"

namespace {

using qkcts::SampleCase;

// Projection, centred norm, rotation that moves lanes, two chunks of lanes and two blocks of keys.
SampleCase plain_case() {
  SampleCase sample;
  sample.terms = qkcts::plain_contract();
  sample.terms.projection.form = QKCTS_PROJECTION_LINEAR;
  for (qkcts_norm* norm : {&sample.terms.q_norm, &sample.terms.k_norm, &sample.terms.projection.q_input}) {
    norm->applied = 1;
    norm->center = 1;
    norm->eps = 1e-5;
  }
  sample.terms.rope.order = QKCTS_NORM_THEN_ROPE;
  sample.terms.rope.pairing = QKCTS_INTERLEAVED;
  sample.terms.rope.theta = 10000;
  sample.terms.rotation.layout = QKCTS_LAYOUT_DEINTERLEAVED;
  sample.shape = {1, 1, 1, 2, 33, 40, 8};
  return sample;
}

// Values as they are stored, a norm before the matrix unit, and enough blocks to use both buffers twice.
SampleCase tensor_case() {
  SampleCase sample;
  sample.terms = qkcts::plain_contract();
  sample.terms.q_norm.applied = 1;
  sample.terms.q_norm.eps = 1e-5;
  sample.format = QKCTS_BFLOAT16;
  sample.shape = {1, 1, 1, 2, 97, 16, 16};
  return sample;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::mt19937_64 source(1);
  const qkcts::AdapterState state(*qkcts_adapter_cuda_host(), std::string("threads=os,drop=") + arguments[1]);
  for (SampleCase sample : {plain_case(), tensor_case()}) {
    qkcts::draw_inputs(sample, source, qkcts::SampleLayout::contiguous);
    const qkcts::SampleRun run =
        qkcts::run_sample(*qkcts_adapter_cuda_host(), sample, qkcts::existing_stages(sample.terms),
                          qkcts::SampleLayout::contiguous, state.get());
    if (run.status != QKCTS_OK) {
      std::fprintf(stderr, "%s\n", run.message.c_str());
      return 1;
    }
    std::printf("%s\n", run.implementation.c_str());
  }
  std::printf("to the end, barrier left out: %s\n", arguments[1]);
  return 0;
}
