// SPDX-License-Identifier: Apache-2.0
// One call of run(): checked, uploaded, computed, downloaded.
#pragma once

#include <string>
#include <vector>

#include <qkcts/adapter.h>

#include "adapters/cuda/device.hpp"
#include "adapters/cuda/host_tensor.hpp"
#include "adapters/cuda/problem.hpp"

namespace qkcts::cuda {

class Call {
 public:
  // Throws InvalidArguments if an input that the contract needs is missing.
  Call(Device& device, const qkcts_run_args& args);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void run();                          // all kernels, to their end
  void launch();                       // starts them, for who measures
  void finish();                       // outputs to the host
  std::string implementation() const;  // kernel, tile, parts, device

 private:
  struct Stage {
    const qkcts_tensor* tensor;
    void* memory;
    std::size_t bytes;
  };

  const void* input(const qkcts_tensor* tensor, const char* name);  // in the storage format
  const std::int32_t* integers(const qkcts_tensor* tensor, const char* name);
  const void* reals(const qkcts_tensor* tensor, const char* name);  // in the format of the arithmetic
  const void* upload_reals(const std::vector<double>& values);
  void* stage(qkcts_stage which);
  void* room(std::int64_t count, std::size_t bytes) { return arena_.take(static_cast<std::size_t>(count) * bytes); }
  std::size_t real_bytes() const { return problem_.storage == QKCTS_BINARY64 ? sizeof(double) : sizeof(float); }

  void bind_sides();
  void bind_projection(Side which);
  void bind_rotation();
  void bind_table(Side which, const qkcts_tensor* positions, const char* name);
  void bind_computed_angles(Side which, const qkcts_tensor* positions, const char* name);
  void bind_scores();
  void bind_mask();
  void bind_stages();
  void choose_path();
  void choose_split();
  bool exact(Side which) const;

  const qkcts_run_args& args_;
  const qkcts_contract terms_;
  const qkcts_inputs& in_;
  DeviceArena arena_;
  Problem problem_{};
  bool on_unit_ = false;
  std::vector<Stage> stages_;
};

}  // namespace qkcts::cuda
