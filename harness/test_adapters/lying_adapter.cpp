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
#ifdef LYING_FLUSHES
#include <xmmintrin.h>
#endif

#ifndef LYING_CLAIM
#define LYING_CLAIM "false"
#endif
#ifndef LYING_PROFILE
#define LYING_PROFILE "f32"
#endif
#ifndef LYING_LAYOUTS
#define LYING_LAYOUTS ""
#endif
#ifndef LYING_MORE
#define LYING_MORE ""
#endif

namespace {

std::string fault;
int calls = 0;

#ifdef LYING_FLUSHES
// FTZ and DAZ, as gcc's start code sets them for a library that is linked with -ffast-math.
[[gnu::constructor]] void flush_subnormals() {
  _mm_setcsr(_mm_getcsr() | 0x8040u);
}
#endif

constexpr const char* description =
    R"({"name": "lying", "version": "1", "formats": ["binary32"],
        "stages": ["scores", "masked", "probs", "lse", "output"], "profile": {"binary32": ")" LYING_PROFILE R"("},
        "supports": {"q_norm.kind": ["none"], "k_norm.kind": ["none"], "rope.order": ["none"],
                     "score.softcap": [null], "mask.causal": [false])" LYING_MORE R"(},
        "limits": {"k_len": {"max": 64}},
        "layouts": [)" LYING_LAYOUTS R"(],
        "claims": {"bitwise_repeatable": )" LYING_CLAIM R"(, "batch_invariant": )" LYING_CLAIM "}}";

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
  if (fault == "not_here") {
    std::snprintf(message->text, message->capacity, "not run: no such device with these options");
    return QKCTS_UNAVAILABLE;
  }
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

// A tensor of up to four axes, read as its strides say, or, on request, as if there were none.
struct View {
  View(const qkcts_tensor* tensor, bool dense) {
    if (tensor == nullptr) return;
    first = reinterpret_cast<float*>(static_cast<char*>(tensor->data) + tensor->byte_offset);
    std::int64_t row_major = 1;
    for (int axis = tensor->ndim; axis-- > 0;) {
      stride[axis] = dense ? row_major : tensor->strides[axis];
      row_major *= tensor->shape[axis];
    }
  }
  float& at(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t i = 0) const {
    return first[b * stride[0] + h * stride[1] + t * stride[2] + i * stride[3]];
  }
  void put(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t i, float value) const {
    if (first != nullptr) at(b, h, t, i) = value;
  }

  float* first = nullptr;
  std::int64_t stride[4] = {};
};

struct Views {
  explicit Views(const qkcts_run_args& args)
      : q(args.inputs->q, fault == "dense_inputs"),
        k(args.inputs->k, fault == "dense_inputs"),
        v(args.inputs->v, fault == "dense_inputs"),
        scores(args.outputs->stage[QKCTS_STAGE_SCORES], false),
        masked(args.outputs->stage[QKCTS_STAGE_MASKED], false),
        probs(args.outputs->stage[QKCTS_STAGE_PROBS], false),
        lse(args.outputs->stage[QKCTS_STAGE_LSE], false),
        output(args.outputs->stage[QKCTS_STAGE_OUTPUT], fault == "dense_outputs") {}
  View q, k, v, scores, masked, probs, lse, output;
};

void attention_row(const Views& x, const qkcts_shape& s, std::int64_t b, std::int64_t h, std::int64_t t) {
  const std::int64_t kv = h / (s.q_heads / s.kv_heads);
  std::vector<float> scores(static_cast<std::size_t>(s.k_len)), weights(scores.size());
  float maximum = -std::numeric_limits<float>::infinity();
  for (std::int64_t j = 0; j < s.k_len; ++j) {
    float sum = 0;
    for (std::int64_t d = 0; d < s.head_dim; ++d) sum += x.q.at(b, h, t, d) * x.k.at(b, kv, j, d);
    scores[static_cast<std::size_t>(j)] = sum / std::sqrt(static_cast<float>(s.head_dim));
    maximum = std::fmax(maximum, scores[static_cast<std::size_t>(j)]);
  }
  float total = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) total += weights[j] = std::exp(scores[j] - maximum);
  for (float& weight : weights) weight /= total;
  for (std::int64_t j = 0; j < s.k_len; ++j) {
    x.scores.put(b, h, t, j, scores[static_cast<std::size_t>(j)]);
    x.masked.put(b, h, t, j, scores[static_cast<std::size_t>(j)]);
    x.probs.put(b, h, t, j, weights[static_cast<std::size_t>(j)]);
  }
  x.lse.put(b, h, t, 0, maximum + std::log(total));
  if (x.output.first == nullptr) return;
  for (std::int64_t d = 0; d < s.v_head_dim; ++d) {
    float sum = 0;
    for (std::int64_t j = 0; j < s.k_len; ++j) sum += weights[static_cast<std::size_t>(j)] * x.v.at(b, kv, j, d);
    x.output.at(b, h, t, d) = sum;
  }
}

void attention(const qkcts_run_args& args) {
  const qkcts_shape& s = *args.shape;
  const Views views(args);
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.q_heads; ++h)
      for (std::int64_t t = 0; t < s.q_len; ++t) attention_row(views, s, b, h, t);
}

// Ends by itself only after 4 TiB.
int overflow_the_stack(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  if (depth == 1 << 30) return 0;
  return overflow_the_stack(depth + 1) + frame[0];
}

// In a session of its own, with every descriptor of ours: the pipes do not close when this process ends.
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
  if (fault.ends_with("exit_late")) std::atexit([] { _exit(fault == "exit_late" ? 1 : 0); });
  if (fault == "throw") throw std::runtime_error("across the border");
  if (fault == "stack") overflow_the_stack(0);
  if (fault == "rounding") std::fesetround(FE_UPWARD);
  if (fault == "slow") usleep(100000);
  if (fault == "hang") {
    for (;;) pause();
  }
  if (fault == "hang_short" && args.shape->q_len == 3) {
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
  if (fault.starts_with("daemon")) leave_a_daemon_behind();
  if (fault == "daemon_exit") _exit(5);
  if (fault == "daemon_hang") {
    for (;;) pause();
  }
  if (fault == "spin") {
    for (volatile int turns = 0;;) seen = turns;
  }
  if (fault == "text_size") args.message->struct_size = 8;
  if (fault == "reserve") {
    void* const reserved =
        mmap(nullptr, std::size_t{1} << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return QKCTS_OUT_OF_MEMORY;
    munmap(reserved, std::size_t{1} << 40);
  }
  if (fault == "other_table") {  // the next process that loads this library finds another one
    std::FILE* const mark = std::fopen(std::getenv("LYING_TABLE_MARK"), "w");
    std::fclose(mark);
    _exit(3);
  }
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
  if (fault == "lost_device" && ++calls > 2) return refuse(QKCTS_INTERNAL);  // for the rest of the process
  if (fault == "out_of_memory") return refuse(QKCTS_OUT_OF_MEMORY);
  return QKCTS_OK;
}

// Misdeeds on the results.
void falsify(const qkcts_run_args& args) {
  const qkcts_tensor* const output = args.outputs->stage[QKCTS_STAGE_OUTPUT];
  if (output == nullptr) return;
  const qkcts_shape& shape = *args.shape;
  const View view(output, false);
  float* const last = &view.at(shape.batch - 1, shape.q_heads - 1, shape.q_len - 1, shape.v_head_dim - 1);
  float* const last_of_first = &view.at(0, shape.q_heads - 1, shape.q_len - 1, shape.v_head_dim - 1);
  if (fault == "unwritten") {
    const std::uint32_t poison = 0x7FA5C3D1u;
    std::memcpy(last, &poison, sizeof poison);
  }
  if (fault == "nan") *last = std::numeric_limits<float>::quiet_NaN();
  if (fault == "wrong" || fault == "wrong_exit_late") *last += 1;
  if (fault == "unwritten_row") {
    const std::uint32_t poison = 0x7FA5C3D1u;
    for (std::int64_t i = 0; i < shape.v_head_dim; ++i) std::memcpy(last - i * view.stride[3], &poison, sizeof poison);
  }
  if (fault == "taps" && args.outputs->stage[QKCTS_STAGE_PROBS] == nullptr) *last = std::nextafterf(*last, 0.0f);
  if (fault == "taps_wrong" && args.outputs->stage[QKCTS_STAGE_PROBS] == nullptr) *last += 1;
  if (fault == "large_batch" && shape.batch == 33) *last = std::nextafterf(*last, 0.0f);
  if (fault == "large_batch_wrong" && shape.batch == 33) *last += 1;
  if (fault == "alone" && shape.batch == 1) *last = std::nextafterf(*last, 0.0f);
  if (fault == "first_place" && shape.batch > 1) *last_of_first = std::nextafterf(*last_of_first, 0.0f);
  if (fault == "large_batch_crash" && shape.batch == 33) std::abort();
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
  static qkcts_adapter_table given = table;
  const char* const mark = std::getenv("LYING_TABLE_MARK");
  if (mark != nullptr && access(mark, F_OK) == 0) given.struct_size = 12;
  return &given;
}
