// SPDX-License-Identifier: Apache-2.0
// Plain attention without norm, rope, bias or mask in binary32, and on request (option fault=NAME) one deliberate
// misdeed. The tests of the harness prove with it that each misdeed gets its verdict and that the run goes on.
#include <qkcts/adapter.h>

#include <cfenv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#ifndef LYING_CLAIM
#define LYING_CLAIM "false"
#endif
#ifndef LYING_PROFILE
#define LYING_PROFILE "f32"
#endif
#ifndef LYING_MORE
#define LYING_MORE ""
#endif

namespace {

std::string fault;
int calls = 0;

constexpr const char* description =
    R"({"name": "lying", "version": "1", "formats": ["binary32"],
        "stages": ["scores", "masked", "probs", "lse", "output"], "profile": {"binary32": ")" LYING_PROFILE R"("},
        "supports": {"q_norm.kind": ["none"], "k_norm.kind": ["none"], "rope.order": ["none"],
                     "score.softcap": [null], "mask.causal": [false])" LYING_MORE R"(},
        "limits": {"k_len": {"max": 64}},
        "claims": {"bitwise_repeatable": )" LYING_CLAIM "}}";

qkcts_status describe(qkcts_text* json) {
  json->length = static_cast<std::uint32_t>(std::strlen(description));
  std::snprintf(json->text, json->capacity, "%s", description);
  return QKCTS_OK;
}

qkcts_status probe(qkcts_text* reason) {
  reason->text[0] = '\0';
  return QKCTS_OK;
}

qkcts_status prepare(const char* options, void**, qkcts_text* message) {
  const std::string text = options;
  if (text.rfind("fault=", 0) == 0) fault = text.substr(6);
  if (fault != "prepare") return QKCTS_OK;
  std::snprintf(message->text, message->capacity, "the device is on fire");
  return QKCTS_INTERNAL;
}

float* floats(const qkcts_tensor* tensor) {
  return static_cast<float*>(tensor->data);
}

std::size_t count(const qkcts_tensor* tensor) {
  std::size_t n = 1;
  for (int axis = 0; axis < tensor->ndim; ++axis) n *= static_cast<std::size_t>(tensor->shape[axis]);
  return n;
}

void attention(const qkcts_run_args& args) {
  const qkcts_shape& s = *args.shape;
  const qkcts_outputs& out = *args.outputs;
  const std::int64_t group = s.q_heads / s.kv_heads;
  std::vector<float> scores(static_cast<std::size_t>(s.k_len)), weights(scores.size());
  for (std::int64_t row = 0; row < s.batch * s.q_heads * s.q_len; ++row) {
    const std::int64_t kv = row / s.q_len / group * s.k_len;
    const float* const q = floats(args.inputs->q) + row * s.head_dim;
    float maximum = -std::numeric_limits<float>::infinity();
    for (std::int64_t j = 0; j < s.k_len; ++j) {
      const float* const k = floats(args.inputs->k) + (kv + j) * s.head_dim;
      float sum = 0;
      for (std::int64_t d = 0; d < s.head_dim; ++d) sum += q[d] * k[d];
      scores[static_cast<std::size_t>(j)] = sum / std::sqrt(static_cast<float>(s.head_dim));
      maximum = std::fmax(maximum, scores[static_cast<std::size_t>(j)]);
    }
    float total = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) total += weights[j] = std::exp(scores[j] - maximum);
    for (float& weight : weights) weight /= total;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const std::size_t at = static_cast<std::size_t>(row) * scores.size() + j;
      if (out.stage[QKCTS_STAGE_SCORES] != nullptr) floats(out.stage[QKCTS_STAGE_SCORES])[at] = scores[j];
      if (out.stage[QKCTS_STAGE_MASKED] != nullptr) floats(out.stage[QKCTS_STAGE_MASKED])[at] = scores[j];
      if (out.stage[QKCTS_STAGE_PROBS] != nullptr) floats(out.stage[QKCTS_STAGE_PROBS])[at] = weights[j];
    }
    if (out.stage[QKCTS_STAGE_LSE] != nullptr) floats(out.stage[QKCTS_STAGE_LSE])[row] = maximum + std::log(total);
    if (out.stage[QKCTS_STAGE_OUTPUT] == nullptr) continue;
    for (std::int64_t d = 0; d < s.v_head_dim; ++d) {
      float sum = 0;
      for (std::int64_t j = 0; j < s.k_len; ++j) {
        sum += weights[static_cast<std::size_t>(j)] * floats(args.inputs->v)[(kv + j) * s.v_head_dim + d];
      }
      floats(out.stage[QKCTS_STAGE_OUTPUT])[row * s.v_head_dim + d] = sum;
    }
  }
}

// Ends by itself only after 4 TiB.
int overflow_the_stack(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  if (depth == 1 << 30) return 0;
  return overflow_the_stack(depth + 1) + frame[0];
}

void leave_a_daemon_behind() {
  if (fork() != 0) return;
  setsid();
  for (;;) pause();
}

void* closed_page() {
  return mmap(nullptr, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Misdeeds before the kernel.
qkcts_status act(const qkcts_run_args& args) {
  const qkcts_tensor* const output = args.outputs->stage[QKCTS_STAGE_OUTPUT];
  [[maybe_unused]] volatile int seen = 0;
  if (fault == "segfault") *static_cast<volatile int*>(closed_page()) = 1;
  if (fault == "abort") std::abort();
  if (fault == "exit") _exit(7);
  if (fault == "exit_zero") std::exit(0);
  if (fault == "throw") throw std::runtime_error("across the border");
  if (fault == "stack") overflow_the_stack(0);
  if (fault == "rounding") std::fesetround(FE_UPWARD);
  if (fault == "hang") {
    for (;;) pause();
  }
  if (fault == "overrun") floats(output)[count(output)] = 1;
  if (fault == "underrun") floats(output)[-1] = 1;
  if (fault == "far_overrun") floats(output)[count(output) + 100000] = 1;
  if (fault == "overread") seen = static_cast<int>(floats(args.inputs->k)[count(args.inputs->k)]);
  if (fault == "text_overrun") std::memset(args.message->text, 'x', args.message->capacity + 1);
  if (fault == "input") floats(args.inputs->v)[0] = 1;
  if (fault == "descriptor") args.inputs->v->shape[0] = 1;
  if (fault == "force_input") {  // lifts the protection first, as a library with its own allocator tricks might
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    auto* const data = static_cast<std::byte*>(args.inputs->v->data);
    mprotect(data - reinterpret_cast<std::uintptr_t>(data) % page, page, PROT_READ | PROT_WRITE);
    floats(args.inputs->v)[0] += 1;
  }
  if (fault == "stdout") {
    std::printf("{\"hello\": \"from the library\"}\n");
    std::fflush(stdout);
    std::fprintf(stderr, "a warning from the library\n");
  }
  if (fault == "flood") {
    for (int i = 0; i < 100000; ++i) std::fprintf(stderr, "line %d of far too many\n", i);
  }
  if (fault == "conversation") close(3);
  if (fault == "daemon") leave_a_daemon_behind();
  if (fault == "memory") {
    constexpr std::size_t mebibyte = std::size_t{1} << 20;
    for (std::size_t i = 0; i < 4096; ++i) {
      volatile char* const block = static_cast<char*>(std::malloc(mebibyte));
      for (std::size_t at = 0; at < mebibyte; at += 4096) block[at] = 1;
      usleep(100);
    }
  }
  const auto refuse = [&](qkcts_status status) {
    std::snprintf(args.message->text, args.message->capacity, "no,\nbecause");
    return status;
  };
  if (fault == "status") return refuse(static_cast<qkcts_status>(6));
  if (fault == "garbage") {  // a library that happens to write to a descriptor that is not its own
    const std::vector<std::uint64_t> words(64, 24);
    static_cast<void>(!write(3, words.data(), words.size() * sizeof words[0]));
  }
  if (fault == "unsupported") return refuse(QKCTS_UNSUPPORTED);
  if (fault == "internal") return refuse(QKCTS_INTERNAL);
  if (fault == "out_of_memory") return refuse(QKCTS_OUT_OF_MEMORY);
  return QKCTS_OK;
}

// Misdeeds on the results.
void falsify(const qkcts_run_args& args) {
  const qkcts_tensor* const output = args.outputs->stage[QKCTS_STAGE_OUTPUT];
  float* const last = floats(output) + count(output) - 1;
  if (fault == "unwritten") {
    const std::uint32_t poison = 0x7FA5C3D1u;
    std::memcpy(last, &poison, sizeof poison);
  }
  if (fault == "nan") *last = std::numeric_limits<float>::quiet_NaN();
  if (fault == "wrong") *last += 1;
  if (fault == "restless" && ++calls % 2 == 0) *last = std::nextafterf(*last, 0.0f);
  if (fault == "restless_wrong" && ++calls % 2 == 0) *last += 1;
}

qkcts_status run(const qkcts_run_args* args) {
  const qkcts_status status = act(*args);
  if (status != QKCTS_OK) return status;
  attention(*args);
  falsify(*args);
  const char* const name = fault == "shout" ? "ker\xffnel\x01\n\x1b[31m" : "plain loops";
  std::snprintf(args->implementation->text, args->implementation->capacity, "%s", name);
  return QKCTS_OK;
}

void release(void*) {}

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
