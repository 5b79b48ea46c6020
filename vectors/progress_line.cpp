// SPDX-License-Identifier: Apache-2.0
#include "vectors/progress_line.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace qkcts {
namespace {

constexpr double bar_interval = 0.1, line_interval = 5;  // seconds
constexpr std::size_t bar_width = 20, line_width = 79;

}  // namespace

ProgressLine::ProgressLine(std::string verb, std::FILE* stream)
    : verb_(std::move(verb)), stream_(stream), terminal_(::isatty(::fileno(stream)) != 0) {}

ProgressLine::~ProgressLine() {
  if (bar_open_) std::fputc('\n', stream_);
}

void ProgressLine::update(std::size_t done, std::size_t all, double share, const std::string& slug) {
  const Clock::time_point now = Clock::now();
  const double since = std::chrono::duration<double>(now - shown_).count();
  if (since < (terminal_ ? bar_interval : line_interval) && !(terminal_ && done == all)) return;
  shown_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = share > 0 ? elapsed * (1 - share) / share : 0;
  const std::string rate = fmt::format("{:.1f} cases/s", static_cast<double>(done) / std::max(elapsed, 1e-3));
  std::string line;
  if (terminal_) {
    const auto filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(bar_width));
    line = fmt::format("{} [{}{}] {}/{} {}, {} left ", verb_, std::string(filled, '#'),
                       std::string(bar_width - filled, '.'), done, all, rate, duration_text(left));
    line += slug;
    line.resize(line_width, ' ');
    fmt::print(stream_, "\r{}", line);
    bar_open_ = true;
  } else {
    fmt::print(stream_, "{} {} of {} cases, {}, about {} left\n", verb_, done, all, rate, duration_text(left));
  }
  std::fflush(stream_);
}

void ProgressLine::clear() {
  if (!bar_open_) return;
  fmt::print(stream_, "\r{:{}}\r", "", line_width);
  std::fflush(stream_);
  bar_open_ = false;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(std::llround(std::min(seconds, 1e12)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string byte_text(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes / 1e3);
  if (bytes < 1e9) return fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.1f} GB", bytes / 1e9);
}

}  // namespace qkcts
