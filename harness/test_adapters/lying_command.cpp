// SPDX-License-Identifier: Apache-2.0
// A command that knows the answer to plain_golden_case() by heart, and on request (first argument) commits one misdeed.
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "conformance/json.hpp"
#include "harness/exchange_requests.hpp"
#include "harness/exchange_schema.hpp"
#include "harness/handmade_case.hpp"
#include "harness/judgement.hpp"
#include "vectors/schema.hpp"

namespace {

using qkcts::Json;

std::string fault;
int runs = 0;

bool is(const char* name) {
  return fault == name;
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

[[noreturn]] void stay() {
  for (;;) pause();
}

void say_garbage_or_less() {
  if (is("garbage")) say("loading the model...");
  if (is("no_object")) say("[1]");
  if (is("long_line")) say(std::string(3u << 20, 'x'));
  if (is("half_line")) {
    std::printf("{\"seq\": 3, ");
    std::fflush(stdout);
    _exit(0);
  }
}

void end_in_its_way() {
  if (is("exit") || is("lost")) _exit(3);
  if (is("segfault")) {
    std::signal(SIGSEGV, SIG_DFL);  // a sanitizer would report it and exit
    raise(SIGSEGV);
  }
  if (is("hang")) stay();
  if (is("closed_stdout")) {
    close(1);
    stay();
  }
  if (is("grandchild")) {  // in a session of its own, with our stdout
    if (fork() == 0) {
      setsid();
      stay();
    }
    _exit(5);
  }
  if (is("memory")) {
    constexpr std::size_t mebibyte = std::size_t{1} << 20;
    for (std::size_t i = 0; i < 4096; ++i) {
      volatile char* const block = static_cast<char*>(std::malloc(mebibyte));
      for (std::size_t at = 0; at < mebibyte; at += 4096) block[at] = 1;
      usleep(100);
    }
  }
}

struct Answer {
  const char* stage;
  std::vector<std::uint64_t> extents;
  std::vector<double> values;
};

void write_result(const qkcts::KernelRequest& request, const std::string& path) {
  qkcts::Hdf5Output file(path);
  qkcts::write_exchange_head(file, is("other_format") ? "qkcts-requests" : qkcts::exchange::results_format);
  qkcts::GroupMaker groups(file);
  const std::string group = std::string("cases/") + (is("other_case") ? "another" : qkcts::exchange::nameless_case);
  groups.make(group + "/stages");
  file.write_text(group, qkcts::exchange::request_digest,
                  is("other_digest") ? std::string(64, '0') : qkcts::request_digest(request.input));
  file.write_text(group, qkcts::exchange::implementation, "by heart");
  const auto batch = static_cast<std::uint64_t>(request.input.shape.batch);
  const bool taps = (request.stages & qkcts::bit(QKCTS_STAGE_PROBS)) != 0;
  const bool off = (is("restless") && runs % 2 == 0) || (is("large_batch") && batch == 33) || (is("taps") && !taps);
  const double half = is("wrong") ? 0.75 : 0.5, two = off ? std::nextafter(2.0f, 0.0f) : 2;
  std::vector<Answer> answers = {{"scores", {1, 1, 2, 2}, {0, 0, 0, 0}},
                                 {"probs", {1, 1, 2, 2}, {half, half, half, half}},
                                 {"lse", {1, 1, 2}, {std::log(2.0), std::log(2.0)}},
                                 {"output", {1, 1, 2, 2}, {two, 3.5, 2, 3.5}}};
  if (is("extra_stage")) answers.push_back({"k_norm", {1}, {0}});
  for (Answer& answer : answers) {
    const bool output = std::strcmp(answer.stage, "output") == 0;
    const std::optional<qkcts_stage> stage = qkcts::stage_named(answer.stage);
    if (!is("extra_stage") && (request.stages & qkcts::bit(*stage)) == 0) continue;
    const std::vector<double> entry = answer.values;
    for (answer.extents[0] = 1; answer.extents[0] < batch; ++answer.extents[0])
      answer.values.insert(answer.values.end(), entry.begin(), entry.end());
    if (is("missing_stages") && !output) continue;
    if (is("wrong_shape") && output) answer.extents = {2, 2};
    if (is("too_short") && output) answer = {"output", {1, 1, 2, 1}, {2, 3.5}};
    const bool wide = is("wrong_type") && output;
    std::vector<std::byte> bytes =
        qkcts::stage_bytes(wide ? qkcts::Format::binary64 : qkcts::Format::binary32, answer.values);
    if (is("poison") && output) {
      const std::uint64_t poison = qkcts::poison_pattern(qkcts::Format::binary32);
      std::memcpy(bytes.data() + 8, &poison, 4);
    }
    const qkcts::StoredType type = is("bits") ? qkcts::StoredType::uint32 : qkcts::StoredType::binary32;
    file.write_dataset(group + "/stages/" + answer.stage, wide ? qkcts::StoredType::binary64 : type, answer.extents,
                       bytes);
  }
  file.close();
}

void damage(const std::string& path) {
  const std::uintmax_t size = std::filesystem::file_size(path);
  if (is("truncated")) std::filesystem::resize_file(path, size / 2);
  if (is("no_hdf5")) std::ofstream(path) << "not what you think";
  if (!is("corrupt")) return;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(size / 4));
  file << std::string(size / 2, '\xff');
}

void run(const Json& order, Json& answer) {
  ++runs;
  std::fprintf(stderr, "run %d of the lying command\n", runs);
  end_in_its_way();
  say_garbage_or_less();
  if (is("wrong_seq")) answer["seq"] = order.at("seq").get<int>() + 1;
  if (is("wrong_status")) answer["status"] = "fine";
  if (is("unknown_key")) answer["time"] = 3;
  if (is("unsupported") || is("out_of_memory") || is("internal")) {
    answer["status"] = fault;
    answer["message"] = "no,\nbecause";
    return;
  }
  const std::string path = order.at("result");
  if (is("no_file")) return;
  if (is("fifo")) {  // whoever opens it waits for ever
    mkfifo(path.c_str(), 0600);
    return;
  }
  const qkcts::RequestReader requests(order.at("request"));
  write_result(requests.read(requests.slugs().front()), path);
  damage(path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) fault = argv[1];
  const bool lost = is("lost") && argc > 2 && std::filesystem::exists(argv[2]);  // an earlier process was here
  if (is("exit_at_once")) return 3;
  if (is("garbage_at_once")) say("welcome");
  for (std::string line; std::getline(std::cin, line);) {
    const Json order = Json::parse(line);
    Json answer = {{"seq", order.at("seq")}, {"status", "ok"}};
    const std::string what = order.at("do");
    if (argc > 2) std::ofstream(argv[2], std::ios::app) << line << "\n";  // what the host says
    if (what == "stop") return 0;
    if (what == "hello") answer["protocol"] = is("other_protocol") ? 2 : 1;
    if (what == "describe") {
      answer["description"] = {
          {"name", "lying_command"},
          {"version", "1"},
          {"formats", {"binary32"}},
          {"stages", {"scores", "probs", "lse", "output"}},
          {"profile", {{"binary32", "f32"}}},
          {"layouts", {"bshd"}},  // says nothing: a command is given files
          {"claims", {{"bitwise_repeatable", is("taps")}, {"batch_invariant", is("large_batch")}}}};
      if (is("no_description")) answer.erase("description");
      if (is("unavailable") || lost) answer.update({{"status", "unavailable"}, {"message", "no such device"}});
    }
    if (what == "run") run(order, answer);
    say(answer.dump());
  }
  return 0;
}
