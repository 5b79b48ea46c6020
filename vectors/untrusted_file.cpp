// SPDX-License-Identifier: Apache-2.0
#include "vectors/untrusted_file.hpp"

#include <charconv>
#include <exception>
#include <filesystem>
#include <new>

#include <fmt/format.h>

#include "vectors/corpus_master.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/limited_child.hpp"

namespace qkcts {
namespace {

// In place of a fault: the file is a good master so far, of files of that many bytes.
constexpr std::string_view master_mark = "\nmaster of ";

std::uint64_t bytes_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return error ? 0 : bytes;
}

std::uint64_t bytes_of_shards(const CorpusInfo& info) {
  std::uint64_t bytes = 0;
  for (const std::string& name : info.shards) bytes += bytes_of(shard_path(info.path, name, info.path));
  return bytes;
}

// Empty if the file is good.
std::string fault_of(const std::string& path, bool with_shards) {
  try {
    const CorpusReader reader(path);
    if (!reader.info().shards.empty() && !with_shards)
      return fmt::format("{}{}", master_mark, bytes_of_shards(reader.info()));
    for (const std::string& slug : reader.slugs()) static_cast<void>(reader.read(slug));
  } catch (const InputError& error) {
    return error.what();
  } catch (const std::bad_alloc&) {
    return path + ": needs more memory than a corpus may";
  }
  return {};
}

// Twenty seconds, and one for every 2 MiB: thirty times what reading takes.
std::string look(const std::string& path, bool with_shards, std::uint64_t bytes, const UntrustedLimits& limits) {
  const std::uint64_t seconds = 20 + (bytes >> 21U);
  ChildOutcome outcome =
      run_in_limited_child([&] { return fault_of(path, with_shards); },
                           {limits.memory_bytes, limits.cpu_seconds != 0 ? limits.cpu_seconds : seconds,
                            limits.wall_seconds != 0 ? limits.wall_seconds : 600 + 20 * seconds});  // it may be busy
  switch (outcome.end) {
    case ChildEnd::returned:
      break;
    case ChildEnd::out_of_time:
      throw InputError(fmt::format("{}: reading it did not end in time; the file is damaged or hostile", path));
    case ChildEnd::crashed:
      throw InputError(fmt::format("{}: reading it crashed; the file is damaged or hostile", path));
  }
  return std::move(outcome.message);
}

}  // namespace

void check_untrusted_corpus(const std::string& path, const UntrustedLimits& limits) {
  std::string fault = look(path, false, bytes_of(path), limits);
  // A master is small, and its time is that of the files beside it: a second child has it.
  if (fault.compare(0, master_mark.size(), master_mark) == 0) {
    std::uint64_t bytes = 0;
    std::from_chars(fault.data() + master_mark.size(), fault.data() + fault.size(), bytes);
    fault = look(path, true, bytes, limits);
  }
  if (!fault.empty()) throw InputError(fault);
}

}  // namespace qkcts
