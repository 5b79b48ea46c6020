// SPDX-License-Identifier: Apache-2.0
#include "harness/case_bytes.hpp"

#include <concepts>
#include <type_traits>

namespace qkcts {
namespace {

// The members of each struct are listed once, for both ways.
template <class T, class Struct>
concept Either = std::same_as<std::remove_const_t<T>, Struct>;

template <class Flow, Either<LimitResult> T>
void members(Flow& flow, T& limit) {
  flow(limit.limit), flow(limit.violations), flow(limit.worst);
}

template <class Flow, Either<StageJudgement> T>
void members(Flow& flow, T& j) {
  flow(j.verdict), flow(j.counts), flow(j.unwritten), flow(j.first_unwritten);
  flow(j.max_ulp), flow(j.p99_ulp), flow(j.mean_ulp), flow(j.signed_mean_ulp), flow(j.outward_mean_ulp);
  flow(j.max_ratio), flow(j.worst), flow(j.failures), flow(j.histogram), flow(j.limit), flow(j.heat);
}

template <class Flow, Either<VariantFinding> T>
void members(Flow& flow, T& finding) {
  flow(finding.variant), flow(finding.same_bits), flow(finding.max_ratio), flow(finding.implementation);
}

template <class Flow, Either<StageResult> T>
void members(Flow& flow, T& stage) {
  flow(stage.stage), flow(stage.verdict), flow(stage.detail), flow(stage.judgement), flow(stage.differing_calls);
  flow(stage.spread_ulp), flow(stage.variants), flow(stage.output_sha256), flow(stage.plain);
}

template <class Flow, Either<CaseResult> T>
void members(Flow& flow, T& result) {
  flow(result.slug), flow(result.contract), flow(result.contract_digest), flow(result.family);
  flow(result.description), flow(result.format), flow(result.shape), flow(result.profile), flow(result.verdict);
  flow(result.detail), flow(result.implementation), flow(result.seconds), flow(result.calls), flow(result.output);
  flow(result.stages);
}

// A judged element names its clause by a text that is part of the program.
template <class T>
constexpr bool travels_as_it_stands = std::is_trivially_copyable_v<T>;
static_assert(travels_as_it_stands<JudgedElement> && travels_as_it_stands<PlainError>);
static_assert(!travels_as_it_stands<StageJudgement> && !travels_as_it_stands<VariantFinding>);

class Outward {
 public:
  explicit Outward(MessageWriter& bytes) : bytes_(bytes) {}

  template <class T>
  void operator()(const T& value) {
    if constexpr (travels_as_it_stands<T>) {
      bytes_.put(value);
    } else {
      members(*this, value);
    }
  }
  void operator()(const std::string& text) { bytes_.put_text(text); }
  template <class T>
  void operator()(const std::optional<T>& value) {
    bytes_.put(static_cast<std::uint8_t>(value.has_value()));
    if (value) (*this)(*value);
  }
  template <class T>
  void operator()(const std::vector<T>& list) {
    bytes_.put(static_cast<std::uint64_t>(list.size()));
    for (const T& value : list) (*this)(value);
  }
  void operator()(const HeatMap& map) {
    for (const std::size_t extent : {map.stored(), map.length(), map.rows(), map.columns()}) bytes_.put(extent);
    for (std::size_t row = 0; row < map.rows(); ++row)
      for (std::size_t column = 0; column < map.columns(); ++column) bytes_.put(map.at(row, column));
  }

 private:
  MessageWriter& bytes_;
};

class Inward {
 public:
  explicit Inward(MessageReader& bytes) : bytes_(bytes) {}

  template <class T>
  void operator()(T& value) {
    if constexpr (travels_as_it_stands<T>) {
      value = bytes_.get<T>();
    } else {
      members(*this, value);
    }
  }
  void operator()(std::string& text) { text = bytes_.get_text(); }
  template <class T>
  void operator()(std::optional<T>& value) {
    if (bytes_.get_flag()) (*this)(value.emplace());
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    list.resize(bytes_.get<std::uint64_t>());
    for (T& value : list) (*this)(value);
  }
  void operator()(HeatMap& map) {
    const auto stored = bytes_.get<std::size_t>(), length = bytes_.get<std::size_t>();
    const auto rows = bytes_.get<std::size_t>(), columns = bytes_.get<std::size_t>();
    std::vector<float> cells(rows * columns);
    for (float& cell : cells) cell = bytes_.get<float>();
    map = HeatMap(stored, length, rows, columns, std::move(cells));
  }

 private:
  MessageReader& bytes_;
};

}  // namespace

void put_case(MessageWriter& bytes, const CaseResult& result) {
  Outward flow(bytes);
  flow(result);
}

CaseResult get_case(MessageReader& bytes) {
  CaseResult result;
  Inward flow(bytes);
  flow(result);
  return result;
}

}  // namespace qkcts
