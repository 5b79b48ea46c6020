// SPDX-License-Identifier: Apache-2.0
// cuda_unit: what the matrix unit of this machine's GPU does, one line of JSON for each format. For certify_on_gpu.sh.
#include <cstdio>
#include <exception>

#include "adapters/cuda/unit_probe.hpp"

int main() {
  using namespace qkcts::cuda;
  try {
    Device device(Settings{});
    for (const NarrowFormat format : {NarrowFormat::bfloat16, NarrowFormat::binary16})
      std::printf("%s\n", unit_line(device, format, probe_unit(device, format)).c_str());
    return 0;
  } catch (const Unavailable& reason) {
    std::fprintf(stderr, "cuda_unit: %s\n", reason.what());
    return 5;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "cuda_unit: %s\n", failure.what());
    return 1;
  }
}
