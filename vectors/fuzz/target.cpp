// SPDX-License-Identifier: Apache-2.0
#include "vectors/fuzz/target.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "conformance/contract.hpp"
#include "conformance/file.hpp"
#include "conformance/machine_profile.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/plan.hpp"

namespace qkcts::fuzz {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

// A file with these bytes, for as long as it lives. (HDF5 refuses one that exists in memory alone: it has no name.)
class NamedFile {
 public:
  explicit NamedFile(std::string_view bytes) : path_(std::filesystem::temp_directory_path() / "qkcts_fuzz_XXXXXX") {
    const int descriptor = mkstemp(path_.data());
    require(descriptor >= 0, "cannot make a temporary file");
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor, bytes.data(), bytes.size());
      require(written > 0, "cannot write to a temporary file");
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    close(descriptor);
  }
  ~NamedFile() { unlink(path_.c_str()); }
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void read_corpus(std::string_view bytes) {
  const NamedFile file(bytes);
  const CorpusReader reader(file.path(), CorpusKind::single);
  for (const std::string& slug : reader.slugs()) {
    static_cast<void>(reader.outline(slug));
    const GoldenCase golden = reader.read(slug);
    require(golden.input.slug == slug, "a case has another name than it was asked for");
  }
}

void read_contract(std::string_view bytes) {
  const std::string once = canonical_json(contract_from_json(bytes, "contract"));
  require(canonical_json(contract_from_json(once, "canonical")) == once, "a contract changes when it is read again");
}

void read_plan(std::string_view bytes) {
  const Plan plan = plan_from_json(bytes, "plan");
  const Plan again = plan_from_json(bytes, "plan");
  require(plan.cases.size() == again.cases.size(), "a plan is not always the same");
}

void read_profile(std::string_view bytes) {
  static_cast<void>(profile_from_json(bytes, "profile"));
  const std::string once = canonical_profile(bytes, "profile");
  require(canonical_profile(once, "canonical") == once, "a profile changes when it is read again");
}

template <void (*read)(std::string_view)>
std::string refusal_of(std::string_view bytes) {
  try {
    read(bytes);
  } catch (const InputError& error) {
    require(*error.what() != '\0', "an error without a word");
    return error.what();
  }
  return {};
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> all = {{"corpus", refusal_of<read_corpus>},
                                          {"contract", refusal_of<read_contract>},
                                          {"plan", refusal_of<read_plan>},
                                          {"profile", refusal_of<read_profile>}};
  return all;
}

const Target& target(std::string_view name) {
  for (const Target& known : targets())
    if (known.name == name) return known;
  throw std::logic_error("there is no such fuzz target");
}

}  // namespace qkcts::fuzz
