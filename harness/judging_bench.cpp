// SPDX-License-Identifier: Apache-2.0
// How fast a stage is judged. Times nothing by itself: judging_bench.py asks for one round after another and lets
// numpy.allclose compare the same arrays in between, since machines are noisy.
//
//   judging_bench FOLDER ELEMENTS
//
// writes got.bin and expected.bin (binary32) and exact.bin (binary64) to the folder; then each line on stdin is one
// round of judge_stage(), answered by its seconds of processor time.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <random>
#include <string>

#include "harness/handmade_case.hpp"
#include "harness/judgement.hpp"

namespace {

using namespace qkcts;

constexpr std::size_t row_elements = 1024;

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// An output of binary32 as a conforming kernel leaves it: values of both signs over some binades, errors of a few ulp
// within a Delta of eight.
struct Judged {
  GoldenCase golden;
  std::vector<float> got, expected;
};

Judged judged_output(std::size_t elements) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  Judged result;
  GoldenCase& golden = result.golden;
  golden.input.slug = "bench";
  golden.input.contract.name = "plain_sdpa";
  golden.input.inputs.format = Format::binary32;
  const std::size_t rows = elements / row_elements;
  golden.input.shape = {1, 1, 1, static_cast<std::int64_t>(rows), 2, 64, row_elements};
  golden.profiles = {"f32"};
  GoldenStage& stage = golden.stages[QKCTS_STAGE_OUTPUT];
  stage.present = true;
  stage.budgets.resize(1);
  for (std::size_t i = 0; i < rows * row_elements; ++i) {
    if (i % row_elements == 0) stage.values.rows.push_back(static_cast<std::uint32_t>(i / row_elements));
    const double exact = normal(random);
    const double unit = ulp(Format::binary32, exact);
    stage.values.hi.push_back(exact);
    stage.values.lo.push_back(static_cast<std::int16_t>(random() % 255) - 127);
    stage.values.expected.push_back(encode(Format::binary32, exact));
    stage.values.rule.push_back(ElementRule::budget);
    stage.budgets[0].delta.push_back(static_cast<float>(8 * unit));
    stage.budgets[0].trust.push_back(Trust::judged);
    result.expected.push_back(static_cast<float>(exact));
    result.got.push_back(static_cast<float>(exact + unit * normal(random)));
  }
  return result;
}

template <class T>
void write(const std::string& path, const std::vector<T>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}

int bench(const std::string& folder, std::size_t elements) {
  const Judged judged = judged_output(elements);
  write(folder + "/got.bin", judged.got);
  write(folder + "/expected.bin", judged.expected);
  write(folder + "/exact.bin", judged.golden.stages[QKCTS_STAGE_OUTPUT].values.hi);
  fmt::print("{}\n", judged.got.size());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const double start = processor_seconds();
    const StageJudgement judgement =
        judge_stage(judged.golden, QKCTS_STAGE_OUTPUT, 0, std::as_bytes(std::span(judged.got)));
    const double seconds = processor_seconds() - start;
    if (judgement.verdict != Verdict::pass) throw std::runtime_error("the made-up output does not pass");
    fmt::print("{}\n", seconds);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count == 3) return bench(arguments[1], std::stoul(arguments[2]));
    fmt::print(stderr, "usage: judging_bench FOLDER ELEMENTS\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "judging_bench: {}\n", error.what());
  }
  return 2;
}
