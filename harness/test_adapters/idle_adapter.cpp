// SPDX-License-Identifier: Apache-2.0
// Declares what the bundled scalar kernel declares, and computes nothing: it fills outputs with zeros. What a run of it
// takes is the harness's own time (harness/overhead_bench.py). No verdict on it means anything.
#include <qkcts/adapter.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <dlfcn.h>

namespace {

// Of the library at IDLE_DESCRIBES, which is never unloaded.
const qkcts_adapter_table* described() {
  void* const library = dlopen(IDLE_DESCRIBES, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  const auto entry = reinterpret_cast<const qkcts_adapter_table* (*)()>(dlsym(library, "qkcts_adapter"));
  return entry == nullptr ? nullptr : entry();
}

// Row by row, since it need not be dense.
void fill(const qkcts_tensor& tensor) {
  const std::size_t size = static_cast<std::size_t>(tensor.dtype.bits) / 8;
  const int rows = tensor.ndim - 1;
  const std::int64_t length = tensor.shape[rows], stride = tensor.strides[rows];
  std::int64_t index[8] = {};
  for (;;) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < rows; ++axis) offset += index[axis] * tensor.strides[axis];
    char* const row = static_cast<char*>(tensor.data) + tensor.byte_offset + static_cast<std::size_t>(offset) * size;
    if (stride == 1) {
      std::memset(row, 0, static_cast<std::size_t>(length) * size);
    } else {
      for (std::int64_t i = 0; i < length; ++i) std::memset(row + static_cast<std::size_t>(i * stride) * size, 0, size);
    }
    int axis = rows;
    while (axis-- > 0 && ++index[axis] == tensor.shape[axis]) index[axis] = 0;
    if (axis < 0) return;
  }
}

qkcts_status prepare(const char*, void**, qkcts_text*) {
  return QKCTS_OK;
}

qkcts_status run(const qkcts_run_args* args) {
  for (const qkcts_tensor* const tensor : args->outputs->stage)
    if (tensor != nullptr) fill(*tensor);
  std::snprintf(args->implementation->text, args->implementation->capacity, "none");
  return QKCTS_OK;
}

void release(void*) {}

}  // namespace

const qkcts_adapter_table* qkcts_adapter(void) {
  static qkcts_adapter_table table;
  const qkcts_adapter_table* const scalar = described();
  if (scalar == nullptr) return nullptr;
  table = *scalar;
  table.prepare = prepare;
  table.run = run;
  table.release = release;
  return &table;
}
