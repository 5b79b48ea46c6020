// SPDX-License-Identifier: Apache-2.0
// The bundled kernel for NVIDIA GPUs; linked with device_host.cpp, the same kernel on the host executor.
#include <qkcts/adapter.h>

#include <exception>
#include <memory>
#include <new>
#include <string>

#include "adapters/cuda/call.hpp"
#include "adapters/cuda/description.hpp"

namespace {

using qkcts::cuda::Call;
using qkcts::cuda::Device;

// Calls `work`, which returns a status; whatever it throws becomes a status and a message.
template <class Work>
qkcts_status guarded(qkcts_text* message, Work work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    qkcts_set_text(message, "out of host memory");
    return QKCTS_OUT_OF_MEMORY;
  } catch (const qkcts::cuda::OutOfMemory& failure) {
    qkcts_set_text(message, failure.what());
    return QKCTS_OUT_OF_MEMORY;
  } catch (const qkcts::cuda::Unavailable& failure) {
    qkcts_set_text(message, failure.what());
    return QKCTS_UNAVAILABLE;
  } catch (const qkcts::cuda::InvalidArguments& failure) {
    qkcts_set_text(message, failure.what());
    return QKCTS_INVALID;
  } catch (const qkcts::cuda::InvalidOption& failure) {
    qkcts_set_text(message, failure.what());
    return QKCTS_INVALID;
  } catch (const std::exception& failure) {
    qkcts_set_text(message, failure.what());
    return QKCTS_INTERNAL;
  }
}

qkcts_status describe(qkcts_text* json) {
  return guarded(json, [&] {
    qkcts_set_text(json, qkcts::cuda::description(Device::is_host()).c_str());
    return QKCTS_OK;
  });
}

qkcts_status probe(qkcts_text* reason) {
  return guarded(reason, [&] {
    const std::string missing = Device::missing();
    qkcts_set_text(reason, missing.c_str());
    return missing.empty() ? QKCTS_OK : QKCTS_UNAVAILABLE;
  });
}

qkcts_status prepare(const char* options, void** state, qkcts_text* message) {
  *state = nullptr;
  return guarded(message, [&] {
    const std::string given = options == nullptr ? "" : options;
    *state = std::make_unique<Device>(qkcts::cuda::settings_of(given, Device::is_host())).release();
    return QKCTS_OK;
  });
}

qkcts_status run(const qkcts_run_args* args) {
  return guarded(args->message, [&] {
    if (args->state == nullptr) {
      qkcts_set_text(args->message, "run before prepare");
      return QKCTS_INVALID;
    }
    Call call(*static_cast<Device*>(args->state), *args);
    qkcts_set_text(args->implementation, call.implementation().c_str());
    call.run();
    return QKCTS_OK;
  });
}

void release(void* state) {
  delete static_cast<Device*>(state);
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
