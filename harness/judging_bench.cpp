// SPDX-License-Identifier: Apache-2.0
// How fast stages are judged. Times nothing by itself: judging_bench.py asks for one round after another and lets
// numpy.allclose compare the same arrays in between, since machines are noisy.
//
//   judging_bench FOLDER ELEMENTS|CORPUS
//
// A made-up output of so many elements, or every stage of the binary32 cases of a corpus under every profile, with the
// expected values as results. Writes got.bin and expected.bin (binary32) and exact.bin (binary64) to the folder, one
// array after another, and arrays.txt: elements of each, and how often it is judged. Then each line on stdin is one
// round of judge_stage() for all of them, answered by its seconds of processor time.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "harness/handmade_case.hpp"
#include "harness/judgement.hpp"
#include "vectors/corpus_reader.hpp"

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
GoldenCase made_up_output(std::size_t elements, std::vector<float>& got) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  GoldenCase golden;
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
    got.push_back(static_cast<float>(exact + unit * normal(random)));
  }
  return golden;
}

// What is judged once for each profile of its case.
struct Output {
  const GoldenCase* golden;
  qkcts_stage stage;
  std::vector<std::byte> got;

  const ProvenStage& values() const { return golden->stages[stage].values; }
  std::vector<float> stored() const {
    const auto length = static_cast<std::size_t>(row_length(stage, golden->input.shape));
    std::vector<float> rows(values().rows.size() * length);
    for (std::size_t row = 0; row < values().rows.size(); ++row)
      std::memcpy(rows.data() + row * length, got.data() + values().rows[row] * length * sizeof(float),
                  length * sizeof(float));
    return rows;
  }
};

std::vector<GoldenCase> cases_of(const std::string& corpus) {
  const CorpusReader reader(corpus);
  std::vector<GoldenCase> cases;
  for (const std::string& slug : reader.slugs())
    if (reader.outline(slug).input.inputs.format == Format::binary32) cases.push_back(reader.read(slug));
  return cases;
}

// Rows that are not stored are 0.
std::vector<std::byte> expected_tensor(const GoldenCase& golden, qkcts_stage stage) {
  const ProvenStage& values = golden.stages[stage].values;
  const auto length = static_cast<std::size_t>(row_length(stage, golden.input.shape));
  std::vector<float> tensor(static_cast<std::size_t>(row_count(stage, golden.input.shape)) * length);
  for (std::size_t i = 0; i < values.expected.size(); ++i)
    tensor[values.rows[i / length] * length + i % length] =
        std::bit_cast<float>(static_cast<std::uint32_t>(values.expected[i]));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(tensor));
  return {bytes.begin(), bytes.end()};
}

std::vector<Output> outputs_of(const std::vector<GoldenCase>& cases) {
  std::vector<Output> outputs;
  for (const GoldenCase& golden : cases)
    for (const qkcts_stage stage : all_stages)
      if (golden.stages[stage].present && stage_format(stage, Format::binary32) == Format::binary32)
        outputs.push_back({&golden, stage, expected_tensor(golden, stage)});
  return outputs;
}

template <class T>
void write(std::ofstream& file, const std::vector<T>& values) {
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}

void write_arrays(const std::string& folder, const std::vector<Output>& outputs) {
  std::ofstream got(folder + "/got.bin"), expected(folder + "/expected.bin"), exact(folder + "/exact.bin");
  std::ofstream arrays(folder + "/arrays.txt");
  for (const Output& output : outputs) {
    std::vector<float> rounded;
    for (const std::uint64_t pattern : output.values().expected)
      rounded.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(pattern)));
    write(got, output.stored());
    write(expected, rounded);
    write(exact, output.values().hi);
    arrays << rounded.size() << ' ' << output.golden->profiles.size() << '\n';
  }
  for (std::ofstream* file : {&got, &expected, &exact, &arrays})
    if (!file->flush()) throw std::runtime_error(folder + ": its files cannot be written");
}

int bench(const std::string& folder, const std::vector<Output>& outputs) {
  write_arrays(folder, outputs);
  fmt::print("ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    bool failed = false;
    const double start = processor_seconds();
    for (const Output& output : outputs)
      for (std::size_t profile = 0; profile < output.golden->profiles.size(); ++profile)
        failed |= judge_stage(*output.golden, output.stage, profile, output.got).verdict == Verdict::fail;
    const double seconds = processor_seconds() - start;
    if (failed) throw std::runtime_error("what is right does not pass");
    fmt::print("{}\n", seconds);
    std::fflush(stdout);
  }
  return 0;
}

int bench_elements(const std::string& folder, std::size_t elements) {
  std::vector<float> got;
  const GoldenCase golden = made_up_output(elements, got);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(got));
  return bench(folder, {{&golden, QKCTS_STAGE_OUTPUT, {bytes.begin(), bytes.end()}}});
}

int bench_corpus(const std::string& folder, const std::string& corpus) {
  const std::vector<GoldenCase> cases = cases_of(corpus);
  return bench(folder, outputs_of(cases));
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count == 3) {
      const std::string what = arguments[2];
      const bool is_number = what.find_first_not_of("0123456789") == std::string::npos;
      return is_number ? bench_elements(arguments[1], std::stoul(what)) : bench_corpus(arguments[1], what);
    }
    fmt::print(stderr, "usage: judging_bench FOLDER ELEMENTS|CORPUS\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "judging_bench: {}\n", error.what());
  }
  return 2;
}
