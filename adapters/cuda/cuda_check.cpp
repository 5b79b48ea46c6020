// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/cuda_check.hpp"

#include "adapters/cuda/device.hpp"

namespace qkcts::cuda {

namespace {

// There is a card, and yet nothing of this build can run: what is missing is on the machine, not in the kernels.
bool is_missing(cudaError_t error) {
  switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorDevicesUnavailable:  // somebody else has it for himself alone
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:  // the driver is older than the compiler that made the PTX
    case cudaErrorJitCompilerNotFound:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool ends_the_context(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorECCUncorrectable:
      return true;
    default:
      return false;
  }
}

void check_cuda(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  // Taken out of the runtime's memory, or the next launch would be accused of it.
  static_cast<void>(cudaGetLastError());
  std::string text = what + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
  if (error == cudaErrorMemoryAllocation) throw OutOfMemory(text);
  if (is_missing(error)) throw Unavailable("not run: " + text);
  if (ends_the_context(error)) text += "; this process has lost the device, and nothing more can be computed in it";
  throw DeviceError(text);
}

}  // namespace qkcts::cuda
