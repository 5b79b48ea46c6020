// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "harness/adapter_error.hpp"
#include "harness/adapter_runner.hpp"
#include "harness/command_words.hpp"
#include "harness/file_kind.hpp"
#include "harness/wrong_contract.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 6> bundled_names = {"scalar", "avx2", "cuda", "cuda_host", "mutants", "template"};

// Where the library of a bundled adapter stands, or an empty path.
fs::path bundled_library(const std::string& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const std::string file = fmt::format("libqkcts_{}.so", name);
  for (const char* folder : {"../lib/qkcts", "../lib", "."}) {
    fs::path candidate = (program.parent_path() / folder / file).lexically_normal();
    if (fs::is_regular_file(candidate, error)) return candidate;
  }
  return {};
}

constexpr std::array<std::string_view, 3> kind_names = {"library", "command", "results"};

}  // namespace

std::string_view adapter_kind_name(AdapterKind kind) {
  return kind_names[static_cast<std::size_t>(kind)];
}

std::optional<AdapterKind> adapter_kind_named(std::string_view name) {
  const auto found = std::find(kind_names.begin(), kind_names.end(), name);
  if (found == kind_names.end()) return std::nullopt;
  return static_cast<AdapterKind>(found - kind_names.begin());
}

std::vector<std::string> bundled_adapters() {
  std::vector<std::string> found;
  for (const char* name : bundled_names) {
    if (!bundled_library(name).empty()) found.emplace_back(name);
  }
  return found;
}

bool is_bundled_adapter(const std::string& name) {
  return std::find(bundled_names.begin(), bundled_names.end(), name) != bundled_names.end();
}

AdapterSpec resolve_adapter(const std::string& given) {
  AdapterSpec spec;
  spec.given = given;
  constexpr std::string_view command_mark = "cmd:";
  if (given.compare(0, command_mark.size(), command_mark) == 0) {
    spec.kind = AdapterKind::command;
    spec.options = given.substr(command_mark.size());
    spec.path = program_path(command_words(spec.options, given).front(), given);
    return spec;
  }
  const std::size_t mark = given.find('?');
  const std::string target = given.substr(0, mark);
  if (mark != std::string::npos) spec.options = given.substr(mark + 1);
  if (is_bundled_adapter(target)) {
    spec.path = bundled_library(target).string();
    if (spec.path.empty()) {
      throw AdapterError(fmt::format("{}: this bundled adapter was not built; there are: {}", target,
                                     fmt::join(bundled_adapters(), ", ")));
    }
    if (target == "mutants") choose_mutant(spec);
    return spec;
  }
  std::error_code error;
  if (!fs::is_regular_file(target, error)) {
    throw AdapterError(fmt::format(
        "{}: no such file, and no bundled adapter ({}); a library is given by its path, a command as cmd:PROGRAM ...",
        target, fmt::join(bundled_names, ", ")));
  }
  if (const std::optional<FileKind> kind = file_kind(target); kind != FileKind::library)
    throw AdapterError(fmt::format(
        "{}: is {} and no adapter, which is a shared library, one of {}, or a command as 'cmd:python3 {}'", target,
        kind ? kind_name(*kind) : "no shared library", fmt::join(bundled_names, ", "), kind ? "mine.py" : target));
  spec.path = fs::absolute(target).lexically_normal().string();  // so that dlopen does not search for it
  return spec;
}

}  // namespace qkcts
