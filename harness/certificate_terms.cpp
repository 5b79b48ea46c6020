// SPDX-License-Identifier: Apache-2.0
// What a certificate lays down before the run: the seed, the machine, the program; as JSON and back.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "conformance/digest.hpp"
#include "harness/adapter_digest.hpp"
#include "harness/certificate.hpp"
#include "harness/source_state.hpp"

namespace qkcts {
namespace {

void add_file(Sha256& digest, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> chunk(1U << 16U);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0)
    digest.update(std::as_bytes(std::span(chunk.data(), static_cast<std::size_t>(file.gcount()))));
}

std::string first_line_with(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key, 0) == 0) return line;
  return {};
}

std::string behind(std::string line, char sign) {
  const std::size_t at = line.find(sign);
  if (at == std::string::npos) return {};
  line.erase(0, at + 1);
  const std::size_t first = line.find_first_not_of(" \t\"");
  const std::size_t last = line.find_last_not_of(" \t\"\n");
  return first == std::string::npos ? std::string() : line.substr(first, last - first + 1);
}

std::vector<std::string> texts_from(const JsonAt& at) {
  return at.get<std::vector<std::string>>();
}

}  // namespace

std::uint64_t fresh_seed(const AdapterSpec& adapter, const std::string& nonce) {
  Sha256 digest;
  if (adapter.kind == AdapterKind::command) {
    const std::string text = adapter_digest(adapter);
    digest.update(std::as_bytes(std::span(text)));
  } else {
    add_file(digest, adapter.path);
  }
  digest.update(std::as_bytes(std::span(nonce)));
  const std::string hex = digest.finish();
  std::uint64_t seed = 0;
  std::from_chars(hex.data(), hex.data() + 16, seed, 16);
  return seed;
}

Json certified_machine_json() {
  std::string extensions = behind(first_line_with("/proc/cpuinfo", "flags"), ':');
  if (extensions.empty()) extensions = behind(first_line_with("/proc/cpuinfo", "Features"), ':');
  return {{"processor_extensions", extensions},
          {"distribution", behind(first_line_with("/etc/os-release", "PRETTY_NAME"), '=')},
          {"nvidia_driver", behind(first_line_with("/proc/driver/nvidia/version", "NVRM version"), ':')}};
}

Json certifying_suite_json(const std::string& version) {
  Sha256 program;
  add_file(program, "/proc/self/exe");
  return {{"version", version},      {"commit", source_commit()},
          {"tree", source_tree()},   {"changed_files", source_changes() < 0 ? Json() : Json(source_changes())},
          {"compiler", __VERSION__}, {"program_sha256", program.finish()}};
}

Json to_json(const CertificateTerms& terms) {
  Json corpora = Json::array();
  for (const CertifiedCorpus& corpus : terms.corpora)
    corpora.push_back({{"suite", corpus.suite}, {"cases", corpus.cases}, {"digest", corpus.digest}});
  return {
      {"corpora", std::move(corpora)},
      {"joined_digest", terms.joined_digest},
      {"declared_contracts", terms.contracts},
      {"declared_formats", terms.formats},
      {"profile", terms.profile},
      {"description", parse_json(terms.description, "describe()")},
      {"adapter", terms.adapter},
      {"adapter_sha256", terms.adapter_sha256},
      {"nonce", terms.nonce},
      {"nonce_given", terms.nonce_given},
      {"seed", std::to_string(terms.seed)},
      {"fresh_left_out", terms.fresh_left_out},
      {"repeat", terms.repeat},
      {"known_failures", terms.known_failures.empty() ? Json() : parse_json(terms.known_failures, "known failures")},
      {"machine", terms.machine},
      {"suite", terms.suite}};
}

CertificateTerms terms_from_json(const JsonAt& at) {
  CertificateTerms terms;
  for (const JsonAt& one : at["corpora"].items())
    terms.corpora.push_back({one["suite"].text(), one["digest"].text(), one["cases"].get<std::size_t>()});
  terms.joined_digest = at["joined_digest"].text();
  terms.contracts = texts_from(at["declared_contracts"]);
  terms.formats = texts_from(at["declared_formats"]);
  terms.profile = at["profile"].text();
  terms.description = canonical_text(at["description"].json());
  terms.adapter = at["adapter"].text();
  terms.adapter_sha256 = at["adapter_sha256"].text();
  terms.nonce = at["nonce"].text();
  terms.nonce_given = at["nonce_given"].get<bool>();
  const std::string seed = at["seed"].text();
  std::from_chars(seed.data(), seed.data() + seed.size(), terms.seed);
  terms.fresh_left_out = texts_from(at["fresh_left_out"]);
  terms.repeat = at["repeat"].get<int>();
  if (!at["known_failures"].is_null()) terms.known_failures = canonical_text(at["known_failures"].json());
  terms.machine = at["machine"].json();
  terms.suite = at["suite"].json();
  return terms;
}

}  // namespace qkcts
