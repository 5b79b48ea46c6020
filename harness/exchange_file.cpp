// SPDX-License-Identifier: Apache-2.0
#include "harness/exchange_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "harness/exchange_schema.hpp"
#include "vectors/case_digest.hpp"
#include "vectors/limited_child.hpp"
#include "vectors/schema.hpp"
#include "vectors/slug.hpp"

namespace qkcts {
namespace {

void find_marked(const Hdf5Input& file, const char* mark, const std::string& slug, int depth,
                 std::vector<std::string>& found) {
  const std::string group = slug.empty() ? schema::cases : fmt::format("{}/{}", schema::cases, slug);
  const auto refuse = [&file](const std::string& object, std::string_view reason) {
    throw InputError(fmt::format("{}: /{}: {}", file.path(), object, reason));
  };
  if (!slug.empty() && file.has_attribute(group, mark)) {
    if (found.size() >= schema::most_cases) refuse(schema::cases, "holds too many cases");
    found.push_back(slug);
    return;
  }
  if (depth >= schema::deepest_slug) refuse(group, fmt::format("is no case: it has no attribute {}", mark));
  for (const StoredMember& member : file.members(group)) {
    const std::string inner = slug.empty() ? member.name : slug + "/" + member.name;
    if (!member.is_group || !is_slug(inner))
      refuse(fmt::format("{}/{}", schema::cases, inner), fmt::format("is no case: it has no attribute {}", mark));
    find_marked(file, mark, inner, depth + 1, found);
  }
}

}  // namespace

std::string request_digest(const Case& c) {
  Sha256 hash;
  hash.update_field("qkcts-request 1");
  hash.update_field(contract_digest(c.contract));
  hash.update_field(parameters(c.inputs.format).name);
  const qkcts_shape& s = c.shape;
  for (const std::int64_t extent : {s.batch, s.q_heads, s.kv_heads, s.q_len, s.k_len, s.head_dim, s.v_head_dim})
    hash.update_number(static_cast<std::uint64_t>(extent));
  for (std::size_t i = 0; i < input_count; ++i)
    if (c.inputs.tensors[i]) add_tensor(hash, input_name(static_cast<Input>(i)), *c.inputs.tensors[i]);
  return hash.finish();
}

void write_exchange_head(Hdf5Output& file, std::string_view format) {
  file.write_text("", schema::attribute::format, format);
  file.write_numbers("", schema::attribute::format_version, StoredType::uint32,
                     std::as_bytes(std::span(&exchange::version, 1)));
}

void require_exchange_head(const Hdf5Input& file, std::string_view format) {
  const std::string found =
      file.has_attribute("", schema::attribute::format) ? file.read_text("", schema::attribute::format) : std::string();
  if (found != format)
    throw InputError(fmt::format("{}: is {}, must be {}", file.path(),
                                 found.empty() ? "HDF5 without the attribute format" : found, format));
  const std::vector<std::byte> bytes = file.read_numbers("", schema::attribute::format_version, StoredType::uint32, 1);
  std::uint32_t version = 0;
  std::memcpy(&version, bytes.data(), sizeof version);
  if (version != exchange::version)
    throw InputError(fmt::format("{}: has format version {}, this program reads version {}", file.path(), version,
                                 exchange::version));
}

void GroupMaker::make(const std::string& group) {
  if (group.empty() || !made_.insert(group).second) return;
  const std::size_t slash = group.rfind('/');
  if (slash != std::string::npos) make(group.substr(0, slash));
  file_.create_group(group);
}

std::vector<std::string> marked_slugs(const Hdf5Input& file, const char* mark) {
  std::vector<std::string> found;
  find_marked(file, mark, "", 0, found);
  std::sort(found.begin(), found.end());
  return found;
}

void look_in_child(const std::string& path, const std::function<void()>& read_all) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) throw InputError(fmt::format("{}: cannot be opened: {}", path, error.message()));
  const std::uint64_t seconds = 20 + (bytes >> 21U);  // as for a corpus: thirty times what reading takes
  const auto work = [&read_all] {
    try {
      read_all();
    } catch (const InputError&) {
    }
    return std::string();
  };
  const ChildEnd end = run_in_limited_child(work, {std::uint64_t{4} << 30, seconds, 600 + 20 * seconds}).end;
  if (end == ChildEnd::out_of_time)
    throw InputError(fmt::format("{}: reading it did not end in time; the file is damaged or hostile", path));
  if (end == ChildEnd::crashed)
    throw InputError(fmt::format("{}: reading it crashed; the file is damaged or hostile", path));
}

}  // namespace qkcts
