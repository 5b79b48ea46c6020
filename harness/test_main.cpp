// SPDX-License-Identifier: Apache-2.0
// The test program is its own worker, as qkcts is: a WorkerProcess starts /proc/self/exe again.
#include <gtest/gtest.h>

#include <cstring>

#include "harness/worker.hpp"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], qkcts::worker_argument) == 0) return qkcts::worker_main();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
