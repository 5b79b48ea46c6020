// SPDX-License-Identifier: Apache-2.0
#include "harness/file_kind.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "conformance/contract.hpp"
#include "harness/exchange_schema.hpp"
#include "vectors/schema.hpp"

namespace qkcts {
namespace {

// JSON has its members in the order of their names, so "schema" stands near the end of most.
constexpr std::streamoff seen_bytes = 1 << 20;

constexpr std::string_view hdf5 = "\x89HDF\r\n\x1a\n", elf =
                                                           "\x7f"
                                                           "ELF";

struct KindMark {
  FileKind kind;
  std::string_view start, mark;  // begins with the one and holds the other
};

constexpr std::array marks = {
    // Also where its first line was cut off: no more is asked than how it begins.
    KindMark{FileKind::journal, "{\"adapter\":{\"description\":", ""},
    KindMark{FileKind::corpus, hdf5, schema::format_name},
    KindMark{FileKind::requests, hdf5, exchange::requests_format},
    KindMark{FileKind::results, hdf5, exchange::results_format},
    KindMark{FileKind::library, elf, ""},
    KindMark{FileKind::archive, "\x28\xb5\x2f\xfd", ""},
    KindMark{FileKind::run, "{", "\"qkcts-run/1\""},
    KindMark{FileKind::baseline, "{", "\"qkcts-baseline/1\""},
    KindMark{FileKind::certificate, "{", "\"qkcts-certificate/1\""},
    KindMark{FileKind::bench, "{", "\"qkcts-bench/1\""},
    KindMark{FileKind::bench, "suite ", "\nadapter "},
    KindMark{FileKind::adequacy, "{", "\"qkcts-adequacy/1\""},
    KindMark{FileKind::adequacy, "{", "\"qkcts-peer-study/1\""},
    KindMark{FileKind::adequacy, "{", "\"qkcts-diagnosis-study/1\""},
    // Behind the others: a run.json holds the contracts of its cases.
    KindMark{FileKind::contract, "{", "\"qkcts-contract/1\""},
    KindMark{FileKind::adequacy, "| corpus | cases | digest |\n", ""},
    KindMark{FileKind::adequacy, "mutant,clause,", ""},
    KindMark{FileKind::adequacy, "kernel,clause,valid,", ""},
    KindMark{FileKind::adequacy, "", "\nclauses that no case separates: "},
    KindMark{FileKind::adequacy, "", "\nrules of             format"},
    KindMark{FileKind::adequacy, "", "\nright kernels: "},
    KindMark{FileKind::adequacy, "right kernels: ", ""},
    KindMark{FileKind::page, "<!DOCTYPE html>", ": conformance report</title>"},
    KindMark{FileKind::markdown, "# ", "\n## By stage\n"},
    KindMark{FileKind::markdown, "# ", "qkcts certify "},
    KindMark{FileKind::junit, "<?xml ", "<testsuites "},
    KindMark{FileKind::ctrf, "{", "\"reportFormat\": \"CTRF\""},
    KindMark{FileKind::code_quality, "[", "\"check_name\": \"qkcts."},
    KindMark{FileKind::code_quality, "[]\n", ""},
    KindMark{FileKind::drawing, "<svg ", "aria-label=\"Separation of contracts "},
};

// The first and the last bytes of a regular file; nothing if there are none to be read.
std::optional<std::string> ends_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;  // opening a pipe would wait
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return std::nullopt;
  const auto take = [&file](std::streamoff from, std::streamoff count) {
    std::string text(static_cast<std::size_t>(count), '\0');
    file.seekg(from);
    file.read(text.data(), count);
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return text;
  };
  const auto length = static_cast<std::streamoff>(size);
  if (length <= 2 * seen_bytes) return take(0, length);
  return take(0, seen_bytes) + take(length - seen_bytes, seen_bytes);
}

}  // namespace

std::string_view kind_name(FileKind kind) {
  switch (kind) {
    case FileKind::corpus:
      return "a corpus of golden vectors";
    case FileKind::requests:
      return "a file of requests, as `qkcts export` writes it";
    case FileKind::results:
      return "a file of results, as `qkcts answer` writes it";
    case FileKind::library:
      return "a shared library or a program";
    case FileKind::contract:
      return "a contract";
    case FileKind::run:
      return "a run.json, as `qkcts run -o` and `check -o` write it";
    case FileKind::baseline:
      return "a baseline, as `qkcts baseline update` writes it";
    case FileKind::certificate:
      return "a certificate";
    case FileKind::archive:
      return "an archive, compressed by zstd";
    case FileKind::bench:
      return "what `qkcts bench` writes";
    case FileKind::adequacy:
      return "what `qkcts adequacy` writes";
    case FileKind::page:
      return "the page of a run";
    case FileKind::markdown:
      return "the Markdown report of a run";
    case FileKind::junit:
      return "a JUnit report";
    case FileKind::ctrf:
      return "a CTRF report";
    case FileKind::code_quality:
      return "a Code Quality report of qkcts";
    case FileKind::drawing:
      return "what `qkcts inspect --svg` draws";
    case FileKind::journal:
      return "the journal of a run, as `qkcts run -o` writes it";
  }
  return {};
}

std::optional<FileKind> file_kind(const std::string& path) {
  const std::optional<std::string> ends = ends_of(path);
  if (!ends) return std::nullopt;
  std::string_view text = *ends;
  if (const std::size_t brace = text.find_first_not_of(" \t\r\n"); brace < text.size() && text[brace] == '{')
    text.remove_prefix(brace);
  const auto found = std::find_if(marks.begin(), marks.end(), [&](const KindMark& mark) {
    return text.starts_with(mark.start) && text.find(mark.mark) != std::string_view::npos;
  });
  if (found == marks.end()) return std::nullopt;
  return found->kind;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

void require_kind(const std::string& path, FileKind wanted) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const std::string inner = (std::filesystem::path(path) / "run.json").string();
    const bool is_report = wanted == FileKind::run && std::filesystem::exists(inner, error);
    throw InputError(fmt::format("{}: is a folder; wanted is {}{}", path, kind_name(wanted),
                                 is_report ? fmt::format(": {}", inner) : std::string()));
  }
  const std::optional<FileKind> kind = file_kind(path);
  if (kind && *kind != wanted)
    throw InputError(fmt::format("{}: is {}; wanted is {}", path, kind_name(*kind), kind_name(wanted)));
}

}  // namespace qkcts
