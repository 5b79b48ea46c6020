// SPDX-License-Identifier: Apache-2.0
#include "vectors/corpus_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "vectors/case_digest.hpp"
#include "vectors/format_version.hpp"
#include "vectors/hdf5_file.hpp"
#include "vectors/layout.hpp"
#include "vectors/schema.hpp"
#include "vectors/slug.hpp"

namespace qkcts {
namespace {

namespace attribute = schema::attribute;

template <class T>
std::vector<T> as_array(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

std::vector<std::uint64_t> widened(const std::vector<std::byte>& bytes, std::size_t size) {
  std::vector<std::uint64_t> patterns(bytes.size() / size, 0);
  for (std::size_t i = 0; i < patterns.size(); ++i) std::memcpy(&patterns[i], bytes.data() + i * size, size);
  return patterns;
}

// Hidden keys have scores that nobody looks at, and where their numbers may be anything, rows too.
bool may_hold_hidden_elements(qkcts_stage stage, const qkcts_contract& terms) {
  const bool of_scores = stage == QKCTS_STAGE_SCORES || stage == QKCTS_STAGE_CAPPED || stage == QKCTS_STAGE_MASKED;
  return of_scores || (is_of_keys(stage) && terms.softmax.hidden_values == QKCTS_HIDDEN_EXCLUDED);
}

// Reads one case; counts the bytes that it asks for against the limit of a case.
class CaseReading {
 public:
  CaseReading(const Hdf5Input& file, std::string group) : file_(file), group_(std::move(group)) {}

  [[noreturn]] void refuse(const std::string& object, std::string_view reason) const {
    throw InputError(fmt::format("{}: /{}: {}", file_.path(), object, reason));
  }

  // The names found: all of the required ones and some of the optional ones.
  std::vector<std::string> expect_members(const std::string& group, const std::vector<std::string>& required,
                                          const std::vector<std::string>& optional = {}) {
    std::vector<std::string> found;
    for (const StoredMember& member : file_.members(group)) {
      const auto is = [&member](const std::string& name) { return name == member.name; };
      if (std::none_of(required.begin(), required.end(), is) && std::none_of(optional.begin(), optional.end(), is))
        refuse(fmt::format("{}/{}", group, member.name), "does not belong there");
      found.push_back(member.name);
    }
    for (const std::string& name : required)
      if (std::find(found.begin(), found.end(), name) == found.end())
        refuse(fmt::format("{}/{}", group, name), "is missing");
    return found;
  }

  std::vector<std::byte> dataset(const std::string& name, StoredType type, const std::vector<std::uint64_t>& extents) {
    const StoredDataset stored = file_.describe(name);
    if (stored.type != type) refuse(name, "has another element type than the contract and format say");
    if (stored.extents != extents) refuse(name, "has another shape than the contract says");
    return take(name, stored.bytes);
  }

  Tensor input(const InputRequirement& need, const qkcts_shape& shape);
  GoldenStage stage(qkcts_stage stage, const Case& c, std::size_t profiles);
  qkcts_shape shape() const;
  Range range(const char* name) const;
  Format format() const;

  const Hdf5Input& file() const { return file_; }
  const std::string& group() const { return group_; }

 private:
  std::vector<std::byte> take(const std::string& name, std::uint64_t bytes) {
    if (bytes > schema::largest_case_bytes - taken_) refuse(name, "makes the case larger than 512 MiB");
    taken_ += bytes;
    return file_.read(name);
  }
  std::vector<std::uint32_t> all_rows(const std::string& group, qkcts_stage stage, const qkcts_shape& shape) const;
  std::vector<std::uint32_t> some_rows(const std::string& group, qkcts_stage stage, const qkcts_shape& shape);
  void check_values(const std::string& group, qkcts_stage stage, const Case& c, const GoldenStage& golden) const;

  const Hdf5Input& file_;
  std::string group_;
  std::uint64_t taken_ = 0;
};

qkcts_shape CaseReading::shape() const {
  const auto s = as_array<std::int64_t>(file_.read_numbers(group_, attribute::shape, StoredType::int64, 7));
  return {s[0], s[1], s[2], s[3], s[4], s[5], s[6]};
}

Range CaseReading::range(const char* name) const {
  const auto values = as_array<double>(file_.read_numbers(group_, name, StoredType::binary64, 3));
  return {values[0], values[1], values[2]};
}

Format CaseReading::format() const {
  const std::string name = file_.read_text(group_, attribute::format);
  const std::optional<Format> format = storage_format_named(name);
  if (!format) refuse(group_, "attribute format names no storage format");
  return *format;
}

Tensor CaseReading::input(const InputRequirement& need, const qkcts_shape& shape) {
  const std::string name = fmt::format("{}/{}/{}", group_, schema::inputs, input_name(need.input));
  const StoredDataset stored = file_.describe(name);
  if (stored.type != stored_type(need.type)) refuse(name, "has another element type than the contract and format say");
  bool fits = stored.extents.size() == need.shape.size();
  for (std::size_t axis = 0; fits && axis < need.shape.size(); ++axis) {
    const auto extent = static_cast<std::int64_t>(stored.extents[axis]);
    if (need.shape[axis] >= 0) fits = extent == need.shape[axis];
    if (need.shape[axis] == -1) fits = extent == 1 || extent == (axis == 0 ? shape.batch : shape.q_heads);
  }
  if (!fits) refuse(name, "has another shape than the contract says");
  Tensor tensor{need.type, {stored.extents.begin(), stored.extents.end()}, take(name, stored.bytes)};
  return tensor;
}

std::vector<std::uint32_t> CaseReading::all_rows(const std::string& group, qkcts_stage stage,
                                                 const qkcts_shape& shape) const {
  const auto all = static_cast<std::uint64_t>(row_count(stage, shape));
  if (all > schema::largest_case_bytes / 16) refuse(group, "has too many rows");
  std::vector<std::uint32_t> rows(all);
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

std::vector<std::uint32_t> CaseReading::some_rows(const std::string& group, qkcts_stage stage,
                                                  const qkcts_shape& shape) {
  const auto all = static_cast<std::uint64_t>(row_count(stage, shape));
  const std::string name = group + "/" + schema::rows;
  if (stage == QKCTS_STAGE_LSE || stage == QKCTS_STAGE_OUTPUT) refuse(name, "must be absent: every row is stored");
  const StoredDataset stored = file_.describe(name);
  if (stored.extents.size() != 1 || stored.extents[0] >= all) refuse(name, "does not select some of the rows");
  auto rows = as_array<std::uint32_t>(dataset(name, StoredType::uint32, stored.extents));
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] >= all || (i != 0 && rows[i] <= rows[i - 1])) refuse(name, "is no ascending list of rows");
  return rows;
}

void CaseReading::check_values(const std::string& group, qkcts_stage stage, const Case& c,
                               const GoldenStage& golden) const {
  const bool may_hide = may_hold_hidden_elements(stage, c.contract.terms);
  for (const ElementRule rule : golden.values.rule) {
    if (rule > ElementRule::hidden) refuse(group + "/" + schema::rule, "holds an unknown rule");
    if (rule == ElementRule::hidden && !may_hide)
      refuse(group + "/" + schema::rule, "calls an element hidden in a stage that hides nothing");
  }
  for (const StageBudget& budget : golden.budgets)
    for (std::size_t i = 0; i < budget.delta.size(); ++i) {
      if (budget.trust[i] > Trust::domain) refuse(group + "/" + schema::trust, "holds an unknown trust");
      if (!(budget.delta[i] >= 0)) refuse(group + "/" + schema::budget, "holds a negative number or NaN");
      if (std::isinf(budget.delta[i]) && budget.trust[i] == Trust::judged)
        refuse(group + "/" + schema::budget, "is infinite for an element that is judged");
    }
}

GoldenStage CaseReading::stage(qkcts_stage stage, const Case& c, std::size_t profiles) {
  const std::string group = fmt::format("{}/{}/{}", group_, schema::stages, stage_name(stage));
  const std::string name = group + "/";
  const std::vector<std::string> members =
      expect_members(group, {schema::expected, schema::value_hi, schema::value_lo, schema::budget},
                     {schema::rows, schema::rule, schema::trust});
  const auto has = [&members](const char* member) {
    return std::find(members.begin(), members.end(), member) != members.end();
  };
  GoldenStage golden;
  golden.present = true;
  ProvenStage& values = golden.values;
  values.rows = has(schema::rows) ? some_rows(group, stage, c.shape) : all_rows(group, stage, c.shape);
  const StageLayout layout = stage_layout(stage, c.shape, values.rows.size());
  const StageLayout profiled = per_profile(layout, profiles);
  const ElementType type = element_type(stage_format(stage, c.inputs.format));
  values.expected = widened(dataset(name + schema::expected, stored_type(type), layout.extents), element_size(type));
  values.hi = as_array<double>(dataset(name + schema::value_hi, StoredType::binary64, layout.extents));
  values.lo = as_array<std::int16_t>(dataset(name + schema::value_lo, StoredType::int16, layout.extents));
  const std::size_t count = values.expected.size();
  values.rule.assign(count, ElementRule::budget);
  if (has(schema::rule))
    values.rule = as_array<ElementRule>(dataset(name + schema::rule, StoredType::uint8, layout.extents));
  const auto budgets = as_array<float>(dataset(name + schema::budget, StoredType::binary32, profiled.extents));
  std::vector<Trust> trust(count * profiles, Trust::judged);
  if (has(schema::trust)) trust = as_array<Trust>(dataset(name + schema::trust, StoredType::uint8, profiled.extents));
  for (std::size_t profile = 0; profile < profiles; ++profile) {
    const auto first = static_cast<std::ptrdiff_t>(profile * count);
    const auto last = first + static_cast<std::ptrdiff_t>(count);
    golden.budgets.push_back(
        {{budgets.begin() + first, budgets.begin() + last}, {trust.begin() + first, trust.begin() + last}});
  }
  check_values(group, stage, c, golden);
  return golden;
}

}  // namespace

struct CorpusReader::State {
  explicit State(const std::string& path) : file(path) {}

  Hdf5Input file;
  CorpusInfo info;
  std::map<std::string, Contract> contracts;
  OwnProfiles own_profiles;
  std::vector<std::string> slugs;

  [[noreturn]] void refuse(const std::string& object, std::string_view reason) const {
    throw InputError(fmt::format("{}: /{}: {}", file.path(), object, reason));
  }

  void read_root() {
    if (!file.has_attribute("", attribute::format) || file.read_text("", attribute::format) != schema::format_name)
      throw InputError(fmt::format("{}: is HDF5, but no qkcts corpus", file.path()));
    const auto version =
        as_array<std::uint32_t>(file.read_numbers("", attribute::format_version, StoredType::uint32, 1))[0];
    if (version < schema::first_version || version > schema::latest_version)
      throw InputError(fmt::format("{}: has format version {}, this program reads versions {} to {}", file.path(),
                                   version, schema::first_version, schema::latest_version));
    info.path = file.path();
    info.format_version = static_cast<int>(version);
    info.suite = file.read_text("", attribute::suite);
    info.generator_version = file.read_text("", attribute::generator_version);
    info.seed = as_array<std::uint64_t>(file.read_numbers("", attribute::seed, StoredType::uint64, 1))[0];
    info.digest = file.read_text("", attribute::digest);
    CaseReading(file, "").expect_members("", {schema::contracts, schema::cases}, {schema::profiles});
  }

  // Profiles that are not shipped; most files have none.
  std::vector<DigestEntry> read_profiles() {
    std::vector<DigestEntry> digests;
    const std::vector<StoredMember> root = file.members("");
    if (std::none_of(root.begin(), root.end(), [](const auto& member) { return member.name == schema::profiles; }))
      return digests;
    for (const StoredMember& member : file.members(schema::profiles)) {
      const std::string group = fmt::format("{}/{}", schema::profiles, member.name);
      if (!member.is_group || !is_name(member.name) || digests.size() >= 64) refuse(group, "is no profile");
      std::string text = file.read_text(group, attribute::json);
      if (const std::string fault = own_profile_fault(member.name, text); !fault.empty()) refuse(group, fault);
      const std::string digest = own_profile_digest(text);
      if (digest != file.read_text(group, attribute::digest)) refuse(group, "digest does not match");
      digests.push_back({member.name, digest});
      own_profiles.emplace(member.name, std::move(text));
    }
    if (digests.empty()) refuse(schema::profiles, "holds no profile");
    return digests;
  }

  std::vector<DigestEntry> read_contracts() {
    std::vector<DigestEntry> digests;
    std::uint32_t needed = own_profiles.empty() ? schema::first_version : own_profile_version;
    for (const StoredMember& member : file.members(schema::contracts)) {
      const std::string group = fmt::format("{}/{}", schema::contracts, member.name);
      if (!member.is_group || !is_name(member.name)) refuse(group, "is no contract");
      const std::string origin = fmt::format("{}: /{}", file.path(), group);
      Contract contract = contract_from_json(file.read_text(group, attribute::json), origin);
      if (contract.name != member.name) refuse(group, "holds a contract of another name");
      const std::string digest = contract_digest(contract);
      if (digest != file.read_text(group, attribute::digest)) refuse(group, "digest does not match");
      digests.push_back({member.name, digest});
      needed = std::max(needed, format_version_of(contract.terms));
      contracts.emplace(member.name, std::move(contract));
    }
    if (static_cast<std::uint32_t>(info.format_version) != needed)
      throw InputError(fmt::format("{}: has format version {}, but its contracts make it version {}", file.path(),
                                   info.format_version, needed));
    return digests;
  }

  void find_cases(const std::string& slug, int depth, std::vector<DigestEntry>& digests) {
    const std::string group = slug.empty() ? schema::cases : fmt::format("{}/{}", schema::cases, slug);
    if (!slug.empty() && file.has_attribute(group, attribute::contract)) {
      if (digests.size() >= schema::most_cases) refuse(schema::cases, "holds too many cases");
      digests.push_back({slug, file.read_text(group, attribute::digest)});
      return;
    }
    if (depth >= schema::deepest_slug) refuse(group, "is nested too deeply");
    for (const StoredMember& member : file.members(group)) {
      const std::string inner = slug.empty() ? member.name : slug + "/" + member.name;
      if (!member.is_group || !is_slug(inner)) refuse(fmt::format("{}/{}", schema::cases, inner), "is no case");
      find_cases(inner, depth + 1, digests);
    }
  }

  GoldenCase read_attributes(const CaseReading& reading) const {
    GoldenCase golden;
    const std::string& group = reading.group();
    const std::string name = file.read_text(group, attribute::contract);
    const auto contract = contracts.find(name);
    if (contract == contracts.end()) refuse(group, "names a contract that the file does not hold");
    golden.input.contract = contract->second;
    golden.input.shape = reading.shape();
    golden.input.inputs.format = reading.format();
    if (std::string fault = shape_fault(contract->second.terms, golden.input.shape); !fault.empty())
      refuse(group, fault);
    golden.family = file.read_text(group, attribute::family);
    golden.description = file.read_text(group, attribute::description);
    golden.seed = as_array<std::uint64_t>(file.read_numbers(group, attribute::seed, StoredType::uint64, 1))[0];
    golden.first_position =
        as_array<std::int64_t>(file.read_numbers(group, attribute::first_position, StoredType::int64, 1))[0];
    golden.profiles = file.read_texts(group, attribute::profiles);
    if (golden.profiles.size() > 64 || !std::all_of(golden.profiles.begin(), golden.profiles.end(), is_name))
      refuse(group, "attribute profiles is no list of profile names");
    for (const std::string& profile : golden.profiles) {
      const auto own = own_profiles.find(profile);
      if (own == own_profiles.end()) continue;
      if (profile_named(profile, own_profiles).storage != golden.input.inputs.format)
        refuse(group, fmt::format("is judged by profile {}, which judges another format", profile));
      golden.own_profiles.insert(*own);
    }
    golden.entropy = reading.range(attribute::entropy);
    golden.p_max = reading.range(attribute::p_max);
    golden.score_max = reading.range(attribute::score_max);
    golden.digest = file.read_text(group, attribute::digest);
    return golden;
  }
};

CorpusReader::CorpusReader(const std::string& path) : state_(std::make_unique<State>(path)) {
  state_->read_root();
  const std::vector<DigestEntry> profiles = state_->read_profiles();
  const std::vector<DigestEntry> contracts = state_->read_contracts();
  std::vector<DigestEntry> cases;
  state_->find_cases("", 0, cases);
  std::sort(cases.begin(), cases.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (const DigestEntry& entry : cases) state_->slugs.push_back(entry.name);
  if (corpus_digest(state_->info.suite, state_->info.seed, contracts, cases, profiles) != state_->info.digest)
    throw InputError(fmt::format("{}: digest of the corpus does not match: the file was changed", path));
}

CorpusReader::~CorpusReader() = default;
CorpusReader::CorpusReader(CorpusReader&&) noexcept = default;
CorpusReader& CorpusReader::operator=(CorpusReader&&) noexcept = default;

const CorpusInfo& CorpusReader::info() const {
  return state_->info;
}

const std::vector<std::string>& CorpusReader::slugs() const {
  return state_->slugs;
}

GoldenCase CorpusReader::outline(const std::string& slug) const {
  if (!std::binary_search(state_->slugs.begin(), state_->slugs.end(), slug))
    throw InputError(fmt::format("{}: holds no case {}; `qkcts inspect {} --names` lists them", state_->info.path, slug,
                                 state_->info.path));
  GoldenCase golden = state_->read_attributes(CaseReading(state_->file, fmt::format("{}/{}", schema::cases, slug)));
  golden.input.slug = slug;
  const StageSet stages = stages_of(golden.input.contract.terms);
  for (const qkcts_stage stage : all_stages) golden.stages[stage].present = (stages & bit(stage)) != 0;
  return golden;
}

GoldenCase CorpusReader::read(const std::string& slug) const {
  GoldenCase golden = outline(slug);
  CaseReading reading(state_->file, fmt::format("{}/{}", schema::cases, slug));
  Case& c = golden.input;
  reading.expect_members(reading.group(), {schema::inputs, schema::stages});

  const std::vector<InputRequirement> needs = required_inputs(c.contract.terms, c.shape, c.inputs.format);
  std::vector<std::string> names;
  names.reserve(needs.size());
  for (const InputRequirement& need : needs) names.emplace_back(input_name(need.input));
  reading.expect_members(reading.group() + "/" + schema::inputs, names);
  for (const InputRequirement& need : needs) c.inputs.set(need.input, reading.input(need, c.shape));
  if (std::string fault = case_fault(c); !fault.empty()) reading.refuse(reading.group(), fault);
  if (!c.inputs.has(Input::cos) && golden.first_position != 0)
    reading.refuse(reading.group(), "attribute first_position is not 0, but there are no tables");

  names.clear();
  for (const qkcts_stage stage : all_stages)
    if (golden.stages[stage].present) names.emplace_back(stage_name(stage));
  reading.expect_members(reading.group() + "/" + schema::stages, names);
  for (const qkcts_stage stage : all_stages)
    if (golden.stages[stage].present) golden.stages[stage] = reading.stage(stage, c, golden.profiles.size());

  if (case_digest(golden) != golden.digest) reading.refuse(reading.group(), "digest does not match: it was changed");
  return golden;
}

}  // namespace qkcts
