// SPDX-License-Identifier: Apache-2.0
#include "vectors/sample_golden.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "vectors/corpus_writer.hpp"

namespace qkcts {

PlannedCase sample_plan(const std::string& contract, const std::string& family, Format format,
                        const std::string& shape) {
  PlannedCase planned;
  planned.contract = shipped_contract(contract);
  planned.family = family;
  planned.format = format;
  planned.shape = shape_from_text(shape);
  planned.slug = case_slug(planned.contract, family, format, planned.shape, 0);
  planned.seed = case_seed(1, planned.slug);
  return planned;
}

GoldenCase sample_golden(const std::string& contract, const std::string& family, Format format,
                         const std::string& shape) {
  std::vector<DroppedProfile> dropped;
  return make_golden(sample_plan(contract, family, format, shape), dropped);
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "qkcts_vectors_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::size_t TemporaryFolder::file_count() const {
  const std::filesystem::directory_iterator files(path_);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

std::string file_bytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!stream.flush()) throw std::runtime_error("cannot write " + path);
}

std::string write_corpus(const TemporaryFolder& folder, const std::string& name, std::vector<GoldenCase> cases) {
  const std::string path = folder.file(name);
  CorpusWriter writer(path, {"test", "test generator", 7});
  for (GoldenCase& golden : cases) writer.add(golden);
  writer.finish();
  return path;
}

}  // namespace qkcts
