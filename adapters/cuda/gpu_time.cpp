// SPDX-License-Identifier: Apache-2.0
// cuda_time: how long the kernels take on a GPU, one JSON object a line. Times are those of events round all kernels of
// a call (norm and rotation included, copies to and from the host not), the median of many calls over several sets of
// inputs, so that no call finds its inputs in the cache of the call before. torch_time.py times the same shapes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "adapters/cuda/call.hpp"
#include "adapters/cuda/cuda_check.hpp"
#include "adapters/cuda/element.hpp"

namespace qkcts::cuda {
namespace {

constexpr int input_sets = 4, warm_calls = 8, timed_calls = 60;

struct Workload {
  const char* name;
  std::uint32_t format;
  qkcts_shape shape;
  bool normed;  // RMS with gain and a rotation, as in Qwen 3; else plain attention
};

// A dense tensor that owns its memory.
struct HostData {
  HostData(std::uint32_t format, std::vector<std::int64_t> extents)
      : shape(std::move(extents)), strides(shape.size(), 1) {
    for (std::size_t axis = shape.size() - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * shape[axis];
    count = strides[0] * shape[0];
    const ElementType type = format == 0 ? int32_type : element_type(format);
    bytes.resize(static_cast<std::size_t>(count * type.bits / 8));
    tensor.data = bytes.data();
    tensor.device.device_type = QKCTS_DL_CPU;
    tensor.ndim = static_cast<std::int32_t>(shape.size());
    tensor.dtype.code = type.code;
    tensor.dtype.bits = type.bits;
    tensor.dtype.lanes = 1;
    tensor.shape = shape.data();
    tensor.strides = strides.data();
  }
  HostData(const HostData&) = delete;
  HostData& operator=(const HostData&) = delete;

  std::vector<std::int64_t> shape, strides;
  std::vector<std::byte> bytes;
  std::int64_t count = 0;
  qkcts_tensor tensor{};
};

std::vector<float> normal_numbers() {
  std::mt19937 source(2);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(std::size_t{1} << 20);
  for (float& x : numbers) x = normal(source);
  return numbers;
}

// One set of inputs, its call on the device, and all that they point to.
class Measured {
 public:
  Measured(Device& device, const Workload& work, std::mt19937& source)
      : q_(draw(work, source, {work.shape.batch, work.shape.q_heads, work.shape.q_len, work.shape.head_dim})),
        k_(draw(work, source, {work.shape.batch, work.shape.kv_heads, work.shape.k_len, work.shape.head_dim})),
        v_(draw(work, source, {work.shape.batch, work.shape.kv_heads, work.shape.k_len, work.shape.v_head_dim})),
        gain_(draw(work, source, {work.shape.head_dim})),
        output_(work.format, {work.shape.batch, work.shape.q_heads, work.shape.q_len, work.shape.v_head_dim}),
        cosine_(QKCTS_BINARY32, {work.shape.k_len, work.shape.head_dim / 2}),
        sine_(QKCTS_BINARY32, {work.shape.k_len, work.shape.head_dim / 2}),
        q_positions_(0, {work.shape.batch, work.shape.q_len}),
        k_positions_(0, {work.shape.batch, work.shape.k_len}) {
    terms_.struct_size = sizeof terms_;
    terms_.version = QKCTS_CONTRACT_VERSION;
    terms_.mask.causal = 1;
    terms_.mask.alignment = QKCTS_BOTTOM_RIGHT;
    inputs_.struct_size = sizeof inputs_;
    inputs_.format = work.format;
    inputs_.q = &q_->tensor;
    inputs_.k = &k_->tensor;
    inputs_.v = &v_->tensor;
    if (work.normed) bind_norm(work);
    outputs_.struct_size = sizeof outputs_;
    outputs_.count = QKCTS_STAGE_COUNT;
    outputs_.stage[QKCTS_STAGE_OUTPUT] = &output_.tensor;
    args_.struct_size = sizeof args_;
    args_.contract = &terms_;
    args_.shape = &work.shape;
    args_.inputs = &inputs_;
    args_.outputs = &outputs_;
    call_ = std::make_unique<Call>(device, args_);
  }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;
  Call& call() { return *call_; }

 private:
  static std::unique_ptr<HostData> draw(const Workload& work, std::mt19937& source, std::vector<std::int64_t> shape) {
    auto data = std::make_unique<HostData>(work.format, std::move(shape));
    // A million of them, begun at another place by each tensor: a billion would take longer than all that is measured.
    static const std::vector<float> numbers = normal_numbers();
    const std::size_t first = source();
    for (std::int64_t i = 0; i < data->count; ++i)
      store(work.format, data->bytes.data(), i, numbers[(first + static_cast<std::size_t>(i)) % numbers.size()]);
    return data;
  }

  void bind_norm(const Workload& work) {
    for (qkcts_norm* norm : {&terms_.q_norm, &terms_.k_norm}) {
      norm->applied = 1;
      norm->gain = QKCTS_GAIN_W;
      norm->gain_axes = QKCTS_AXES_HEAD_DIM;
      norm->eps = 1e-6;
    }
    terms_.rope.order = QKCTS_NORM_THEN_ROPE;
    terms_.rope.theta = 1e6;
    const std::int64_t pairs = work.shape.head_dim / 2, offset = work.shape.k_len - work.shape.q_len;
    for (std::int64_t p = 0; p < work.shape.k_len; ++p)
      for (std::int64_t i = 0; i < pairs; ++i) {
        const double angle =
            static_cast<double>(p) * std::pow(1e6, -static_cast<double>(i) / static_cast<double>(pairs));
        store(QKCTS_BINARY32, cosine_.bytes.data(), p * pairs + i, static_cast<float>(std::cos(angle)));
        store(QKCTS_BINARY32, sine_.bytes.data(), p * pairs + i, static_cast<float>(std::sin(angle)));
      }
    const auto number = [](HostData& positions, std::int64_t first) {
      for (std::int64_t i = 0; i < positions.count; ++i) {
        const auto position = static_cast<std::int32_t>(first + i % positions.shape[1]);
        std::memcpy(positions.bytes.data() + 4 * i, &position, 4);
      }
    };
    number(q_positions_, offset);
    number(k_positions_, 0);
    inputs_.q_gain = inputs_.k_gain = &gain_->tensor;
    inputs_.cos = &cosine_.tensor;
    inputs_.sin = &sine_.tensor;
    inputs_.q_position_ids = &q_positions_.tensor;
    inputs_.k_position_ids = &k_positions_.tensor;
  }

  std::unique_ptr<HostData> q_, k_, v_, gain_;
  HostData output_, cosine_, sine_, q_positions_, k_positions_;
  qkcts_contract terms_{};
  qkcts_inputs inputs_{};
  qkcts_outputs outputs_{};
  qkcts_run_args args_{};
  std::unique_ptr<Call> call_;
};

class Event {
 public:
  Event() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(const Device& device) {
    check_cuda(cudaEventRecord(event_, static_cast<cudaStream_t>(device.stream())), "cudaEventRecord");
  }
  float milliseconds_since(const Event& begin) {
    check_cuda(cudaEventSynchronize(event_), "cudaEventSynchronize");
    float time = 0;
    check_cuda(cudaEventElapsedTime(&time, begin.event_, event_), "cudaEventElapsedTime");
    return time;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

void measure(Device& device, const Workload& work) {
  std::mt19937 source(1);
  std::vector<std::unique_ptr<Measured>> sets;
  for (int i = 0; i < input_sets; ++i) sets.push_back(std::make_unique<Measured>(device, work, source));
  std::vector<float> times;
  Event begin, end;
  for (int i = 0; i < warm_calls + timed_calls; ++i) {
    begin.record(device);
    sets[static_cast<std::size_t>(i % input_sets)]->call().launch();
    end.record(device);
    const float time = end.milliseconds_since(begin);
    if (i >= warm_calls) times.push_back(time);
  }
  device.finish();
  std::sort(times.begin(), times.end());
  const auto at = [&](std::size_t percent) { return times[(times.size() - 1) * percent / 100]; };
  std::printf(
      "{\"workload\": \"%s\", \"kernel\": \"%s\", \"median_ms\": %.5f, \"p10_ms\": %.5f, \"p90_ms\": %.5f, "
      "\"calls\": %d, \"input_sets\": %d}\n",
      work.name, sets[0]->call().implementation().c_str(), at(50), at(10), at(90), timed_calls, input_sets);
  std::fflush(stdout);
}

constexpr Workload workloads[] = {
    {"prefill_bf16", QKCTS_BFLOAT16, {1, 32, 8, 2048, 2048, 128, 128}, false},
    {"prefill_bf16_norm_rope", QKCTS_BFLOAT16, {1, 32, 8, 2048, 2048, 128, 128}, true},
    {"prefill_f16", QKCTS_BINARY16, {1, 32, 8, 2048, 2048, 128, 128}, false},
    {"prefill_f32", QKCTS_BINARY32, {1, 8, 8, 1024, 1024, 128, 128}, false},
    {"decode_bf16", QKCTS_BFLOAT16, {8, 32, 8, 1, 8192, 128, 128}, false},
    {"decode_bf16_norm_rope", QKCTS_BFLOAT16, {8, 32, 8, 1, 8192, 128, 128}, true},
};

int run() {
  const std::string missing = Device::missing();
  if (!missing.empty()) {
    std::fprintf(stderr, "cuda_time: %s\n", missing.c_str());
    return 5;
  }
  try {
    Device device(Settings{});
    for (const Workload& work : workloads) measure(device, work);
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "cuda_time: %s\n", failure.what());
    return 1;
  }
}

}  // namespace
}  // namespace qkcts::cuda

int main() {
  return qkcts::cuda::run();
}
