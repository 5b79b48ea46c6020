// SPDX-License-Identifier: Apache-2.0
#include "vectors/untrusted_file.hpp"

#include <exception>
#include <filesystem>
#include <new>

#include <fmt/format.h>

#include "vectors/corpus_reader.hpp"
#include "vectors/limited_child.hpp"

namespace qkcts {
namespace {

// Empty if the file is good.
std::string fault_of(const std::string& path) {
  try {
    const CorpusReader reader(path);
    for (const std::string& slug : reader.slugs()) static_cast<void>(reader.read(slug));
  } catch (const InputError& error) {
    return error.what();
  } catch (const std::bad_alloc&) {
    return path + ": needs more memory than a corpus may";
  }
  return {};
}

std::uint64_t time_for(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return 20 + (error ? 0 : bytes >> 21U);  // and a second for every 2 MiB: thirty times what reading takes
}

}  // namespace

void check_untrusted_corpus(const std::string& path, const UntrustedLimits& limits) {
  const std::uint64_t seconds = time_for(path);
  const ChildOutcome outcome = run_in_limited_child(
      [&path] { return fault_of(path); },
      {limits.memory_bytes, limits.cpu_seconds != 0 ? limits.cpu_seconds : seconds,
       limits.wall_seconds != 0 ? limits.wall_seconds : 600 + 20 * seconds});  // the machine may be busy
  switch (outcome.end) {
    case ChildEnd::returned:
      if (!outcome.message.empty()) throw InputError(outcome.message);
      return;
    case ChildEnd::out_of_time:
      throw InputError(fmt::format("{}: reading it did not end in time; the file is damaged or hostile", path));
    case ChildEnd::crashed:
      throw InputError(fmt::format("{}: reading it crashed; the file is damaged or hostile", path));
  }
}

}  // namespace qkcts
