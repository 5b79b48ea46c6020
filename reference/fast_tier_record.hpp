// SPDX-License-Identifier: Apache-2.0
// Whole rows of a stage from double words into a ReferenceResult.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/attention.hpp"
#include "reference/case_values.hpp"
#include "reference/double_word_kernels.hpp"
#include "reference/recorder.hpp"

namespace qkcts {

class RowRecorder {
 public:
  // `result` is what a Recorder records into: the same rows are held.
  RowRecorder(const CaseValues& values, ReferenceResult& result, const Kernels& kernels);

  // Records entries 0 ... n - 1 of a row at the columns from `first` on; what is not decided goes to `open`.
  void record(qkcts_stage stage, std::int64_t row, std::int64_t first, ConstWords z, const double* error, std::size_t n,
              std::vector<ElementPlace>& open);
  // The same at the given columns, ascending.
  void record(qkcts_stage stage, std::int64_t row, std::span<const std::uint32_t> columns, ConstWords z,
              const double* error, std::vector<ElementPlace>& open);

  // A value that the contract fixes, at all but the given columns, ascending.
  void fix_all_but(qkcts_stage stage, std::int64_t row, std::span<const std::uint32_t> columns, double value,
                   ElementRule rule);

  // The elements of a stored row are hidden positions but for the given columns.
  void hide_all_but(qkcts_stage stage, std::int64_t row, std::span<const std::uint32_t> columns);

  // A number > 0 that rounds to 0 and has lo = 0.
  void record_zero(qkcts_stage stage, std::int64_t row, std::int64_t column);

  // RN64(z) if that is decided; of all of several numbers, or nothing is written.
  struct Statistic {
    Word z;
    double error;
    double* target;
  };
  bool round(std::span<const Statistic> statistics);

 private:
  struct Place {
    std::size_t exact;      // first element of the row
    std::ptrdiff_t stored;  // the same among the stored rows, or -1
  };
  Place place(qkcts_stage stage, std::int64_t row) const;
  RoundedRow target(qkcts_stage stage, const Place& place, std::size_t first);
  void expect_next(qkcts_stage stage, const Place& place) const;

  std::array<std::size_t, QKCTS_STAGE_COUNT> lengths_{};  // of a row
  mutable std::array<std::size_t, QKCTS_STAGE_COUNT>
      nearest_{};  // of the stored rows, where the last one was looked for
  std::array<Format, QKCTS_STAGE_COUNT> formats_{};
  ReferenceResult& result_;
  const Kernels& kernels_;
  std::vector<std::uint8_t> undecided_;
  std::vector<double> exact_, hi_;  // of scattered columns
  std::vector<std::uint64_t> expected_;
  std::vector<std::int16_t> lo_;
};

}  // namespace qkcts
