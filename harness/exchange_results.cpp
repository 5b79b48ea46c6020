// SPDX-License-Identifier: Apache-2.0
#include "harness/exchange_results.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "harness/exchange_schema.hpp"
#include "harness/status_name.hpp"
#include "vectors/named_axes.hpp"
#include "vectors/schema.hpp"

namespace qkcts {
namespace {

// Attributes are small, and a message may be anything.
constexpr std::size_t longest_message = 4000;

// Languages without 16-bit floats hand over bit patterns.
StoredType pattern_type(Format format) {
  switch (parameters(format).bits) {
    case 64:
      return StoredType::uint64;
    case 32:
      return StoredType::uint32;
    default:
      return StoredType::uint16;
  }
}

Execution violation(Verdict verdict, std::string detail) {
  Execution execution;
  execution.status = QKCTS_OK;
  execution.violation = verdict;
  execution.violation_detail = std::move(detail);
  return execution;
}

std::string extents_text(const std::vector<std::uint64_t>& extents) {
  return shape_text({extents.begin(), extents.end()});
}

std::string text_or(const Hdf5Input& file, const std::string& object, const char* name, const char* otherwise) {
  return file.has_attribute(object, name) ? file.read_text(object, name) : otherwise;
}

// How the kernel said that it ended: a status of the ABI, or the verdict of a worker that saw it end.
Execution ended(const std::string& outcome, const std::string& message) {
  Execution execution;
  execution.message = message;
  if (const auto status = status_named(outcome)) {
    execution.status = *status;
    return execution;
  }
  const std::optional<Verdict> verdict = verdict_named(outcome);
  if (!verdict || *verdict < Verdict::error_unwritten)
    return violation(Verdict::error_protocol, fmt::format("outcome '{}' is neither a status nor an error", outcome));
  return violation(*verdict, message.empty() ? "as the results say" : message);
}

bool contains(const std::vector<StoredMember>& members, std::string_view name) {
  return std::any_of(members.begin(), members.end(), [&](const StoredMember& member) { return member.name == name; });
}

}  // namespace

ResultWriter::ResultWriter(const std::string& path, const std::string& shown, const std::string& corpus_digest,
                           const std::string& description)
    : file_(path, shown), groups_(file_) {
  write_exchange_head(file_, exchange::results_format);
  file_.write_text("", exchange::corpus_digest, corpus_digest);
  file_.write_text("", exchange::description, description);
  groups_.make(schema::cases);
}

void ResultWriter::add(const Case& asked, const Execution& execution) {
  const std::string group = fmt::format("{}/{}", schema::cases, asked.slug);
  const std::string stages = fmt::format("{}/{}", group, schema::stages);
  groups_.make(stages);
  file_.write_text(group, exchange::request_digest, request_digest(asked));
  file_.write_text(group, exchange::implementation, execution.implementation.substr(0, longest_message));
  const bool harmed = execution.violation != Verdict::pass;
  if (harmed || execution.status != QKCTS_OK) {
    file_.write_text(group, exchange::outcome,
                     harmed ? verdict_name(execution.violation) : status_word(execution.status));
    file_.write_text(group, exchange::message,
                     (harmed ? execution.violation_detail : execution.message).substr(0, longest_message));
    return;
  }
  for (const qkcts_stage stage : all_stages) {
    if (execution.outputs[stage].empty()) continue;
    const Format format = stage_format(stage, asked.inputs.format);
    write_named_axes(file_, fmt::format("{}/{}", stages, stage_name(stage)), stored_type(element_type(format)),
                     parameters(format).name,
                     stage_layout(stage, asked.shape, static_cast<std::uint64_t>(row_count(stage, asked.shape))),
                     execution.outputs[stage]);
  }
}

void ResultWriter::close() {
  file_.close();
}

ResultReader::ResultReader(const std::string& path, Strictness strictness) : file_(path), strictness_(strictness) {
  require_exchange_head(file_, exchange::results_format);
  slugs_ = marked_slugs(file_, exchange::request_digest);
}

Execution ResultReader::read(const std::string& slug, const Case& asked, StageSet stages) const {
  try {
    return read_case(slug, asked, stages);
  } catch (const InputError& error) {
    return violation(Verdict::error_protocol, error.what());
  }
}

Execution ResultReader::read_case(const std::string& slug, const Case& asked, StageSet stages) const {
  const std::string group = fmt::format("{}/{}", schema::cases, slug);
  if (file_.read_text(group, exchange::request_digest) != request_digest(asked))
    return violation(Verdict::error_protocol, fmt::format("/{}: request_digest is that of another request", group));
  const std::string outcome = text_or(file_, group, exchange::outcome, "ok");
  if (outcome != "ok") {
    Execution execution = ended(outcome, text_or(file_, group, exchange::message, ""));
    execution.implementation = text_or(file_, group, exchange::implementation, "");
    return execution;
  }
  const std::string folder = fmt::format("{}/{}", group, schema::stages);
  std::vector<StoredMember> members;
  if (contains(file_.members(group), schema::stages)) members = file_.members(folder);
  if (strictness_ == Strictness::everything)
    for (const StoredMember& member : members) {
      const auto stage = stage_named(member.name);
      if (!stage || (stages & bit(*stage)) == 0)
        return violation(Verdict::error_protocol, fmt::format("/{}/{}: was not asked for", folder, member.name));
    }
  Execution execution;
  execution.status = QKCTS_OK;
  execution.implementation = text_or(file_, group, exchange::implementation, "");
  std::string missing;
  for (const qkcts_stage stage : all_stages) {
    if ((stages & bit(stage)) == 0) continue;
    const std::string name = fmt::format("{}/{}", folder, stage_name(stage));
    if (!contains(members, stage_name(stage))) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", stage_name(stage));
      continue;
    }
    const StoredDataset stored = file_.describe(name);
    const Format format = stage_format(stage, asked.inputs.format);
    const StoredType type = stored_type(element_type(format));
    if (stored.type != type && stored.type != pattern_type(format))
      return violation(Verdict::error_protocol,
                       fmt::format("/{}: has another element type; {} is due, or its bits as unsigned integers", name,
                                   parameters(format).name));
    const StageLayout layout =
        stage_layout(stage, asked.shape, static_cast<std::uint64_t>(row_count(stage, asked.shape)));
    if (stored.extents != layout.extents)
      return violation(Verdict::error_protocol,
                       fmt::format("/{}: has shape {}, must have {}", name, extents_text(stored.extents),
                                   extents_text(layout.extents)));
    execution.outputs[stage] = file_.read(name);
  }
  if (!missing.empty())
    return violation(Verdict::error_unwritten, fmt::format("/{}: holds no dataset {}", folder, missing));
  return execution;
}

}  // namespace qkcts
