// SPDX-License-Identifier: Apache-2.0
#include "harness/exchange_requests.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "conformance/contract_field.hpp"
#include "conformance/json.hpp"
#include "harness/exchange_schema.hpp"
#include "vectors/case_reading.hpp"
#include "vectors/named_axes.hpp"
#include "vectors/schema.hpp"

namespace qkcts {

namespace attribute = schema::attribute;

RequestWriter::RequestWriter(const std::string& path, const std::string& shown, const std::string& corpus_digest)
    : file_(path, shown), groups_(file_) {
  write_exchange_head(file_, exchange::requests_format);
  if (!corpus_digest.empty()) file_.write_text("", exchange::corpus_digest, corpus_digest);
  groups_.make(schema::contracts);
  groups_.make(schema::cases);
}

void RequestWriter::write_contract(const Contract& contract) {
  if (std::find(contracts_.begin(), contracts_.end(), contract.name) != contracts_.end()) return;
  contracts_.push_back(contract.name);
  const std::string group = fmt::format("{}/{}", schema::contracts, contract.name);
  groups_.make(group);
  file_.write_text(group, attribute::json, canonical_json(contract));
  file_.write_text(group, attribute::digest, contract_digest(contract));
  // Defaults and fields without meaning resolved, so that a declaration can be compared without knowing the rules.
  Json fields = Json::object(), by_claim = Json::array();
  for (const FieldValue& field : contract_field_values(contract.terms)) {
    fields[field.path] = parse_json(field.json, field.path);
    if (field.by_claim) by_claim.push_back(field.path);
  }
  file_.write_text(group, exchange::fields, canonical_text(fields));
  file_.write_text(group, exchange::by_claim, canonical_text(by_claim));
}

void RequestWriter::add(const KernelRequest& request) {
  const Case& c = request.input;
  write_contract(c.contract);
  const std::string group = fmt::format("{}/{}", schema::cases, c.slug);
  const std::string inputs = fmt::format("{}/{}", group, schema::inputs);
  groups_.make(inputs);
  const qkcts_shape& s = c.shape;
  const std::array<std::int64_t, 7> shape{s.batch, s.q_heads, s.kv_heads, s.q_len, s.k_len, s.head_dim, s.v_head_dim};
  std::vector<std::string> stages;
  for (const qkcts_stage stage : all_stages)
    if ((request.stages & bit(stage)) != 0) stages.emplace_back(stage_name(stage));
  file_.write_text(group, attribute::contract, c.contract.name);
  file_.write_text(group, attribute::format, parameters(c.inputs.format).name);
  file_.write_numbers(group, attribute::shape, StoredType::int64, std::as_bytes(std::span(shape)));
  file_.write_texts(group, exchange::stages, stages);
  file_.write_text(group, exchange::request_digest, request_digest(c));
  for (std::size_t i = 0; i < input_count; ++i)
    if (c.inputs.tensors[i]) write_input(file_, inputs, static_cast<Input>(i), *c.inputs.tensors[i]);
}

void RequestWriter::close() {
  file_.close();
}

RequestReader::RequestReader(const std::string& path) : file_(path) {
  require_exchange_head(file_, exchange::requests_format);
  if (file_.has_attribute("", exchange::corpus_digest)) corpus_digest_ = file_.read_text("", exchange::corpus_digest);
  slugs_ = marked_slugs(file_, attribute::contract);
}

KernelRequest RequestReader::read(const std::string& slug) const {
  CaseReading reading(file_, fmt::format("{}/{}", schema::cases, slug));
  KernelRequest request;
  Case& c = request.input;
  c.slug = slug;
  const std::string contract =
      fmt::format("{}/{}", schema::contracts, file_.read_text(reading.group(), attribute::contract));
  c.contract =
      contract_from_json(file_.read_text(contract, attribute::json), fmt::format("{}: /{}", file_.path(), contract));
  c.shape = reading.shape();
  c.inputs.format = reading.format();
  if (const std::string fault = shape_fault(c.contract.terms, c.shape); !fault.empty())
    reading.refuse(reading.group(), fault);
  for (const std::string& name : file_.read_texts(reading.group(), exchange::stages)) {
    const std::optional<qkcts_stage> stage = stage_named(name);
    if (!stage || (stages_of(c.contract.terms) & bit(*stage)) == 0)
      reading.refuse(reading.group(), "attribute stages names what is no stage of this contract");
    request.stages |= bit(*stage);
  }
  const std::vector<InputRequirement> needs = required_inputs(c.contract.terms, c.shape, c.inputs.format);
  std::vector<std::string> names;
  names.reserve(needs.size());
  for (const InputRequirement& need : needs) names.emplace_back(input_name(need.input));
  reading.expect_members(fmt::format("{}/{}", reading.group(), schema::inputs), names);
  for (const InputRequirement& need : needs) c.inputs.set(need.input, reading.input(need, c.shape));
  if (const std::string fault = case_fault(c); !fault.empty()) reading.refuse(reading.group(), fault);
  if (request_digest(c) != file_.read_text(reading.group(), exchange::request_digest))
    reading.refuse(reading.group(), "digest does not match: it was changed");
  return request;
}

void check_untrusted_requests(const std::string& path) {
  look_in_child(path, [&path] {
    const RequestReader requests(path);
    for (const std::string& slug : requests.slugs()) static_cast<void>(requests.read(slug));
  });
}

}  // namespace qkcts
