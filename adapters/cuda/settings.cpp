// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/settings.hpp"

#include <charconv>

namespace qkcts::cuda {

namespace {

std::int64_t number(const std::string& key, const std::string& value, std::int64_t most) {
  std::int64_t parsed = 0;
  const char* end = value.data() + value.size();
  const auto [last, error] = std::from_chars(value.data(), end, parsed);
  if (error != std::errc() || last != end || parsed < 0 || parsed > most)
    throw InvalidOption(key + "=" + value + ": a whole number from 0 to " + std::to_string(most) + " is wanted");
  return parsed;
}

InvalidOption not_one_of(const std::string& key, const std::string& value, const char* values) {
  return InvalidOption(key + "=" + value + ": one of " + values + " is wanted");
}

Path path_of(const std::string& value) {
  if (value == "auto") return Path::automatic;
  if (value == "plain") return Path::plain;
  if (value == "tensor") return Path::tensor;
  throw not_one_of("path", value, "auto, plain, tensor");
}

void set_unit(const std::string& value, ExecutorOptions& executor) {
  if (value == "v100") {
    executor.unit_products = 4;
    executor.unit_fraction = 23;
  } else if (value == "a100") {
    executor.unit_products = 8;
    executor.unit_fraction = 24;
  } else if (value == "h100") {
    executor.unit_products = 16;
    executor.unit_fraction = 25;
  } else {
    throw not_one_of("unit", value, "v100, a100, h100");
  }
}

Threads threads_of(const std::string& value) {
  if (value == "fibres") return Threads::fibres;
  if (value == "backwards") return Threads::fibres_backwards;
  if (value == "os") return Threads::os_threads;
  throw not_one_of("threads", value, "fibres, backwards, os");
}

Barrier barrier_of(const std::string& value) {
  std::string names;
  for (int i = 0; i < static_cast<int>(Barrier::count); ++i) {
    const auto barrier = static_cast<Barrier>(i);
    if (value == barrier_name(barrier)) return barrier;
    names += (i == 0 ? "" : ", ") + std::string(barrier_name(barrier));
  }
  throw not_one_of("drop", value, names.c_str());
}

// Of two words, is it the second?
bool is_second(const std::string& key, const std::string& value, const std::string& first, const std::string& second) {
  if (value != first && value != second) throw not_one_of(key, value, (first + ", " + second).c_str());
  return value == second;
}

bool set_executor(const std::string& key, const std::string& value, ExecutorOptions& executor) {
  if (key == "unit") {
    set_unit(value, executor);
  } else if (key == "threads") {
    executor.threads = threads_of(value);
  } else if (key == "drop") {
    executor.dropped = barrier_of(value);
  } else if (key == "zeros") {
    executor.unit_zeros_align = is_second(key, value, "ignored", "align");
  } else if (key == "subnormals") {
    executor.unit_subnormals_as_stored = is_second(key, value, "normalised", "stored");
  } else {
    return false;
  }
  return true;
}

void set(const std::string& key, const std::string& value, bool host, Settings& settings) {
  constexpr std::int64_t most_keys = std::int64_t{1} << 30, mebibyte = std::int64_t{1} << 20;
  if (key == "path") {
    settings.path = path_of(value);
  } else if (key == "split") {
    settings.split_keys = number(key, value, most_keys);
    if (settings.split_keys % 32 != 0) throw InvalidOption("split=" + value + ": a multiple of 32 is wanted");
  } else if (key == "memory") {
    settings.memory = number(key, value, mebibyte) * mebibyte;
  } else if (key == "device" && !host) {
    settings.device = static_cast<int>(number(key, value, 1023));
  } else if (!host || !set_executor(key, value, settings.executor)) {
    throw InvalidOption(
        key + ": there is no such option; " +
        (host ? "path, split, memory, unit, threads, drop, zeros, subnormals" : "path, split, memory, device") +
        " are known");
  }
}

}  // namespace

Settings settings_of(const std::string& options, bool host) {
  Settings settings;
  std::size_t begin = 0;
  while (begin < options.size()) {
    const std::size_t end = std::min(options.find(',', begin), options.size());
    const std::string option = options.substr(begin, end - begin);
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos) throw InvalidOption(option + ": key=value is wanted");
    set(option.substr(0, equals), option.substr(equals + 1), host, settings);
    begin = end + 1;
  }
  return settings;
}

}  // namespace qkcts::cuda
