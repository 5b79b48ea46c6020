// SPDX-License-Identifier: Apache-2.0
// Where a long job stands: a bar with rate and time left on a terminal, a line every few seconds elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

namespace qkcts {

class ProgressLine {
 public:
  ProgressLine(std::string verb, std::FILE* stream);
  ~ProgressLine();  // ends the bar's line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `share` of the work in [0, 1]; `slug` is what was finished last.
  void update(std::size_t done, std::size_t all, double share, const std::string& slug);
  // Takes the bar away, so that something else may be printed; the next update draws it anew.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string verb_;
  std::FILE* stream_;
  bool terminal_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
  bool bar_open_ = false;
};

std::string duration_text(double seconds);  // "7 s", "3 min 20 s", "2 h 10 min"
std::string byte_text(double bytes);        // "812 B", "30.1 MB"

}  // namespace qkcts
