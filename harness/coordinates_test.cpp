// SPDX-License-Identifier: Apache-2.0
#include "harness/coordinates.hpp"

#include <gtest/gtest.h>

#include "harness/usage_error.hpp"

namespace qkcts {
namespace {

constexpr qkcts_shape shape = {2, 6, 3, 5, 7, 8, 4};

TEST(Coordinates, TextNamesTheAxes) {
  EXPECT_EQ(coordinate_text(QKCTS_STAGE_Q_NORM, shape, {5 * 6 + 4, 3}), "b1 h0 t4 c3");
  EXPECT_EQ(coordinate_text(QKCTS_STAGE_SCORES, shape, {0, 6}), "b0 h0 t0 k6");
  EXPECT_EQ(coordinate_text(QKCTS_STAGE_LSE, shape, {59, 0}), "b1 h5 t4");
  EXPECT_EQ(coordinate_text(QKCTS_STAGE_K_PROJ, shape, {7 * 3 + 2, 7}), "b1 h0 t2 c7");
  EXPECT_EQ(coordinate_text(QKCTS_STAGE_V_NORM, shape, {7 * 5 + 6, 3}), "b1 h2 t6 c3");
}

TEST(Coordinates, TextReadsBackForEveryElement) {
  for (const qkcts_stage stage : all_stages) {
    for (std::uint32_t row = 0; row < row_count(stage, shape); ++row) {
      for (std::uint32_t column = 0; column < row_length(stage, shape); ++column) {
        const ElementCoordinates place = place_from_text(stage, shape, index_text(stage, shape, {row, column}));
        ASSERT_EQ(place.row, row);
        ASSERT_EQ(place.column, column);
      }
    }
  }
}

TEST(Coordinates, WhatNamesNoElementIsRefused) {
  for (const char* text :
       {"", "0", "0,0,0", "-1,0,0,0", "0,0,0,0,0", "0,0,0,x", "0,0,0,0,", "0 0 0 0", "0,0,5,x", "0,0,5,0,0"}) {
    EXPECT_THROW(place_from_text(QKCTS_STAGE_Q_NORM, shape, text), UsageError) << text;
  }
  for (const char* text : {"0,0,0,8", "0,0,5,0", "2,0,0,0"}) try {
      place_from_text(QKCTS_STAGE_Q_NORM, shape, text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("lies outside of q_norm"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace qkcts
