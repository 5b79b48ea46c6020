// SPDX-License-Identifier: Apache-2.0
// Writes proven values into a ReferenceResult: the stored rows with hi, lo and bits, every element in binary64.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/attention.hpp"
#include "reference/rounding.hpp"

namespace qkcts {

struct ElementPlace {
  qkcts_stage stage = QKCTS_STAGE_OUTPUT;
  std::int64_t row = 0;
  std::int64_t column = 0;
};

class Recorder {
 public:
  // Sizes those of `stages` that the contract has in `result`; those of rows of attention hold none yet. Throws
  // InputError if `rows` names rows that do not exist.
  Recorder(const Case& c, StageSet stages, const StageRows& rows, ReferenceResult& result);

  // From here on these rows of attention are recorded: their stages in `exact` hold them and no others. Memory for each
  // is made by begin(), so that it is written while it is in the cache: one after another, or all that is left at once.
  void hold(std::span<const std::uint32_t> rows);
  void begin(std::int64_t row);
  void begin_all();
  // Likewise of the rows of q, k and v up to this one, and of all of them.
  void begin_vector(qkcts_stage stage, std::int64_t row);
  void begin_all_vectors();

  bool is_stored(qkcts_stage stage, std::int64_t row) const { return slot_[stage][static_cast<std::size_t>(row)] >= 0; }
  Format format(qkcts_stage stage) const { return formats_[stage]; }

  // All of z in [lower, upper] rounds alike where it has to: recorded, true. Otherwise nothing is kept. Where the stage
  // has a rounding point and z is known, `budget` becomes `budget_exact`.
  bool settle(const ElementPlace& place, RealView lower, RealView upper, ElementRule rule);

  // Records at `stage` the value that stands settled at `from`, in the same format, row and column; false if that does
  // not give all that is stored here.
  bool copy(const ElementPlace& from, qkcts_stage stage);

  // Of a stage with a rounding point of its own, before it settles: RN64 of the value before the point. Where it is not
  // said, the point has not changed the value.
  void set_before(const ElementPlace& place, double before) {
    result_.exact.before[place.stage][element(place)] = before;
  }

  // <q,k> of the score at this place, before the point `product`.
  void set_product(const ElementPlace& score, double before) { result_.exact.products[element(score)] = before; }

  // A value that the contract fixes: finite, infinite or NaN.
  void fix(const ElementPlace& place, double value, ElementRule rule);

 private:
  void record(const ElementPlace& place, const Proven& proven, ElementRule rule);
  void keep_value(const ElementPlace& place, double value);
  std::size_t element(const ElementPlace& place) const;
  void grow_exact(qkcts_stage stage, std::size_t rows);
  void grow_stored(qkcts_stage stage, std::size_t rows);

  ReferenceResult& result_;
  std::array<Format, QKCTS_STAGE_COUNT> formats_{};
  std::array<std::int64_t, QKCTS_STAGE_COUNT> lengths_{};
  std::array<bool, QKCTS_STAGE_COUNT> has_point_{};
  bool has_products_;
  StageSet stages_;
  std::vector<std::int32_t> held_;  // of every row of attention: its index among those that are held
  std::array<std::vector<std::int32_t>, QKCTS_STAGE_COUNT> slot_;  // row -> index among the stored rows, or -1
};

}  // namespace qkcts
