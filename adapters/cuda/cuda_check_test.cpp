// SPDX-License-Identifier: Apache-2.0
// What becomes of an error of the CUDA runtime. The runtime is linked in, and its texts need neither driver nor GPU.
#include "adapters/cuda/cuda_check.hpp"

#include <gtest/gtest.h>

#include "adapters/cuda/device.hpp"

namespace qkcts::cuda {
namespace {

template <class Failure>
std::string text_of(cudaError_t error) {
  try {
    check_cuda(error, "kernel attend_plain");
  } catch (const Failure& failure) {
    return failure.what();
  } catch (const std::exception& failure) {
    ADD_FAILURE() << cudaGetErrorName(error) << " is of another kind: " << failure.what();
    return "";
  }
  ADD_FAILURE() << cudaGetErrorName(error) << " passes";
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CudaCheck, SuccessPasses) {
  EXPECT_NO_THROW(check_cuda(cudaSuccess, "anything"));
}

TEST(CudaCheck, MessagesNameTheCallAndTheError) {
  const std::string text = text_of<DeviceError>(cudaErrorInvalidConfiguration);
  EXPECT_EQ(text.rfind("kernel attend_plain: ", 0), 0u) << text;
  EXPECT_TRUE(has(text, "(cudaErrorInvalidConfiguration)")) << text;
  EXPECT_FALSE(has(text, "lost the device")) << text;
}

TEST(CudaCheck, LackOfMemoryIsItsOwnKind) {
  EXPECT_TRUE(has(text_of<OutOfMemory>(cudaErrorMemoryAllocation), "out of memory"));
}

TEST(CudaCheck, WhatTheMachineLacksIsNotRun) {
  for (const cudaError_t error : {cudaErrorNoDevice, cudaErrorInsufficientDriver, cudaErrorNoKernelImageForDevice,
                                  cudaErrorUnsupportedPtxVersion, cudaErrorDevicesUnavailable})
    EXPECT_EQ(text_of<Unavailable>(error).rfind("not run: ", 0), 0u) << cudaGetErrorName(error);
}

TEST(CudaCheck, ErrorsThatEndTheContextSaySo) {
  for (const cudaError_t error : {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorLaunchTimeout,
                                  cudaErrorMisalignedAddress, cudaErrorECCUncorrectable}) {
    EXPECT_TRUE(ends_the_context(error));
    EXPECT_TRUE(has(text_of<DeviceError>(error), "lost the device")) << cudaGetErrorName(error);
  }
  for (const cudaError_t error : {cudaErrorInvalidValue, cudaErrorLaunchOutOfResources, cudaErrorMemoryAllocation})
    EXPECT_FALSE(ends_the_context(error)) << cudaGetErrorName(error);
}

}  // namespace
}  // namespace qkcts::cuda
