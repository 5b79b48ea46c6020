// SPDX-License-Identifier: Apache-2.0
#include "vectors/sample_golden.hpp"

#include <unistd.h>

#include <bit>
#include <cmath>
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

GoldenCase without_separation(GoldenCase golden) {
  golden.jacobian.reset();
  golden.separation = {};
  return golden;
}

GoldenCase golden_with_excluded_keys(Format format) {
  GoldenCase golden = without_separation(sample_golden("clause_kv_lengths", "padded", format, "2,2,1,3,4,8,6"));
  Case& c = golden.input;
  c.contract.terms.softmax.hidden_values = QKCTS_HIDDEN_EXCLUDED;
  c.contract.name = "excluded";
  const FormatParameters& p = parameters(format);
  const std::uint64_t infinity = encode(format, HUGE_VAL), sign = std::uint64_t{1} << static_cast<unsigned>(p.bits - 1);
  const std::uint64_t quiet = std::uint64_t{1} << static_cast<unsigned>(p.precision - 2);
  const std::uint64_t patterns[] = {infinity | quiet, infinity | 1,         sign | infinity | 2, sign | infinity,
                                    infinity,         infinity | quiet | 3, sign | (sign - 1),   infinity - 1};
  for (const Input input : {Input::k, Input::v}) {
    Tensor& tensor = *c.inputs.tensors[static_cast<std::size_t>(input)];
    const auto lanes = static_cast<std::size_t>(tensor.shape[3]);
    for (std::size_t d = 0; d < lanes; ++d) tensor.set_pattern(3 * lanes + d, patterns[d]);
  }
  ProvenStage& k_norm = golden.stages[QKCTS_STAGE_K_NORM].values;
  for (std::size_t i = 3 * 8; i < 4 * 8; ++i) {
    k_norm.rule[i] = ElementRule::hidden;
    k_norm.expected[i] = infinity | quiet;
    k_norm.hi[i] = std::bit_cast<double>(std::uint64_t{0x7ff8000000000000});
    k_norm.lo[i] = 0;
  }
  return golden;
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
  std::string path = folder.file(name);
  CorpusWriter writer(path, {"test", "test generator", 7});
  for (GoldenCase& golden : cases) writer.add(golden);
  writer.finish();
  return path;
}

}  // namespace qkcts
